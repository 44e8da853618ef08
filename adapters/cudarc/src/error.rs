//! [`Error`]: what this crate returns.

use cudarc::driver::DriverError;
use tilewise::Layout;

/// Every error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A field of [`MatmulConfig`](crate::MatmulConfig) is out of range.
    #[error("{argument} = {found}; accepted: {accepted}")]
    Argument {
        /// The field.
        argument: &'static str,
        /// Its value.
        found: String,
        /// The accepted values.
        accepted: String,
    },

    /// A slice is too short for its matrix.
    #[error(
        "{argument} has {len} elements; accepted for a matrix of {layout}: at least {}",
        match layout.span() {
            Some(span) => span.to_string(),
            None => "2^64".to_owned(),
        }
    )]
    TooShort {
        /// The argument.
        argument: &'static str,
        /// Elements of the slice.
        len: usize,
        /// Shape and strides of the matrix.
        layout: Layout,
    },

    /// A slice belongs to another `CudaContext` than the stream.
    #[error(
        "{argument} belongs to another CudaContext, on device {found}; accepted: the one of \
         the stream, on device {expected}"
    )]
    OtherContext {
        /// The argument.
        argument: &'static str,
        /// The ordinal of its device.
        found: usize,
        /// The ordinal of the stream's device.
        expected: usize,
    },

    /// The stream's context is not the primary context of its device, in which tilewise runs.
    #[error(
        "the stream's context on device {ordinal} is not the primary one; accepted: a stream of \
         CudaContext::new"
    )]
    NotPrimary {
        /// The ordinal of the device.
        ordinal: usize,
    },

    /// A call of the driver by cudarc failed, or an earlier one that could not return its
    /// error.
    #[error("a driver call of cudarc failed: {0}")]
    Driver(#[from] DriverError),

    /// tilewise returned an error.
    #[error(transparent)]
    Tilewise(#[from] tilewise::Error),
}
