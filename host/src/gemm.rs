//! [`Gemm`], what to force, and [`Plan`], a product ready to run.
//!
//! Planning checks everything, chooses the kernel, loads it and allocates what
//! it needs. Running a plan checks that the operands are those it was made for
//! and enqueues one launch.

use std::marker::PhantomData;
use std::sync::Arc;

use gpu_kernels::{Block, DType, Family, GemmParams, Operand, Schedule, TileOrder};

use crate::cpu::CpuPlan;
use crate::device::{Device, Kind};
use crate::element::{Element, Output};
use crate::error::Error;
use crate::gpu::opened::Gpu;
use crate::gpu::plan::GpuPlan;
use crate::layout::Layout;
use crate::plan_info::{Origin, PlanInfo};
use crate::select::{self, Packing, Problem, Request};
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut};

/// How f32 elements are multiplied. Sums are f32 either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Precision {
    /// IEEE binary32: products exact, fused into the sum.
    #[default]
    Ieee,
    /// Rounded to TF32 (10-bit mantissa) first, for the tensor cores.
    Tf32,
}

/// A product to plan: its device, and what to force. What is left open,
/// [`select`] chooses.
///
/// ```
/// use tilewise::{Device, Gemm, f16};
///
/// # fn main() -> Result<(), tilewise::Error> {
/// let device = Device::cpu();
/// let a = device.from_slice(&[f16::ONE; 6], 2, 3)?;
/// let b = device.from_slice(&[f16::ONE; 12], 3, 4)?;
/// let mut c = device.zeros::<f32>(2, 4)?;
/// let mut plan = Gemm::new(&device).plan(&a, &b, &mut c)?;
/// plan.run(&a, &b, &mut c)?;
/// assert_eq!(c.to_vec()?, [3.0; 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Gemm {
    device: Device,
    precision: Precision,
    request: Request,
}

impl Gemm {
    /// A product on `device` with nothing forced.
    pub fn new(device: &Device) -> Gemm {
        Gemm {
            device: device.clone(),
            precision: Precision::default(),
            request: Request::default(),
        }
    }

    /// Forces a step of the ladder. Operands that a hopper kernel cannot read
    /// are packed, whether it pays or not, unless [`Gemm::packing`] forbids it.
    pub fn family(mut self, family: Family) -> Gemm {
        self.request.family = Some(family);
        self
    }

    /// Forces a kernel by the name of its entry point. Packs as
    /// [`Gemm::family`] does.
    pub fn kernel(mut self, name: &str) -> Gemm {
        self.request.kernel = Some(name.to_owned());
        self
    }

    /// Forces a CTA tile.
    pub fn block(mut self, block: Block) -> Gemm {
        self.request.block = Some(block);
        self
    }

    /// Forces a tile order. The CPU has no tiles, and ignores it.
    pub fn order(mut self, order: TileOrder) -> Gemm {
        self.request.order = Some(order);
        self
    }

    /// Forces a schedule. The CPU has none, and ignores it.
    pub fn schedule(mut self, schedule: Schedule) -> Gemm {
        self.request.schedule = Some(schedule);
        self
    }

    /// Whether operands may be packed: copied, before each product, into
    /// memory that the plan owns, so that a hopper kernel can read them.
    pub fn packing(mut self, packing: Packing) -> Gemm {
        self.request.packing = packing;
        self
    }

    /// How f32 elements are multiplied; for other types, leave it.
    pub fn precision(mut self, precision: Precision) -> Gemm {
        self.precision = precision;
        self
    }

    /// Plans C = A·B, with A M×K, B K×N and C M×N, in the type of A and B or
    /// in f32. Operands are matrices or views. Reads no element.
    ///
    /// # Errors
    /// Operands that do not belong together: [`Error::ShapeMismatch`],
    /// [`Error::DeviceMismatch`]. Problems past a limit:
    /// [`Error::DimensionTooLarge`], [`Error::TooManyTiles`]. Forced choices
    /// that cannot be had: [`Error::UnknownKernel`], [`Error::KernelCannotRun`],
    /// [`Error::NoKernel`], [`Error::OrderIgnored`],
    /// [`Error::PrecisionIgnored`], [`Error::CpuHasNoKernels`]. The device's:
    /// [`Error::DriverTooOld`], [`Error::Compile`], [`Error::OutOfMemory`],
    /// [`Error::Driver`].
    pub fn plan<T: Element, O: Output<T>>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<Plan<T, O>, Error> {
        self.plan_by(
            a.as_view(),
            b.as_view(),
            c.as_view_mut(),
            |gpu, problem, request| {
                let target = gpu.info().target();
                let choice = select::choose(gpu.backend().catalog(), problem, &target, request)?;
                Ok((GpuPlan::new(gpu, choice, problem)?, Origin::Rule))
            },
        )
    }

    /// Checks the operands, and plans their product; on a GPU, as `on_gpu` does.
    /// The operands are live, and C the caller's alone, until it returns.
    pub(crate) fn plan_by<T: Element, O: Output<T>>(
        &self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        on_gpu: impl FnOnce(&Arc<Gpu>, &Problem, &Request) -> Result<(GpuPlan, Origin), Error>,
    ) -> Result<Plan<T, O>, Error> {
        let layouts = [a.layout(), b.layout(), c.layout()];
        check_shapes(layouts[0], layouts[1], Some(layouts[2]))?;
        check_device(&self.device, [a.device(), b.device(), c.device()])?;
        let (m, n, k) = (a.rows(), b.cols(), a.cols());
        let input = match (T::DTYPE, self.precision) {
            (DType::F32, Precision::Tf32) => DType::Tf32,
            (input, Precision::Tf32) => return Err(Error::PrecisionIgnored { input }),
            (input, Precision::Ieee) => input,
        };
        let (work, info) = match self.device.kind() {
            Kind::Cpu => {
                self.check_nothing_forced()?;
                (
                    Work::Cpu(CpuPlan::new::<T, O>(m, n, k)?),
                    PlanInfo::cpu(m, n, k),
                )
            }
            Kind::Gpu(gpu) => {
                let problem = Problem {
                    m: dimension("M", m)?,
                    n: dimension("N", n)?,
                    k: dimension("K", k)?,
                    input,
                    output: O::OUTPUT,
                    a: operand(a.address(), layouts[0]),
                    b: operand(b.address(), layouts[1]),
                    c: operand(c.address(), layouts[2]),
                };
                let (plan, origin) = on_gpu(gpu, &problem, &self.request)?;
                let info = plan.info(origin);
                (Work::Gpu(Box::new(plan)), info)
            }
        };
        Ok(Plan {
            device: self.device.clone(),
            layouts,
            work,
            info,
            types: PhantomData,
        })
    }

    /// The CPU has no kernels, blocks or TF32 units. It has no tiles either, but an order
    /// or a schedule of them changes no result, so that portable code may name one.
    fn check_nothing_forced(&self) -> Result<(), Error> {
        let Request {
            kernel,
            family,
            block,
            order: _,
            schedule: _,
            // The CPU device reads operands where they are, so that it has
            // nothing to forbid.
            packing: _,
        } = &self.request;
        let what = match (kernel, family, block, self.precision) {
            (Some(name), ..) => format!("kernel {name}"),
            (_, Some(family), ..) => format!("family {}", family.name()),
            (_, _, Some(block), _) => format!("{block:?}"),
            (.., Precision::Tf32) => "precision Tf32".into(),
            _ => return Ok(()),
        };
        Err(Error::CpuHasNoKernels { what })
    }
}

/// An error unless A is M×K, B K×N and C, if it is there, M×N.
pub(crate) fn check_shapes(a: Layout, b: Layout, c: Option<Layout>) -> Result<(), Error> {
    let product = (a.rows, b.cols);
    let c = c.map_or(product, |c| (c.rows, c.cols));
    if a.cols != b.rows || c != product {
        return Err(Error::ShapeMismatch {
            a: (a.rows, a.cols),
            b: (b.rows, b.cols),
            c,
        });
    }
    Ok(())
}

/// An error unless all operands are on `expected`.
pub(crate) fn check_device(expected: &Device, operands: [&Device; 3]) -> Result<(), Error> {
    for (operand, found) in ["a", "b", "c"].into_iter().zip(operands) {
        if found != expected {
            return Err(Error::DeviceMismatch {
                operand,
                found: found.to_string(),
                expected: expected.to_string(),
            });
        }
    }
    Ok(())
}

/// A dimension as the kernels count it.
fn dimension(dimension: &'static str, value: usize) -> Result<u32, Error> {
    if value as u64 > GemmParams::MAX_DIM {
        return Err(Error::DimensionTooLarge {
            dimension,
            value,
            max: GemmParams::MAX_DIM as usize,
        });
    }
    Ok(value as u32)
}

fn operand(address: u64, layout: Layout) -> Operand {
    Operand {
        address,
        row_stride: layout.row_stride as u64,
        col_stride: layout.col_stride as u64,
    }
}

/// C = A·B for operands of one shape, layout and device.
#[derive(Debug)]
pub struct Plan<T, O> {
    device: Device,
    /// Of A, B and C.
    layouts: [Layout; 3],
    work: Work,
    info: PlanInfo,
    types: PhantomData<fn(T) -> O>,
}

#[derive(Debug)]
enum Work {
    Cpu(CpuPlan),
    Gpu(Box<GpuPlan>),
}

impl<T: Element, O: Output<T>> Plan<T, O> {
    /// Computes C = A·B. Overwrites C; with K = 0 C becomes zeros; with M or
    /// N = 0 there is nothing to do.
    ///
    /// On a GPU this enqueues the work on [`Device::stream`] and returns:
    /// [`Device::synchronize`], or reading C, waits for it. It allocates
    /// nothing and may be captured into a graph, which then holds addresses of
    /// the operands and of the plan: keep them as long as the graph. On the CPU
    /// the work is done when it returns.
    ///
    /// # Errors
    /// [`Error::PlanMismatch`] and [`Error::DeviceMismatch`] for other operands
    /// than planned; [`Error::Misaligned`] and [`Error::Capturing`] for
    /// addresses that kernels through TMA cannot take, or not now;
    /// [`Error::Driver`] when the device has failed.
    pub fn run(
        &mut self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<(), Error> {
        self.run_views(a.as_view(), b.as_view(), c.as_view_mut())
    }

    /// [`Plan::run`], compiled once for all kinds of operands.
    fn run_views(
        &mut self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
    ) -> Result<(), Error> {
        let given = [a.layout(), b.layout(), c.layout()];
        for (index, operand) in ["a", "b", "c"].into_iter().enumerate() {
            if given[index] != self.layouts[index] {
                return Err(Error::PlanMismatch {
                    operand,
                    found: given[index],
                    planned: self.layouts[index],
                });
            }
        }
        check_device(&self.device, [a.device(), b.device(), c.device()])?;
        match &mut self.work {
            Work::Cpu(plan) => {
                plan.run(a, b, c);
                Ok(())
            }
            // SAFETY: the views are live, on the plan's device and of the
            // planned layouts; their memory is freed behind the stream.
            Work::Gpu(plan) => unsafe { plan.run([a.address(), b.address(), c.address()]) },
        }
    }

    /// What the plan does.
    pub fn info(&self) -> &PlanInfo {
        &self.info
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_past_what_a_kernel_can_index_are_named() {
        let max = GemmParams::MAX_DIM as usize;
        assert_eq!(dimension("K", max), Ok(max as u32));
        let value = max + 1;
        let error = dimension("K", value).unwrap_err();
        assert_eq!(
            error,
            Error::DimensionTooLarge {
                dimension: "K",
                value,
                max
            }
        );
        assert_eq!(
            error.to_string(),
            "K = 2147479552; accepted: at most 2147479551"
        );
    }

    #[test]
    fn handles_may_cross_threads() {
        fn crosses<T: Send + Sync>() {}
        crosses::<Device>();
        crosses::<crate::Matrix<f32>>();
        crosses::<MatrixView<f32>>();
        crosses::<MatrixViewMut<f32>>();
        crosses::<Plan<f32, f32>>();
    }
}
