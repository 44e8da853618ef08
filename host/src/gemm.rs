//! [`Gemm`]: forced choices, the epilogue, and planning.
//!
//! Planning takes the layouts of a product. It checks everything, chooses the kernel,
//! loads it and allocates the workspace.

use std::sync::Arc;

use gpu_kernels::{Block, Family, Schedule, TileOrder};

use crate::cpu::CpuPlan;
use crate::device::{Device, Kind};
use crate::element::{Element, Output};
use crate::epilogue::Epilogue;
use crate::error::Error;
use crate::gpu::opened::Gpu;
use crate::gpu::plan::GpuPlan;
use crate::layout::Layout;
use crate::operands::Operands;
use crate::plan::{Plan, check_devices};
use crate::plan_cache::Key;
use crate::plan_info::{CpuPlanInfo, Origin, PlanInfo};
use crate::precision::Precision;
use crate::select::{self, Packing, Problem, Request, line_classes};
use crate::untyped_plan::{UntypedPlan, Work};
use crate::view::{AsView, AsViewMut, MatrixView, MatrixViewMut};

/// A product to plan: its device, its epilogue and the forced choices. [`select`] makes the choices
/// that are not forced.
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
    alignment: Option<usize>,
    request: Request,
    /// What is done to A·B before it becomes C.
    pub(crate) epilogue: Epilogue,
}

impl Gemm {
    /// C = A·B on `device` with nothing forced.
    pub fn new(device: &Device) -> Gemm {
        Gemm {
            device: device.clone(),
            precision: Precision::default(),
            alignment: None,
            request: Request::default(),
            epilogue: Epilogue::new(),
        }
    }

    /// The device that computes the product.
    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Forces a family of kernels. Operands that a hopper kernel cannot read are then
    /// packed even where packing does not pay, unless [`Gemm::packing`] forbids it.
    pub fn family(mut self, family: Family) -> Gemm {
        self.request.family = Some(family);
        self
    }

    /// Forces a kernel by the name of its entry point. Operands are packed as for
    /// [`Gemm::family`].
    pub fn kernel(mut self, name: &str) -> Gemm {
        self.request.kernel = Some(name.to_owned());
        self
    }

    /// Forces a CTA tile.
    pub fn block(mut self, block: Block) -> Gemm {
        self.request.block = Some(block);
        self
    }

    /// Forces a tile order. The CPU has no tiles and ignores the order, so that portable
    /// code may name one; [`CpuPlanInfo::ignored_order`] reports it.
    pub fn order(mut self, order: TileOrder) -> Gemm {
        self.request.order = Some(order);
        self
    }

    /// Forces a schedule. The CPU has no schedules and ignores it;
    /// [`CpuPlanInfo::ignored_schedule`] reports it.
    pub fn schedule(mut self, schedule: Schedule) -> Gemm {
        self.request.schedule = Some(schedule);
        self
    }

    /// Sets whether operands may be packed. A packed operand is copied, before each
    /// product, into memory that the plan owns, so that a hopper kernel can read it.
    pub fn packing(mut self, packing: Packing) -> Gemm {
        self.request.packing = packing;
        self
    }

    /// Forces the number of classes into which the lines of A or B are divided, so that the tiles
    /// of a class begin on cache lines: 1 (none), 2, 4 or 8
    /// ([`gpu_kernels::kernels::hopper::line_classes`]). It changes nothing on the CPU.
    pub fn line_classes(mut self, classes: u32) -> Gemm {
        self.request.line_classes = Some(classes);
        self
    }

    /// Sets how f32 elements are multiplied. For other types, only [`Precision::Ieee`] is
    /// accepted.
    pub fn precision(mut self, precision: Precision) -> Gemm {
        self.precision = precision;
        self
    }

    /// Sets whether results are batch-invariant: whether the bits of each row of C depend on
    /// nothing but that row of A, B, K, the types and the epilogue's parts for that row. They
    /// are then the same whatever M and N are, and wherever the row stands; whatever the
    /// number of products, the layouts and the alignment; whatever tile, cluster, tile order
    /// and schedule are chosen, forced or measured. They may differ between GPUs of another
    /// architecture, the CPU, and versions of this library.
    ///
    /// Every sum over K is then a single sum in the order of K, by one family of kernels that
    /// the architecture and the element type decide ([`select::SumOrder`]):
    ///
    /// - Kernels that split K, and [`Schedule::StreamK`], are not chosen. Forcing one of them,
    ///   or another family, is an error that says what is accepted.
    /// - Operands that the kernels of the family cannot read are packed, even where it does not
    ///   pay. With [`Packing::Never`] they are an error. On Hopper GPUs, kernels that load lines
    ///   through registers read f16 and bf16 lines that begin anywhere, and have the same bits.
    /// - Gated pairs in a batch with a 16-bit C, which Hopper kernels cannot compute, are an
    ///   error on Hopper GPUs.
    ///
    /// ```
    /// use tilewise::{Device, Gemm, Inputs};
    ///
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = Device::cpu();
    /// let gemm = Gemm::new(&device).batch_invariant(true);
    /// let numbers = |step: f32| (0..24).map(|i| (step * i as f32).sin()).collect::<Vec<_>>();
    /// let a = device.from_slice(&numbers(0.7), 3, 8)?;
    /// let b = device.from_slice(&numbers(0.3), 8, 3)?;
    /// let mut all = device.zeros::<f32>(3, 3)?;
    /// gemm.run(&a, &b, &mut all, &Inputs::new())?;
    ///
    /// // The last row of A alone gives the last row of C, bit for bit.
    /// let mut last = device.zeros::<f32>(1, 3)?;
    /// gemm.run(a.view().slice(2..3, 0..8)?, &b, &mut last, &Inputs::new())?;
    /// assert_eq!(last.to_vec()?, all.to_vec()?[6..]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn batch_invariant(mut self, batch_invariant: bool) -> Gemm {
        self.request.batch_invariant = batch_invariant;
        self
    }

    /// Plans for operands whose addresses are multiples of `bytes`, a power of two, but
    /// not necessarily of any larger power of two.
    ///
    /// TMA needs addresses that are multiples of 16 bytes, and running a plan for a hopper
    /// kernel returns [`Error::Misaligned`] where an operand begins elsewhere. The
    /// allocations of a [`Device`] are aligned to 256 bytes; a slice of one may not be.
    /// [`Gemm::plan_for`] assumes whole allocations, and [`Gemm::plan`] takes the alignment
    /// of its operands. Call this method to plan for operands with a smaller alignment.
    pub fn alignment(mut self, bytes: usize) -> Gemm {
        self.alignment = Some(bytes);
        self
    }

    /// Sets what is done to A·B before it becomes C.
    pub fn epilogue(mut self, epilogue: Epilogue) -> Gemm {
        self.epilogue = epilogue;
        self
    }

    /// Plans C = A·B, with A M×K, B K×N and C M×N (M×N/2 for a gated epilogue), or a batch
    /// of such products. C has any element type, whatever the type of A and B. Operands are
    /// matrices or views. Planning reads no element.
    ///
    /// A and B of a batch have as many matrices as C, or one that all products share.
    ///
    /// This is [`Gemm::plan_for`] with the layouts and the alignment of the given operands.
    /// The plan also runs on any other operands of the same layouts.
    ///
    /// # Errors
    /// Those of [`Gemm::plan_for`], and [`Error::DeviceMismatch`].
    pub fn plan<T: Element, O: Output<T>>(
        &self,
        a: impl AsView<T>,
        b: impl AsView<T>,
        mut c: impl AsViewMut<O>,
    ) -> Result<Plan<T, O>, Error> {
        let (a, b, c) = (a.as_view(), b.as_view(), c.as_view_mut());
        let operands = self.operands(a, b, &c)?;
        self.plan_operands(operands)
    }

    /// Plans C = A·B from the layouts of A (M×K), B (K×N) and C (M×N) alone. Planning needs
    /// no operands and copies none.
    ///
    /// ```
    /// use tilewise::{Device, Gemm, Layout};
    ///
    /// # fn main() -> Result<(), tilewise::Error> {
    /// let device = Device::cpu();
    /// // A is stored as its transpose, row-major.
    /// let a = Layout::row_major(2, 3).transposed();
    /// let (b, c) = (Layout::row_major(2, 4), Layout::row_major(3, 4));
    /// let mut plan = Gemm::new(&device).plan_for::<f32, f32>(a, b, c)?;
    ///
    /// let stored_a = device.from_slice(&[1.0_f32; 6], 2, 3)?;
    /// let b = device.from_slice(&[1.0_f32; 8], 2, 4)?;
    /// let mut c = device.zeros::<f32>(3, 4)?;
    /// plan.run(stored_a.view().t(), &b, &mut c)?;
    /// assert_eq!(c.to_vec()?, [2.0; 12]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - Layouts that do not belong together: [`Error::ShapeMismatch`],
    ///   [`Error::BatchMismatch`], and [`Error::Epilogue`] for a gated epilogue.
    /// - Layouts that no matrix can have: [`Error::SizeOverflow`], [`Error::Aliasing`].
    /// - Problems past a limit: [`Error::DimensionTooLarge`], [`Error::TooManyTiles`].
    /// - Forced choices that are not possible: [`Error::UnknownKernel`],
    ///   [`Error::KernelCannotRun`], [`Error::NoKernel`], [`Error::OrderIgnored`],
    ///   [`Error::BatchedGrid2d`], [`Error::Alignment`], [`Error::LineClasses`],
    ///   [`Error::PrecisionIgnored`], [`Error::CpuHasNoKernels`].
    /// - Errors of the device: [`Error::DriverTooOld`], [`Error::Compile`],
    ///   [`Error::OutOfMemory`], [`Error::Driver`].
    pub fn plan_for<T: Element, O: Output<T>>(
        &self,
        a: Layout,
        b: Layout,
        c: Layout,
    ) -> Result<Plan<T, O>, Error> {
        let element_bytes = [size_of::<T>(), size_of::<T>(), size_of::<O>()];
        let layouts = [a, b, c];
        self.plan_operands(Operands::of_layouts(
            layouts,
            element_bytes,
            &self.epilogue,
        )?)
    }

    /// Plans by the rule of [`select`].
    fn plan_operands<T: Element, O: Output<T>>(
        &self,
        operands: Operands,
    ) -> Result<Plan<T, O>, Error> {
        let plan = self.untyped_plan::<T, O>(operands)?;
        Ok(Plan::new(&self.device, plan))
    }

    /// [`Gemm::plan_operands`] without the element types in its result.
    pub(crate) fn untyped_plan<T: Element, O: Output<T>>(
        &self,
        operands: Operands,
    ) -> Result<UntypedPlan, Error> {
        self.device.with_room(|| {
            self.plan_by::<T, O>(operands, |gpu, problem, request| {
                let target = gpu.info().target();
                let choice = select::choose(gpu.backend().catalog(), problem, &target, request)?;
                Ok((GpuPlan::new(gpu, choice, problem)?, Origin::Rule))
            })
        })
    }

    /// The layouts and the alignment that a plan for these operands is made for.
    pub(crate) fn operands<T: Element, O: Output<T>>(
        &self,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: &MatrixViewMut<O>,
    ) -> Result<Operands, Error> {
        let addresses = match self.device.kind() {
            // The CPU takes operands at any address.
            Kind::Cpu => [0; 3],
            Kind::Gpu(_) => [a.address(), b.address(), c.address()],
        };
        let layouts = [a.layout(), b.layout(), c.layout()];
        let element_bytes = [size_of::<T>(), size_of::<T>(), size_of::<O>()];
        let operands = Operands::new(layouts, addresses, element_bytes, &self.epilogue)?;
        check_devices(&self.device, [a.device(), b.device(), c.device()])?;
        Ok(operands)
    }

    /// What a plan for `operands` can be used for.
    ///
    /// # Errors
    /// [`Error::PrecisionIgnored`], [`Error::LineClasses`], [`Error::Alignment`].
    pub(crate) fn key<T: Element, O: Output<T>>(&self, operands: Operands) -> Result<Key, Error> {
        let input = self.precision.of(T::DTYPE)?;
        if let Some(classes) = self.request.line_classes
            && !line_classes::exist(classes)
        {
            return Err(Error::LineClasses { classes });
        }
        Ok(Key {
            input,
            output: O::DTYPE,
            operands: match self.alignment {
                None => operands,
                Some(bytes) if bytes.is_power_of_two() => operands.aligned_at_most(bytes as u64),
                Some(bytes) => return Err(Error::Alignment { bytes }),
            },
            epilogue: self.epilogue.form(),
            request: self.request.clone(),
        })
    }

    /// Plans the product of `operands`. On a GPU, `on_gpu` makes the plan.
    pub(crate) fn plan_by<T: Element, O: Output<T>>(
        &self,
        operands: Operands,
        on_gpu: impl FnOnce(&Arc<Gpu>, &Problem, &Request) -> Result<(GpuPlan, Origin), Error>,
    ) -> Result<UntypedPlan, Error> {
        let Key {
            input, operands, ..
        } = self.key::<T, O>(operands)?;
        let (work, info) = match self.device.kind() {
            Kind::Cpu => {
                self.check_nothing_forced()?;
                let [m, n, k] = operands.shape();
                let plan = CpuPlan::new::<T, O>(
                    [m, n, k],
                    &self.epilogue.form(),
                    self.request.batch_invariant,
                )?;
                let info = CpuPlanInfo {
                    m,
                    n,
                    k,
                    batches: operands.batches(),
                    ignored_order: self.request.order,
                    ignored_schedule: self.request.schedule,
                    workspace_bytes: plan.workspace_bytes(),
                };
                (Work::Cpu(plan), PlanInfo::Cpu(info))
            }
            Kind::Gpu(gpu) => {
                let problem = operands.problem(input, O::OUTPUT, self.epilogue.form())?;
                let (plan, origin) = on_gpu(gpu, &problem, &self.request)?;
                let info = plan.info(origin);
                (Work::Gpu(Box::new(plan)), PlanInfo::Gpu(info))
            }
        };
        Ok(UntypedPlan {
            operands,
            epilogue: self.epilogue,
            work,
            info,
        })
    }

    /// Returns an error if a kernel, a family, a block or TF32 is forced: the CPU has none
    /// of them. It has no tiles either, but a tile order or a schedule changes no result,
    /// so portable code may force one; and its f32 products are exact enough for f16x3.
    fn check_nothing_forced(&self) -> Result<(), Error> {
        let Request {
            kernel,
            family,
            block,
            order: _,
            schedule: _,
            // The CPU device reads operands in place, so there is no packing to forbid.
            packing: _,
            // The CPU has no cache lines to straddle.
            line_classes: _,
            // The CPU's own sums have an order of K alone where that is asked for.
            batch_invariant: _,
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
