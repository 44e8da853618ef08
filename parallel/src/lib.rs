//! GEMM over several GPUs of one host, in one process or one process a GPU: all-gather + GEMM,
//! GEMM + reduce-scatter and GEMM + all-reduce, whose copies hide behind the products.
//!
//! A layer of a large model is split over GPUs. Usually a collective runs, and then the
//! product, or the other way round. Here, each GPU starts with the part of the product whose
//! operands it has, and copies the next part meanwhile; or it computes the others' part of the
//! sum first, storing it straight into their memory, and its own part last.
//!
//! ```
//! use tilewise::Device;
//! use tilewise_parallel::{Group, Options};
//!
//! # fn main() -> Result<(), tilewise_parallel::Error> {
//! // Two GPUs where there are two, else two ranks that share a device.
//! let devices = match Device::gpu_count() {
//!     0 => vec![Device::cpu(); 2],
//!     1 => vec![Device::best(); 2],
//!     _ => vec![Device::gpu(0)?, Device::gpu(1)?],
//! };
//! let group = Group::new(&devices)?;
//! // A has two rows, one on each rank; B has two columns, one on each.
//! let a = [devices[0].from_slice(&[1.0_f32, 2.0], 1, 2)?, devices[1].from_slice(&[3.0, 4.0], 1, 2)?];
//! let b = [devices[0].from_slice(&[1.0_f32, 0.0], 2, 1)?, devices[1].from_slice(&[1.0, 1.0], 2, 1)?];
//! let mut c = [devices[0].zeros::<f32>(2, 1)?, devices[1].zeros(2, 1)?];
//!
//! let (a, b) = (a.each_ref().map(|a| a.view()), b.each_ref().map(|b| b.view()));
//! let mut c = c.each_mut().map(|c| c.view_mut());
//! let mut plan = group.all_gather_matmul(&Options::new(), &a, &b, &mut c)?;
//! plan.run(&a, &b, &mut c)?;
//! // Each rank has all rows of its own columns.
//! assert_eq!(c[0].to_vec()?, [1.0, 3.0]);
//! assert_eq!(c[1].to_vec()?, [3.0, 7.0]);
//! # Ok(())
//! # }
//! ```
//!
//! | type | what it is |
//! |---|---|
//! | [`Group`] | the devices, one for each rank; plans the three operations |
//! | [`Member`] | one rank of a group of processes; plans the same with its own matrices |
//! | [`Options`] | bias, activation, precision, number of chunks, [`Engine`] |
//! | [`Plan`], [`MemberPlan`] | an operation ready to run |
//! | [`program`] | which step waits for which, as data, and the proof that none meet |
//! | [`estimate`] | what a program takes, from the times of its steps |
//!
//! # Results
//!
//! Products are [batch-invariant](tilewise::Gemm::batch_invariant), so [`Group::all_gather_matmul`] gives the bits of the
//! unsplit product on one of the GPUs. [`Group::matmul_reduce_scatter`] and
//! [`Group::matmul_all_reduce`] add in a fixed order,
//! round a ring from the rank behind the owner of the rows to the owner, and the sums between
//! ranks have the type of C. Timing changes no bit. ([`Engine::Nccl`] adds in NCCL's order.)
//!
//! # Hangs
//!
//! No kernel waits for another GPU. In one process, streams wait for events that were recorded before they
//! wait, so a slow rank delays the others, and a failed one ends them with the driver's error.
//! [`Engine::Nccl`], which must be asked for, waits as NCCL does.
//!
//! Streams of different processes wait for words in shared memory. A member whose process ends, or
//! that does not do its part within a time limit, ends the runs of the others with a
//! [`RankError`].

#![warn(missing_docs)]

mod cuda;
mod error;
mod group;
mod in_turn;
mod lines;
mod member;
mod nccl;
mod operands;
mod options;
mod plan;
mod rank_error;
mod ranks;
mod wire;

#[doc(inline)]
pub use tilewise_program::{estimate, program};

pub use error::Error;
pub use group::Group;
pub use member::{Member, MemberPlan};
pub use options::{Engine, Options};
pub use plan::{Plan, PlanInfo};
pub use rank_error::RankError;

/// The example in `docs/` is compiled too.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../docs/parallel.md")]
    struct Parallel;
}
