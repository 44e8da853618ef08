//! Batch-invariant results: random parts of a product, computed alone, in other layouts, by
//! other tiles, orders and schedules, or in a batch, have the bits of the whole product.
//!
//! Case `i` of seed `s` is a function of `s` and `i` alone, data included, so that
//! `--seed s --exact 'batch-invariant/i/…'` replays it.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;

use gpu_kernels::entry::KERNELS;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::select::{Catalog, SumOrder};
use tilewise::{
    Activation, Bias, DType, Device, Element, Epilogue, Error, Gated, Gemm, Inputs, Layout, Matrix,
    MatrixView, Output, OutputType, Schedule, TileOrder, f16,
};

use crate::case::{Failure, Outcome, with_types};
use crate::errors::ErrorCase;
use crate::shared::Shared;
use crate::test::is_emulated;

/// Number of cases, and on emulated GPUs.
pub const CASES: (usize, usize) = (150, 24);

/// Parts that each case compares with the whole.
const PARTS: usize = 12;

/// What shows that the comparisons tell apart.
pub const DEVICE_CASES: [ErrorCase; 1] = [(
    "batch-invariant/other-sums-have-other-bits",
    other_sums_have_other_bits,
    false,
)];

/// The epilogue of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Plain,
    /// All parts but pairs.
    All,
    /// A bias by row, and an activation.
    PerRow,
    /// Pairs of columns side by side.
    Pairs,
}

/// A product whose parts are compared with it.
#[derive(Clone, Copy, Debug)]
pub struct InvariantCase {
    /// The number of the case.
    index: usize,
    /// Element type of A and B.
    pub input: DType,
    /// Element type of C.
    pub output: OutputType,
    /// M, columns of C, K.
    shape: [usize; 3],
    form: Form,
    /// The powers of two over which elements spread.
    binades: i32,
}

impl fmt::Display for InvariantCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let InvariantCase {
            index,
            input,
            output,
            shape: [m, n, k],
            form,
            binades,
        } = self;
        let (input, output) = (input.name(), output.dtype(*input).name());
        write!(
            f,
            "batch-invariant/{index}/{input}:{output}/{m}x{n}x{k}/{form:?}/2^{binades}"
        )
    }
}

/// Case `index` of `seed`, in small where the GPU is `emulated`.
pub fn case(seed: u64, index: usize, emulated: bool) -> InvariantCase {
    let mut random = random(seed, index, "case");
    let inputs = [
        DType::F16,
        DType::Bf16,
        DType::F16,
        DType::Bf16,
        DType::Tf32,
        DType::F16x3,
        DType::F32,
    ];
    let outputs = [OutputType::Input, OutputType::F32];
    let forms = [
        Form::Plain,
        Form::Plain,
        Form::All,
        Form::PerRow,
        Form::Pairs,
    ];
    let [most_m, most_n, most_k] = match emulated {
        true => [200, 150, 600],
        false => [2000, 2000, 4000],
    };
    let mut side = |most: usize| match random.random_range(0..3) {
        0 => random.random_range(1..=most),
        1 => random.random_range(1..=most.div_ceil(8)) * 8,
        _ => random.random_range(1..=most / 8),
    };
    let shape = [side(most_m), side(most_n), side(most_k)];
    InvariantCase {
        index,
        input: inputs[index % inputs.len()],
        output: pick(&mut random, &outputs),
        shape,
        form: pick(&mut random, &forms),
        binades: pick(&mut random, &[0, 0, 6, 12]),
    }
}

fn random(seed: u64, index: usize, what: &str) -> StdRng {
    let mut hasher = DefaultHasher::new();
    (seed, index, "batch-invariant", what).hash(&mut hasher);
    StdRng::seed_from_u64(hasher.finish())
}

fn pick<T: Copy>(random: &mut StdRng, values: &[T]) -> T {
    *values.choose(random).expect("not empty")
}

/// A random part of 0..`end`, often a short one.
fn part(random: &mut StdRng, end: usize) -> Range<usize> {
    let most = pick(random, &[1, 16, 130, end]).min(end);
    let len = random.random_range(1..=most);
    let first = random.random_range(0..=end - len);
    first..first + len
}

impl InvariantCase {
    /// Computes the whole product and its parts.
    pub fn run(&self, device: &Shared, seed: u64) -> Result<Outcome, Failure> {
        let random = &mut random(seed, self.index, "data");
        device.turn(|device| {
            with_types!(self, compare(self, device, random))?;
            Ok(Outcome::Right(0.0))
        })
    }

    /// Columns of B for each column of C.
    fn pair(&self) -> usize {
        if self.form == Form::Pairs { 2 } else { 1 }
    }

    fn epilogue(&self) -> Epilogue {
        let plain = Epilogue::new();
        match self.form {
            Form::Plain => plain,
            Form::All => plain
                .alpha(0.7)
                .beta(1.3)
                .row_scale()
                .col_scale()
                .bias(Bias::PerColumn)
                .activation(Activation::Gelu),
            Form::PerRow => plain.bias(Bias::PerRow).activation(Activation::Relu),
            Form::Pairs => plain
                .alpha(0.7)
                .bias(Bias::PerColumn)
                .activation(Activation::Silu)
                .gated(Gated::Interleaved),
        }
    }

    fn gemm(&self, device: &Device) -> Gemm {
        Gemm::new(device)
            .epilogue(self.epilogue())
            .precision(self.input.into())
            .batch_invariant(true)
    }

    /// A kernel that the selection may take: one for all parts, because the driver compiles
    /// each for seconds.
    fn kernel(&self, device: &Device, random: &mut StdRng) -> &'static str {
        let catalog = match is_emulated(device) {
            // It runs the kernels' functions, which no build lacks.
            true => Catalog {
                kernels: KERNELS,
                is_built: |_| true,
            },
            false => Catalog::embedded(),
        };
        let target = device.gpu_info().expect("it is a GPU").target();
        let k = self.shape[2] as u32;
        let order = SumOrder::invariant(catalog, self.input, k, &target);
        let order = order.expect("there is a kernel");
        let allowed: Vec<&str> = (KERNELS.iter())
            .filter(|kernel| kernel.input == self.input && SumOrder::of(kernel, k) == Some(order))
            .map(|kernel| kernel.name)
            .collect();
        pick(random, &allowed)
    }
}

/// `kernel`, or an order and a schedule, forced now and then.
fn force(gemm: Gemm, kernel: &str, random: &mut StdRng) -> Gemm {
    match random.random_range(0..4) {
        0 => gemm,
        1 => gemm
            .order(pick(random, &TileOrder::all(3)))
            .schedule(pick(random, &[Schedule::Grid1d, Schedule::Persistent])),
        _ => gemm.kernel(kernel),
    }
}

/// The operands of the whole product.
struct Whole<T, O> {
    a: Matrix<T>,
    b: Matrix<T>,
    source: Matrix<O>,
    row_bias: Matrix<O>,
    col_bias: Matrix<O>,
    row_scale: Matrix<f32>,
    col_scale: Matrix<f32>,
}

impl<T: Element, O: Output<T>> Whole<T, O> {
    fn draw(case: &InvariantCase, device: &Device, random: &mut StdRng) -> Result<Self, Error> {
        let [m, n, k] = case.shape;
        let wide = n * case.pair();
        Ok(Whole {
            a: operand(case, device, random, (m, k))?,
            b: operand(case, device, random, (k, wide))?,
            source: operand(case, device, random, (m, n))?,
            row_bias: vector(device, random, (m, 1))?,
            col_bias: vector(device, random, (1, wide))?,
            row_scale: vector(device, random, (m, 1))?,
            col_scale: vector(device, random, (1, wide))?,
        })
    }

    /// The inputs for these rows and columns of C.
    fn inputs(
        &self,
        case: &InvariantCase,
        rows: &Range<usize>,
        cols: &Range<usize>,
    ) -> Result<Inputs<'_, O>, Error> {
        let pair = case.pair();
        let wide = || cols.start * pair..cols.end * pair;
        let col_bias = self.col_bias.view().slice(0..1, wide())?;
        let row_bias = self.row_bias.view().slice(rows.clone(), 0..1)?;
        let none = Inputs::new();
        Ok(match case.form {
            Form::Plain => none,
            Form::Pairs => none.bias(col_bias),
            Form::PerRow => none.bias(row_bias),
            Form::All => none
                .bias(col_bias)
                .source(self.source.view().slice(rows.clone(), cols.clone())?)
                .row_scale(self.row_scale.view().slice(rows.clone(), 0..1)?)
                .col_scale(self.col_scale.view().slice(0..1, wide())?),
        })
    }
}

/// A random matrix, by rows or by columns, with a pitch of any length.
fn operand<T: Element>(
    case: &InvariantCase,
    device: &Device,
    random: &mut StdRng,
    (rows, cols): (usize, usize),
) -> Result<Matrix<T>, Error> {
    let gap = pick(random, &[0, 0, 1, 8]);
    let (row_stride, col_stride) = match random.random() {
        true => (cols + gap, 1),
        false => (1, rows + gap),
    };
    let elements: Vec<T> = (0..rows * cols)
        .map(|_| {
            let power = random.random_range(-case.binades..=0);
            T::from_f64(random.random_range(-1.0..1.0) * f64::from(power).exp2())
        })
        .collect();
    let mut matrix = device.zeros_strided(rows, cols, row_stride, col_stride)?;
    matrix.copy_from_slice(&elements)?;
    Ok(matrix)
}

fn vector<T: Element>(
    device: &Device,
    random: &mut StdRng,
    (rows, cols): (usize, usize),
) -> Result<Matrix<T>, Error> {
    let elements: Vec<T> = (0..rows * cols)
        .map(|_| T::from_f64(random.random_range(-2.0..2.0)))
        .collect();
    device.from_slice(&elements, rows, cols)
}

fn compare<T: Element, O: Output<T>>(
    case: &InvariantCase,
    device: &Device,
    random: &mut StdRng,
) -> Result<(), Failure> {
    let [m, n, k] = case.shape;
    let whole = Whole::<T, O>::draw(case, device, random)?;
    let gemm = case.gemm(device);
    let mut c = device.zeros::<O>(m, n)?;
    let inputs = whole.inputs(case, &(0..m), &(0..n))?;
    let kernel = case.kernel(device, random);
    let forced = gemm.clone().kernel(kernel);
    match forced.run(&whole.a, &whole.b, &mut c, &inputs) {
        // Some kernels compute no epilogue, no batch, or C in one layout only.
        Err(Error::KernelCannotRun { .. }) => gemm.run(&whole.a, &whole.b, &mut c, &inputs)?,
        done => done?,
    }
    let expected = c.to_vec()?;
    for _ in 0..PARTS {
        let (rows, cols) = (part(random, m), part(random, n));
        let wide = cols.start * case.pair()..cols.end * case.pair();
        let a = whole.a.view().slice(rows.clone(), 0..k)?;
        let b = whole.b.view().slice(0..k, wide)?;
        let batches = match case.form {
            Form::Plain if rows.len().is_multiple_of(2) => pick(random, &[1, 2]),
            _ => 1,
        };
        let forced = force(gemm.clone(), kernel, random);
        let inputs = whole.inputs(case, &rows, &cols)?;
        let run = |gemm: &Gemm, random: &mut StdRng| {
            run_part::<T, O>(gemm, (a, b), cols.len(), batches, &inputs, random)
        };
        let found = match run(&forced, random) {
            Err(Error::KernelCannotRun { .. }) => run(&gemm, random)?,
            found => found?,
        };
        let of_whole = (rows.clone()).flat_map(|row| &expected[row * n..][cols.clone()]);
        let differing = found
            .iter()
            .zip(of_whole)
            .filter(|(found, expected)| bytemuck::bytes_of(*found) != bytemuck::bytes_of(*expected))
            .count();
        if differing > 0 {
            return Err(Failure::Wrong(format!(
                "{differing} of {} elements of rows {rows:?} and columns {cols:?}, {batches} \
                 products, by {forced:?}, have other bits than in the whole product",
                found.len()
            )));
        }
    }
    Ok(())
}

/// A part of C, row by row, computed into a matrix of its own; its rows as so many products.
fn run_part<T: Element, O: Output<T>>(
    gemm: &Gemm,
    (a, b): (MatrixView<T>, MatrixView<T>),
    cols: usize,
    batches: usize,
    inputs: &Inputs<O>,
    random: &mut StdRng,
) -> Result<Vec<O>, Error> {
    let rows = a.rows() / batches;
    let (row_stride, col_stride) = (a.row_stride(), a.col_stride());
    let a_layout = Layout::strided(rows, a.cols(), row_stride, col_stride);
    let a = a.with_layout(a_layout.batched_by(batches, rows * row_stride))?;
    let gap = pick(random, &[0, 0, 1, 8]);
    let (row_stride, col_stride) = match random.random() {
        true => (cols + gap, 1),
        false => (1, batches * rows + gap),
    };
    let mut memory =
        (a.device()).zeros_strided::<O>(a.rows() * batches, cols, row_stride, col_stride)?;
    let layout = Layout::strided(rows, cols, row_stride, col_stride);
    let c = (memory.view_mut()).with_layout(layout.batched_by(batches, rows * row_stride))?;
    gemm.run(a, b, c, inputs)?;
    memory.to_vec()
}

/// Two sums over halves of K have other bits than one: on a Hopper GPU, the comparisons above
/// would see them.
fn other_sums_have_other_bits(device: &Device) -> Result<(), String> {
    let info = device.gpu_info().expect("it is a GPU");
    if info.compute_capability != (9, 0) {
        return Ok(());
    }
    let bits = |gemm: Gemm| -> Result<Vec<f32>, Error> {
        let (mut random, k) = (StdRng::seed_from_u64(1), 1024);
        let a = vector::<f16>(device, &mut random, (64, k))?;
        let b = vector::<f16>(device, &mut random, (k, 64))?;
        let mut c = device.zeros::<f32>(64, 64)?;
        gemm.run(&a, &b, &mut c, &Inputs::new())?;
        c.to_vec()
    };
    let gemm = Gemm::new(device);
    let split = (gemm.clone()).kernel("hopper_f16_ak_bn_64x64x64_split2");
    let [split, invariant] = [split, gemm.batch_invariant(true)]
        .map(|gemm| bits(gemm).map_err(|error| error.to_string()));
    match split? == invariant? {
        true => Err("two sums of half of K have the bits of one sum".into()),
        false => Ok(()),
    }
}
