//! The GPUs of the CUDA driver.
//!
//! | module | contents |
//! |---|---|
//! | [`libcuda`] | the driver's shared library, opened at run time |
//! | [`binding`] | the functions of the driver API, by one of two bindings |
//! | [`failure`] | the errors of failed calls |
//! | [`open`] | opened GPUs: context, stream, loaded kernels |
//! | [`pool`] | memory in the order of a stream |
//! | [`module`] | kernels, loaded |
//! | [`launch`] | one launch |
//! | [`occupancy`] | how much of a kernel runs at once |
//! | [`placement`] | where a GPU runs clusters, measured |
//! | [`tensor_map`] | tensor maps, encoded |
//! | [`capture_mode`] | calls that a capture would not allow |
//! | [`context`] | the context that is current on a thread |
//! | [`event`] | events, which mark a place in the work of a stream |
//! | [`timer`] | two events that take the time |
//! | [`calls`] | the [`Backend`](super::backend::Backend) that calls all of these |

mod binding;
mod calls;
mod capture_mode;
mod context;
mod event;
mod failure;
mod launch;
pub(super) mod libcuda;
mod module;
mod occupancy;
pub(super) mod open;
mod placement;
mod pool;
mod tensor_map;
mod timer;

use binding::CUresult;
use failure::{driver_version, failure};

use crate::error::Error;

/// Returns an error unless `result` is success.
fn check(call: &'static str, result: CUresult) -> Result<(), Error> {
    failure::check(call, binding::code(result))
}
