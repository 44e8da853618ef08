//! Emulated GPUs: the whole library on the CPU, kernels included. Feature `emulator`.
//!
//! [`Device::emulated`] opens an emulated GPU. Selection, packing, tensor maps, workspaces
//! and launches are the same as on a GPU. The kernels run on the emulator (crate
//! `tilewise-emulator`), which checks and counts their operations. `docs/emulator.md`
//! describes its limits.
//!
//! ```
//! use tilewise::emulator::{self, EmulatedGpu};
//! use tilewise::{Device, f16};
//!
//! # fn main() -> Result<(), tilewise::Error> {
//! let device = Device::emulated(EmulatedGpu { sms: 4, ..EmulatedGpu::default() })?;
//! let a = device.from_slice(&[f16::ONE; 16 * 64], 16, 64)?;
//! let b = device.from_slice(&[f16::ONE; 64 * 8], 64, 8)?;
//! let c = device.matmul(&a, &b)?;
//! assert_eq!(c.to_vec()?, [f16::from_f32(64.0); 16 * 8]);
//! let counts = emulator::counts(&device).expect("a launch");
//! assert!(counts.tensor_operations >= 2 * 16 * 64 * 8);
//! # Ok(())
//! # }
//! ```
//!
//! If a kernel breaks a rule, the call that launched it returns [`Error::KernelBroken`];
//! the device stays usable.

use gpu_kernels::{Family, KernelInfo};
pub use tilewise_emulator::{Address, Check, Counts, Fault, Instruction, Report, Request, Site};

pub use crate::gpu::emulated::estimate::{Estimate, time};
pub use crate::gpu::emulated::options::{EmulatedGpu, Progress};

use crate::device::{Device, Kind};
use crate::element::{Element, Output};
use crate::error::Error;
use crate::gemm::Gemm;
use crate::gpu::opened::Gpu;
use crate::gpu::pack;
use crate::gpu::plan::GpuPlan;
use crate::plan::Plan;
use crate::plan_info::Origin;
use crate::problem::{Problem, Strides};
use crate::rejection::Rejection;
use crate::select::{self, Choice};
use crate::view::{AsView, AsViewMut};

/// The counts of the last launch on `device`; `None` before the first launch, and for a
/// device that is not emulated.
pub fn counts(device: &Device) -> Option<Counts> {
    emulated(device).ok()?.backend().counts()
}

/// Marks `bytes` bytes at `address`, in the memory of `device`, as never written. The
/// emulator then reports a kernel that reads them ([`Check::Uninitialized`]).
///
/// # Errors
/// [`Error::NotEmulated`].
pub fn leave_undefined(device: &Device, address: u64, bytes: u64) -> Result<(), Error> {
    let gpu = emulated(device)?;
    gpu.backend().leave_undefined(address, bytes);
    Ok(())
}

/// Plans the product with `choice`, even if [`select`] would not choose it. This is for
/// tests of kernels. The emulator reports what a wrong choice breaks.
///
/// # Errors
/// [`Error::NotEmulated`], and the errors of [`Gemm::plan`] that are about the operands.
pub fn plan<T: Element, O: Output<T>>(
    gemm: &Gemm,
    device: &Device,
    choice: &Choice,
    a: impl AsView<T>,
    b: impl AsView<T>,
    mut c: impl AsViewMut<O>,
) -> Result<Plan<T, O>, Error> {
    emulated(device)?;
    let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
    let operands = gemm.operands(a, b, &c)?;
    let plan = gemm.plan_by::<T, O>(operands, |gpu, problem, _| {
        check(gpu, choice, problem)?;
        Ok((GpuPlan::new(gpu, *choice, problem)?, Origin::Rule))
    })?;
    Ok(Plan::new(device, plan))
}

/// Returns an error unless the kernel of `choice` can run `problem`, with the packing of
/// `choice`.
fn check(gpu: &Gpu, choice: &Choice, problem: &Problem) -> Result<(), Error> {
    let problem = match choice.transposed {
        true => problem.transposed(),
        false => *problem,
    };
    let (kernel, target) = (&choice.kernel, gpu.info().target());
    match select::check(gpu.backend().catalog(), kernel, &problem, &target) {
        // The kernel reads the packed copies.
        Err(Rejection::Tma { .. } | Rejection::Unsplit) if choice.packed.any() => Ok(()),
        Err(reason) => Err(Error::KernelCannotRun {
            kernel: kernel.name,
            reason,
        }),
        Ok(()) => Ok(()),
    }
}

/// Copies `from` to `to` with `kernel`, which is of [`Family::Pack`]. This is for tests of such
/// kernels. Both matrices have the same shape and are on the same device.
///
/// # Errors
/// [`Error::NotEmulated`], [`Error::KernelBroken`], and errors for a kernel and matrices
/// that do not belong together.
pub fn copy<T: Element>(
    kernel: &KernelInfo,
    from: impl AsView<T>,
    mut to: impl AsViewMut<T>,
) -> Result<(), Error> {
    let (from, to) = (from.as_view(), to.as_view_mut());
    let gpu = emulated(from.device())?;
    let layouts = [from.layout(), to.layout()];
    let shapes = layouts.map(|layout| (layout.rows, layout.cols));
    let packs = kernel.family == Family::Pack && kernel.input.bytes() as usize == size_of::<T>();
    if shapes[0] != shapes[1] || from.device() != to.device() || !packs {
        return Err(Error::CannotEmulate {
            kernel: kernel.name,
            reason: format!("it does not copy {} to {}", layouts[0], layouts[1]),
        });
    }
    let size = |extent: usize| u32::try_from(extent).unwrap_or(u32::MAX);
    let (rows, cols) = (size(shapes[0].0), size(shapes[0].1));
    let strides =
        layouts.map(|layout| Strides::new(layout.row_stride as u64, layout.col_stride as u64));
    let to = strides[1].at(to.address());
    let copy = pack::copy(gpu, kernel, (1, rows, cols), strides[0], to)?;
    // SAFETY: both views are live, and an emulated launch has ended when it returns.
    unsafe { copy.run(gpu, None, [from.address(), 0]) }
}

/// The GPU that `device` emulates.
fn emulated(device: &Device) -> Result<&Gpu, Error> {
    match device.kind() {
        Kind::Gpu(gpu) if gpu.backend().is_emulated() => Ok(gpu),
        _ => Err(Error::NotEmulated {
            device: device.to_string(),
        }),
    }
}
