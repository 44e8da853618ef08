//! Random products with epilogues, batches and all types of C, checked against f64.

use tilewise::{
    Activation, Bias, Device, Element, Epilogue, Error, Gated, Gemm, Inputs, Layout, Matrix,
    MatrixView, MatrixViewMut, Output, PlanInfo, oracle,
};

use super::{Random, layout_variants};

/// The parts of an epilogue.
#[derive(Clone, Copy, Debug)]
pub struct Parts {
    pub alpha: f32,
    pub beta: f32,
    pub bias: Option<Bias>,
    pub row_scale: bool,
    pub col_scale: bool,
    pub activation: Activation,
    pub gated: Option<Gated>,
    /// Whether old values of C are the source.
    pub in_place: bool,
}

/// The size of a product. N is the number of columns of B.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub batches: usize,
    pub m: usize,
    pub n: usize,
    pub k: usize,
}

/// The kind of elements.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// Uniform in [-1, 1): results are compared with bounds.
    Uniform,
    /// Integers and powers of two, with which f32 arithmetic is exact: results are
    /// compared bit by bit.
    Exact,
}

impl Parts {
    /// An epilogue with random parts. With exact data, its values and functions are exact too.
    pub fn draw(random: &mut Random, data: Data) -> Self {
        let exact = data == Data::Exact;
        let number = |random: &mut Random| {
            [2.0, -0.5, 0.25, -1.0][random.below(4)] * if exact { 1.0 } else { 0.7 }
        };
        let gated = match random.below(6) {
            0 => Some(Gated::Interleaved),
            1 => Some(Gated::Halves),
            _ => None,
        };
        let has_source = gated.is_none() && random.below(2) == 0;
        let activations = [
            Activation::Identity,
            Activation::Relu,
            Activation::LeakyRelu(0.25),
            Activation::Gelu,
            Activation::GeluTanh,
            Activation::Silu,
        ];
        Parts {
            alpha: if random.below(2) == 0 {
                1.0
            } else {
                number(random)
            },
            beta: if has_source { number(random) } else { 0.0 },
            bias: [None, Some(Bias::PerRow), Some(Bias::PerColumn)][random.below(3)],
            row_scale: random.below(3) == 0,
            col_scale: random.below(3) == 0,
            activation: activations[random.below(if exact { 3 } else { 6 })],
            gated,
            in_place: has_source && random.below(2) == 0,
        }
    }

    pub fn epilogue(&self) -> Epilogue {
        let mut epilogue = Epilogue::new()
            .alpha(self.alpha)
            .beta(self.beta)
            .activation(self.activation);
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

/// A matrix or a batch inside a larger buffer.
struct Placed<T> {
    buffer: Matrix<T>,
    shift: usize,
    layout: Layout,
}

impl<T: Element> Placed<T> {
    /// `layout`, up to two elements after the start of a buffer of `filling`.
    fn new(device: &Device, random: &mut Random, layout: Layout, filling: f64) -> Self {
        let shift = [0, 0, 0, 1, 2][random.below(5)];
        let len = shift + layout.span().unwrap() + 3;
        let mut buffer = device.zeros::<T>(1, len).unwrap();
        buffer.view_mut().fill(T::from_f64(filling)).unwrap();
        Placed {
            buffer,
            shift,
            layout,
        }
    }

    fn view(&self) -> MatrixView<'_, T> {
        let rest = self.shift..self.buffer.cols();
        let view = self.buffer.view().slice(0..1, rest).unwrap();
        view.with_layout(self.layout).unwrap()
    }

    fn view_mut(&mut self) -> MatrixViewMut<'_, T> {
        let rest = self.shift..self.buffer.cols();
        let view = self.buffer.view_mut().slice(0..1, rest).unwrap();
        view.with_layout(self.layout).unwrap()
    }
}

/// An operand of a product of `size`: rows, columns, and perhaps one for all products.
fn operand<T: Element>(
    device: &Device,
    random: &mut Random,
    (rows, cols): (usize, usize),
    (batches, may_share): (usize, bool),
    data: Data,
) -> Placed<T> {
    let [(row_stride, col_stride), ..] = random.shuffled(layout_variants(rows, cols));
    let matrix = Layout::strided(rows, cols, row_stride, col_stride);
    let layout = match random.below(4) {
        0 if may_share => matrix,
        1 if may_share => matrix.batched_by(batches, 0),
        2 => {
            let dense = matrix.batched(batches);
            dense.batched_by(batches, dense.batch_stride + 8 - dense.batch_stride % 8)
        }
        _ => matrix.batched(batches),
    };
    let mut placed = Placed::new(device, random, layout, f64::NAN);
    let elements = layout.elements().unwrap();
    if layout.aliases() {
        // Only a repeated matrix does.
        placed.layout = matrix;
    }
    let distinct = placed.layout.elements().unwrap();
    let elements: Vec<T> = (0..elements.min(distinct))
        .map(|_| element(random, data))
        .collect();
    placed.view_mut().copy_from_slice(&elements).unwrap();
    placed.layout = layout;
    placed
}

fn element<T: Element>(random: &mut Random, data: Data) -> T {
    T::from_f64(match data {
        Data::Uniform => random.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0,
        Data::Exact => random.below(7) as f64 - 3.0,
    })
}

/// A vector with `rows`×`cols` elements, of which one side is 1.
fn vector<T: Element>(
    device: &Device,
    random: &mut Random,
    (rows, cols): (usize, usize),
    mut element: impl FnMut(&mut Random) -> T,
) -> Matrix<T> {
    let elements: Vec<T> = (0..rows * cols).map(|_| element(random)).collect();
    device.from_slice(&elements, rows, cols).unwrap()
}

fn scale(random: &mut Random, data: Data) -> f32 {
    match data {
        Data::Uniform => element(random, data),
        Data::Exact => [0.5, 1.0, -2.0][random.below(3)],
    }
}

/// Computes a random product of `size` with `gemm` and compares all of C, and the memory
/// around it, with f64. Returns the plan's description, or the error of planning.
pub fn check<T: Element, O: Output<T>>(
    gemm: &Gemm,
    device: &Device,
    random: &mut Random,
    size: Size,
    parts: &Parts,
    data: Data,
    input: tilewise::DType,
) -> Result<PlanInfo, Error> {
    let Size { batches, m, n, k } = size;
    let c_cols = if parts.gated.is_some() { n / 2 } else { n };
    let a = operand::<T>(device, random, (m, k), (batches, true), data);
    let b = operand::<T>(device, random, (k, n), (batches, true), data);
    let source = operand::<O>(device, random, (m, c_cols), (batches, true), data);
    let bias = vector(
        device,
        random,
        match parts.bias {
            Some(Bias::PerColumn) => (1, n),
            _ => (m, 1),
        },
        |random| element::<O>(random, data),
    );
    let row_scale = vector(device, random, (m, 1), |random| scale(random, data));
    let col_scale = vector(device, random, (1, n), |random| scale(random, data));
    let of_c = operand::<O>(device, random, (m, c_cols), (batches, false), data);
    // Around C, 77; in C, NaN, unless its old values are the source.
    let mut c = Placed::<O>::new(device, random, of_c.layout, 77.0);
    if parts.in_place {
        c.view_mut().copy_from_slice(&of_c.view().to_vec()?)?;
    } else {
        c.view_mut().fill(O::from_f64(f64::NAN))?;
    }

    let mut inputs = Inputs::new();
    if parts.beta != 0.0 {
        inputs = inputs.source(if parts.in_place {
            of_c.view()
        } else {
            source.view()
        });
    }
    if parts.bias.is_some() {
        inputs = inputs.bias(bias.view());
    }
    if parts.row_scale {
        inputs = inputs.row_scale(row_scale.view());
    }
    if parts.col_scale {
        inputs = inputs.col_scale(col_scale.view());
    }
    let epilogue = parts.epilogue();
    let gemm = gemm.clone().epilogue(epilogue);
    let mut plan = gemm.plan(a.view(), b.view(), c.view_mut())?;
    let given = if parts.in_place {
        inputs.in_place()
    } else {
        inputs
    };
    plan.run_with(a.view(), b.view(), c.view_mut(), &given)?;

    let about = format!(
        "{size:?} {parts:?} {data:?}\nA {}\nB {}\nC {}\n{}",
        a.layout,
        b.layout,
        c.layout,
        plan.info()
    );
    // Where A and B are single matrices, C may have a batch nevertheless.
    let of_each = match a.layout.batches {
        1 => a.view().with_layout(a.layout.batched_by(batches, 0))?,
        _ => a.view(),
    };
    let product = oracle::product(of_each, b.view())?;
    let expected = product.finish(&epilogue, &inputs, input)?;
    let found = c.view().to_vec()?;
    match data {
        Data::Uniform => assert_eq!(expected.worst(&found), None, "{about}"),
        Data::Exact => {
            for (index, (found, value)) in found.iter().zip(&expected.values).enumerate() {
                // A product of a gate and another value is rounded to f32 first.
                let value = O::from_f64(f64::from(*value as f32));
                assert_eq!(*found, value, "element {index}\n{about}");
            }
        }
    }
    c.view_mut().fill(O::from_f64(77.0))?;
    let all = c.buffer.to_vec()?;
    let around = all.iter().all(|element| element.to_f64() == 77.0);
    assert!(around, "wrote outside C\n{about}");
    Ok(*plan.info())
}
