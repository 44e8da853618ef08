//! One product with an epilogue, a batch or another type of C: its name, and how it runs.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::{
    Activation, Bias, DType, Device, Element, Epilogue, Error, Gated, Gemm, Inputs, KernelInfo,
    Output, OutputType, Plan, oracle,
};

use crate::arrangement::{Arrangement, Placement};
use crate::case::{Data, Failure, Outcome, with_types};
use crate::guarded::{Guarded, Resident};
use crate::reference;
use crate::shared::Shared;

/// Where the matrices of a batch lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchStride {
    /// One after the other, at multiples of 8 elements.
    Lines,
    /// One after the other, at odd distances.
    Odd,
    /// Row by row, or column by column: the first line of each, then the second of each.
    Interleaved,
    /// All are one matrix.
    Shared,
}

impl BatchStride {
    /// `batches` matrices like `placement`.
    fn place(self, placement: Placement, batches: usize) -> Placement {
        let mut layout = placement.layout;
        let span = layout.batched(batches).batch_stride;
        layout = match self {
            _ if batches == 1 => layout,
            BatchStride::Lines => layout.batched_by(batches, span.next_multiple_of(8)),
            BatchStride::Odd => layout.batched_by(batches, span | 1),
            BatchStride::Shared => layout.batched_by(batches, 0),
            BatchStride::Interleaved => {
                let along_rows = layout.rows > 1 && layout.row_stride > layout.col_stride;
                let line = if layout.cols == 1 || along_rows {
                    &mut layout.row_stride
                } else {
                    &mut layout.col_stride
                };
                let pitch = *line;
                *line *= batches;
                layout.batched_by(batches, pitch)
            }
        };
        Placement {
            layout,
            ..placement
        }
    }

    fn name(self) -> &'static str {
        match self {
            BatchStride::Lines => "lines",
            BatchStride::Odd => "odd",
            BatchStride::Interleaved => "interleaved",
            BatchStride::Shared => "shared",
        }
    }
}

/// The source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// There is none.
    None,
    /// Old values of C.
    InPlace,
    /// A matrix.
    Matrix(Arrangement, BatchStride),
}

/// The parts of an epilogue, without their values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parts {
    /// Whether there is an α.
    pub scaled: bool,
    /// The axis of the bias.
    pub bias: Option<Bias>,
    /// Whether rows have scales.
    pub row_scale: bool,
    /// Whether columns have scales.
    pub col_scale: bool,
    /// The activation.
    pub activation: Activation,
    /// Pairs of columns.
    pub gated: Option<Gated>,
    /// Whether there is a source.
    pub has_source: bool,
}

impl Parts {
    /// C = A·B.
    pub const PLAIN: Parts = Parts {
        scaled: false,
        bias: None,
        row_scale: false,
        col_scale: false,
        activation: Activation::Identity,
        gated: None,
        has_source: false,
    };

    /// Whether sums of integers stay exact.
    pub fn is_exact(&self) -> bool {
        matches!(
            self.activation,
            Activation::Identity | Activation::Relu | Activation::LeakyRelu(_)
        )
    }

    fn epilogue(&self, alpha: f32, beta: f32) -> Epilogue {
        let mut epilogue = Epilogue::new().activation(self.activation);
        if self.scaled {
            epilogue = epilogue.alpha(alpha);
        }
        if self.has_source {
            epilogue = epilogue.beta(beta);
        }
        if let Some(bias) = self.bias {
            epilogue = epilogue.bias(bias);
        }
        if self.row_scale {
            epilogue = epilogue.row_scale();
        }
        if self.col_scale {
            epilogue = epilogue.col_scale();
        }
        match self.gated {
            None => epilogue,
            Some(gated) => epilogue.gated(gated),
        }
    }
}

/// One product, or a batch.
#[derive(Clone, Copy, Debug)]
pub struct EpilogueCase {
    /// The kernel; `None` leaves it to the library.
    pub kernel: Option<&'static KernelInfo>,
    /// The case's number among those of the kernel.
    pub index: usize,
    /// Element type of A and B.
    pub input: DType,
    /// Element type of C.
    pub output: OutputType,
    /// M, N (the columns of B) and K.
    pub shape: (usize, usize, usize),
    /// Number of products.
    pub batches: usize,
    /// Layouts of A, B, C.
    pub arrangements: [Arrangement; 3],
    /// Where the matrices of A, B, C lie.
    pub strides: [BatchStride; 3],
    /// The epilogue.
    pub parts: Parts,
    /// Its source.
    pub source: Source,
    /// The kind of elements.
    pub data: Data,
}

/// The complete name; a filter with it selects only this case.
impl fmt::Display for EpilogueCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kernel {
            Some(kernel) => f.write_str(kernel.name)?,
            None => write!(f, "chosen_{}", self.input.name())?,
        }
        let (m, n, k) = self.shape;
        let c = self.output.dtype(self.input).name();
        let Parts { activation, .. } = self.parts;
        let batches = self.batches;
        write!(f, "/epilogue/{}/{batches}x{m}x{n}x{k}", self.index)?;
        for (name, (arrangement, stride)) in ["a", "b", "c"]
            .into_iter()
            .zip(self.arrangements.into_iter().zip(self.strides))
        {
            write!(f, "/{name}={}", arrangement.name())?;
            if batches > 1 {
                write!(f, ":{}", stride.name())?;
            }
        }
        write!(f, ":{c}/{activation:?}")?;
        if let Some(gated) = self.parts.gated {
            write!(f, ":{gated:?}")?;
        }
        Ok(())
    }
}

/// All operands on the host.
struct Operands<T, O> {
    a: Guarded<T>,
    b: Guarded<T>,
    c: Guarded<O>,
    source: Guarded<O>,
    bias: Guarded<O>,
    row_scale: Guarded<f32>,
    col_scale: Guarded<f32>,
    epilogue: Epilogue,
}

impl EpilogueCase {
    /// Runs the case once and checks everything.
    pub fn run(&self, device: &Shared, seed: u64) -> Result<Outcome, Failure> {
        with_types!(self, run_once(self, device, seed))
    }

    /// Columns of C.
    fn c_cols(&self) -> usize {
        match self.parts.gated {
            None => self.shape.1,
            Some(_) => self.shape.1 / 2,
        }
    }

    /// The forced choices.
    fn gemm(&self, device: &Device, epilogue: Epilogue) -> Gemm {
        let mut gemm = Gemm::new(device).epilogue(epilogue);
        if let Some(kernel) = self.kernel {
            gemm = gemm.kernel(kernel.name);
        }
        gemm.precision(self.input.into())
    }

    /// A generator of data that depends only on the seed and the name.
    fn random(&self, seed: u64) -> StdRng {
        let mut hasher = DefaultHasher::new();
        (seed, self.to_string()).hash(&mut hasher);
        StdRng::seed_from_u64(hasher.finish())
    }

    /// An element of a matrix or of the bias.
    fn element<T: Element>(&self, random: &mut StdRng) -> T {
        T::from_f64(match self.data {
            Data::Uniform => reference::without_tie(random.random_range(-1.0..1.0)),
            Data::Integers => f64::from(random.random_range(-3..=3)),
        })
    }

    /// A factor: a power of two where the data is exact.
    fn factor(&self, random: &mut StdRng) -> f32 {
        match self.data {
            Data::Uniform => random.random_range(0.25..1.5),
            Data::Integers => [0.5, -1.0, 2.0][random.random_range(0..3)],
        }
    }

    fn draw<T: Element, O: Element>(&self, seed: u64) -> Operands<T, O> {
        let random = &mut self.random(seed);
        let (m, n, k) = self.shape;
        let [a, b, c] = self.arrangements;
        let placed = |arrangement: Arrangement, index: usize, (rows, cols)| {
            self.strides[index].place(arrangement.place(rows, cols), self.batches)
        };
        let of_c = (m, self.c_cols());
        let c = placed(c, 2, of_c);
        let by_row = Arrangement::ColsShifted.place(m, 1);
        let by_column = Arrangement::RowsShifted.place(1, n);
        let source = match self.source {
            Source::Matrix(arrangement, stride) => {
                stride.place(arrangement.place(of_c.0, of_c.1), self.batches)
            }
            _ => c,
        };
        Operands {
            a: Guarded::filled(placed(a, 0, (m, k)), || self.element(random)),
            b: Guarded::filled(placed(b, 1, (k, n)), || self.element(random)),
            c: match self.source {
                Source::InPlace => Guarded::filled(c, || self.element(random)),
                _ => Guarded::poisoned(c),
            },
            source: Guarded::filled(source, || self.element(random)),
            bias: match self.parts.bias {
                Some(Bias::PerColumn) => Guarded::filled(by_column, || self.element(random)),
                _ => Guarded::filled(by_row, || self.element(random)),
            },
            row_scale: Guarded::filled(by_row, || self.factor(random)),
            col_scale: Guarded::filled(by_column, || self.factor(random)),
            epilogue: self
                .parts
                .epilogue(self.factor(random), self.factor(random)),
        }
    }

    /// The inputs of the epilogue, but for a source in place.
    fn inputs<'a, O: Element>(
        &self,
        source: &'a Resident<O>,
        bias: &'a Resident<O>,
        [row_scale, col_scale]: [&'a Resident<f32>; 2],
    ) -> Result<Inputs<'a, O>, Error> {
        let mut inputs = Inputs::new();
        if self.parts.has_source {
            inputs = inputs.source(source.view()?);
        }
        if self.parts.bias.is_some() {
            inputs = inputs.bias(bias.view()?);
        }
        if self.parts.row_scale {
            inputs = inputs.row_scale(row_scale.view()?);
        }
        if self.parts.col_scale {
            inputs = inputs.col_scale(col_scale.view()?);
        }
        Ok(inputs)
    }
}

fn run_once<T: Element, O: Output<T>>(
    case: &EpilogueCase,
    device: &Shared,
    seed: u64,
) -> Result<Outcome, Failure> {
    let operands = case.draw::<T, O>(seed);
    let found = device.turn(|device| {
        let (a, b) = (operands.a.upload(device)?, operands.b.upload(device)?);
        let mut c = operands.c.upload(device)?;
        let (source, bias) = (
            operands.source.upload(device)?,
            operands.bias.upload(device)?,
        );
        let scales = [
            operands.row_scale.upload(device)?,
            operands.col_scale.upload(device)?,
        ];
        let mut inputs = case.inputs(&source, &bias, scales.each_ref())?;
        if case.source == Source::InPlace {
            inputs = inputs.in_place();
        }
        let gemm = case.gemm(device, operands.epilogue);
        let mut plan: Plan<T, O> = gemm.plan(a.view()?, b.view()?, c.view_mut()?)?;
        plan.run_with(a.view()?, b.view()?, c.view_mut()?, &inputs)?;
        let unchanged = [
            ("A", operands.a.is_unchanged(&a.read_back()?)),
            ("B", operands.b.is_unchanged(&b.read_back()?)),
            (
                "the source",
                operands.source.is_unchanged(&source.read_back()?),
            ),
            ("the bias", operands.bias.is_unchanged(&bias.read_back()?)),
        ];
        match unchanged
            .into_iter()
            .find(|(_, is_unchanged)| !is_unchanged)
        {
            Some((name, _)) => Err(Failure::Wrong(format!("wrote to {name}"))),
            None => Ok(c.read_back()?),
        }
    })?;
    if let Some(place) = operands.c.trespass(&found) {
        let why = format!("wrote outside C, {place} elements after its first");
        return Err(Failure::Wrong(why));
    }
    compare(case, &operands, &operands.c.elements(&found)).map(Outcome::Right)
}

/// Compares all of C with f64. Returns the largest error divided by its bound.
fn compare<T: Element, O: Element>(
    case: &EpilogueCase,
    operands: &Operands<T, O>,
    found: &[O],
) -> Result<f64, Failure> {
    let cpu = Device::cpu();
    let (m, n, k) = case.shape;
    let factor = |operand: &Guarded<T>, rows, cols| {
        let elements = operand.elements(&operand.expected);
        let elements = reference::as_multiplied(elements, case.input);
        cpu.from_slice_batched(&elements, case.batches, rows, cols)
    };
    let product = oracle::product(
        factor(&operands.a, m, k)?.view(),
        factor(&operands.b, k, n)?.view(),
    )?;
    let source = match case.source {
        Source::InPlace => operands.c.upload(&cpu)?,
        _ => operands.source.upload(&cpu)?,
    };
    let (bias, scales) = (
        operands.bias.upload(&cpu)?,
        [
            operands.row_scale.upload(&cpu)?,
            operands.col_scale.upload(&cpu)?,
        ],
    );
    let inputs = case.inputs(&source, &bias, scales.each_ref())?;
    // The factors are rounded already.
    let expected = product.finish(&operands.epilogue, &inputs, DType::F32)?;
    let wrong = |index: usize, should: String| {
        let (row, col) = (index / case.c_cols(), index % case.c_cols());
        let found = found[index];
        let why = format!("row {row} of all products, column {col}: {found:?}, should be {should}");
        Err(Failure::Wrong(why))
    };
    let mut worst = 0.0_f64;
    for (index, element) in found.iter().enumerate() {
        let value = expected.values[index];
        if case.data == Data::Integers {
            // A product of a gate and another value is rounded to f32 first.
            let exact = O::from_f64(f64::from(value as f32));
            if *element != exact {
                return wrong(index, format!("exactly {exact:?}"));
            }
            continue;
        }
        let bound = expected.bound(index, O::DTYPE);
        let error = (element.to_f64() - value).abs();
        if error.is_nan() || error > bound {
            return wrong(index, format!("{value:e} ± {bound:.1e}"));
        }
        worst = worst.max(error / bound);
    }
    Ok(worst)
}
