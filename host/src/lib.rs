//! GEMM for NVIDIA GPUs in pure Rust, kernels included: it computes C = A·B with A M×K,
//! B K×N and C M×N, and lets you choose the order in which the tiles of C run.
//!
//! ```
//! use tilewise::{Device, Gemm};
//!
//! # fn main() -> Result<(), tilewise::Error> {
//! // The first GPU, or the CPU where there is none. Same API, same results.
//! let device = Device::best();
//! let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3)?;
//! let b = device.from_slice(&[1.0_f32, 0.0, 0.0, 1.0, 1.0, 1.0], 3, 2)?;
//!
//! // Short: kernel and tile order are chosen.
//! let c = device.matmul(&a, &b)?;
//! assert_eq!(c.to_vec()?, [4.0, 5.0, 10.0, 11.0]);
//!
//! // Long: plan once, run often. Views transpose and slice without a copy.
//! let bt = device.from_slice(&[1.0_f32, 0.0, 1.0, 0.0, 1.0, 1.0], 2, 3)?;
//! let mut d = device.zeros::<f32>(2, 2)?;
//! let mut plan = Gemm::new(&device).plan(&a, bt.view().t(), &mut d)?;
//! plan.run(&a, bt.view().t(), &mut d)?;
//! assert_eq!(d.to_vec()?, c.to_vec()?);
//! # Ok(())
//! # }
//! ```
//!
//! An [`Epilogue`] computes act(α·A·B + β·C + bias), and more, in the same launch, and every
//! operand may be a batch of matrices.
//!
//! A plan is made for layouts and holds no operand, so [`Gemm::plan_for`] can make a plan
//! before its operands exist. [`Device::matmul`] keeps the plans that it makes.
//!
//! On a GPU, [`Gemm`] can force what [`select`] would choose: the kernel, the
//! CTA tile, the [`TileOrder`] and the [`Schedule`]. [`Gemm::tune`] measures the
//! candidates instead and takes the fastest.
//!
//! | type | what it is |
//! |---|---|
//! | [`Device`] | a GPU or the CPU |
//! | [`Matrix`] | elements on one device |
//! | [`MatrixView`], [`MatrixViewMut`] | shape and strides over a matrix, or over memory of another library, to read or to write |
//! | [`CudaStream`] | a stream of the CUDA driver, the library's or yours |
//! | [`Layout`] | a shape and strides of a matrix or a batch, in elements |
//! | [`Gemm`] | a product to plan: its device, its epilogue and the forced choices |
//! | [`Epilogue`], [`Inputs`] | what is done to A·B before it becomes C; its operands in one run |
//! | [`Plan`], [`PlanInfo`] | a product ready to run; what it will do |
//! | [`select`] | the rule that makes the choices that are not forced |
//! | [`Tuner`] | measurements in place of the rule, and their cache |
//! | [`l2`] | the L2 and DRAM traffic of a tile order |
//! | [`tma`] | which matrices the hopper kernels can read |
//! | [`oracle`] | products in f64, for tests |
//! | `emulator` | emulated GPUs, which check every kernel they run (feature `emulator`) |
//! | [`Error`] | everything that can go wrong |
//!
//! Elements are [`f32`], [`struct@f16`] or [`bf16`], and accumulators are f32; C has any of
//! these types, whatever A and B have. Strides count elements and are not negative.
//!
//! Building needs nothing of CUDA, and the driver is opened at run time, so one program runs
//! with and without a GPU. Where a GPU cannot be used, [`Device::best_gpu`] says why.
//!
//! With the feature `cust`, the library loads and launches kernels through the crate `cust`,
//! for programs that use it themselves. `cust_raw` then looks for `libcuda` in the folder
//! that the environment variable `CUDA_LIBRARY_PATH` names when it is built; this crate's
//! `stub` folder holds an empty one.

mod best;
mod cpu;
mod device;
mod element;
mod embedded;
#[cfg(feature = "emulator")]
pub mod emulator;
mod epilogue;
mod epilogue_form;
mod error;
mod gemm;
mod gpu;
mod host_matrix;
mod host_memory;
mod inputs;
mod layout;
mod matmul;
mod matrix;
mod memory;
mod operand;
mod operands;
pub mod oracle;
mod plan;
mod plan_cache;
mod plan_info;
mod precision;
#[cfg(feature = "probes")]
pub mod probe;
mod problem;
mod rejection;
pub mod select;
mod storage;
mod sum_order;
pub mod tma;
mod transfer;
mod tune;
mod untyped_plan;
mod view;
mod window;

#[doc(inline)]
pub use tilewise_model as l2;

pub use device::Device;
pub use element::{Element, Output, bf16, f16};
pub use embedded::{BuildInfo, CodeGenerator, build_info};
pub use epilogue::{Activation, Epilogue};
pub use epilogue_form::{Bias, Gated};
pub use error::Error;
pub use gemm::Gemm;
pub use gpu::opened::GpuInfo;
pub use gpu::stream::CudaStream;
pub use gpu_kernels::order::ParseOrderError;
pub use gpu_kernels::{
    Arch, Block, Cluster, DType, EvictFirst, Family, KernelInfo, Major, OutputType, Schedule, Tile,
    TileGrid, TileOrder,
};
pub use inputs::Inputs;
pub use layout::Layout;
pub use matrix::Matrix;
pub use operand::Operand;
pub use plan::Plan;
pub use plan_info::{CpuPlanInfo, GpuPlanInfo, Origin, PlanInfo};
pub use precision::Precision;
pub use select::Packing;
pub use tune::Tuner;
pub use view::{AsView, AsViewMut, MatrixView, MatrixViewMut};

/// The examples in the README and in `docs/` are tests too.
#[cfg(doctest)]
mod documents {
    #[doc = include_str!("../../README.md")]
    struct Readme;

    #[doc = include_str!("../../docs/tile-order.md")]
    struct TileOrder;

    #[doc = include_str!("../../docs/epilogues.md")]
    struct Epilogues;

    #[doc = include_str!("../../docs/batch-invariance.md")]
    struct BatchInvariance;

    #[doc = include_str!("../../docs/f32.md")]
    struct F32;
}
