//! [`Inputs`]: the matrices and vectors that the epilogue of one run reads.

use gpu_kernels::epilogue::SourceUse;

use crate::cpu::epilogue::HostEpilogue;
use crate::device::Device;
use crate::element::Element;
use crate::epilogue::Epilogue;
use crate::epilogue_form::{Bias, EpilogueForm};
use crate::error::Error;
use crate::gpu::epilogue::BoundEpilogue;
use crate::host_matrix::HostMatrix;
use crate::layout::Layout;
use crate::problem::Strides;
use crate::view::{MatrixView, MatrixViewMut};

/// The matrices and vectors that the [`Epilogue`] of one run reads: exactly those that
/// the epilogue has. `O` is the element type of C.
///
/// ```
/// use tilewise::{Device, Epilogue, Gemm, Inputs};
///
/// # fn main() -> Result<(), tilewise::Error> {
/// let device = Device::best();
/// let a = device.from_slice(&[1.0_f32, 2.0, 3.0, 4.0], 2, 2)?;
/// let mut c = device.from_slice(&[1.0_f32; 4], 2, 2)?;
/// // C ← A·A + 10·C, as BLAS's gemm does it.
/// let gemm = Gemm::new(&device).epilogue(Epilogue::new().beta(10.0));
/// gemm.run(&a, &a, &mut c, &Inputs::new().in_place())?;
/// assert_eq!(c.to_vec()?, [17.0, 20.0, 25.0, 32.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Inputs<'a, O> {
    source: Source<'a, O>,
    bias: Option<MatrixView<'a, O>>,
    row_scale: Option<MatrixView<'a, f32>>,
    col_scale: Option<MatrixView<'a, f32>>,
}

/// Where the source is.
#[derive(Clone, Copy, Debug)]
enum Source<'a, O> {
    None,
    /// In C.
    InPlace,
    View(MatrixView<'a, O>),
}

impl<O> Default for Inputs<'_, O> {
    fn default() -> Self {
        Inputs {
            source: Source::None,
            bias: None,
            row_scale: None,
            col_scale: None,
        }
    }
}

impl<'a, O: Element> Inputs<'a, O> {
    /// No inputs.
    pub fn new() -> Self {
        Inputs::default()
    }

    /// Sets the source: M×N with any strides, for an epilogue with a β other than 0. It has
    /// as many matrices as C, or one for all.
    pub fn source(self, source: MatrixView<'a, O>) -> Self {
        Inputs {
            source: Source::View(source),
            ..self
        }
    }

    /// Makes the old values of C the source.
    pub fn in_place(self) -> Self {
        Inputs {
            source: Source::InPlace,
            ..self
        }
    }

    /// Sets the bias: M×1 for [`Bias::PerRow`], 1×N for [`Bias::PerColumn`], contiguous. All
    /// products of a batch share it.
    pub fn bias(self, bias: MatrixView<'a, O>) -> Self {
        Inputs {
            bias: Some(bias),
            ..self
        }
    }

    /// Sets the factors of the rows: M×1, contiguous. All products of a batch share them.
    pub fn row_scale(self, row_scale: MatrixView<'a, f32>) -> Self {
        Inputs {
            row_scale: Some(row_scale),
            ..self
        }
    }

    /// Sets the factors of the columns: 1×N, contiguous. All products of a batch share them.
    pub fn col_scale(self, col_scale: MatrixView<'a, f32>) -> Self {
        Inputs {
            col_scale: Some(col_scale),
            ..self
        }
    }

    /// Checks that these are the inputs of `epilogue` for an M×N product (N columns of B) on
    /// `device` that is written to `c`.
    ///
    /// # Errors
    /// [`Error::Epilogue`].
    pub(crate) fn check(
        &self,
        epilogue: &EpilogueForm,
        device: &Device,
        (m, n): (usize, usize),
        c: &MatrixViewMut<O>,
    ) -> Result<(), Error> {
        self.check_source(epilogue, device, c)?;
        let (bias_shape, bias_accepted) = match epilogue.bias {
            None => (None, "none, because the epilogue has no bias"),
            Some(Bias::PerRow) => (Some((m, 1)), "contiguous, M×1, on the device of C"),
            Some(Bias::PerColumn) => (Some((1, n)), "contiguous, 1×N, on the device of C"),
        };
        check_vector("bias", self.bias, device, bias_shape, bias_accepted)?;
        let (shape, accepted) = match epilogue.row_scale {
            false => (None, "none, because the epilogue has no row_scale"),
            true => (Some((m, 1)), "contiguous, M×1, on the device of C"),
        };
        check_vector("row_scale", self.row_scale, device, shape, accepted)?;
        let (shape, accepted) = match epilogue.col_scale {
            false => (None, "none, because the epilogue has no col_scale"),
            true => (Some((1, n)), "contiguous, 1×N, on the device of C"),
        };
        check_vector("col_scale", self.col_scale, device, shape, accepted)
    }

    fn check_source(
        &self,
        epilogue: &EpilogueForm,
        device: &Device,
        c: &MatrixViewMut<O>,
    ) -> Result<(), Error> {
        let wrong = |found: String, accepted| {
            Err(Error::Epilogue {
                argument: "source",
                found,
                accepted,
            })
        };
        let has_source = epilogue.source == SourceUse::Add;
        let source = match (has_source, self.source) {
            (false, Source::None) | (true, Source::InPlace) => return Ok(()),
            (false, _) => return wrong("given".into(), "none, because beta is 0"),
            (true, Source::None) => {
                return wrong("not given".into(), "one, because beta is not 0");
            }
            (true, Source::View(source)) => source,
        };
        let (own, of_c) = (source.layout().normalized(), c.layout().normalized());
        let is_shaped = (own.rows, own.cols) == (of_c.rows, of_c.cols);
        if !is_shaped || own.batches != 1 && own.batches != of_c.batches {
            let accepted = "the shape of C, or one matrix of it for a batch";
            return wrong(own.to_string(), accepted);
        }
        if source.device() != device {
            return wrong(format!("on {}", source.device()), "on the device of C");
        }
        if overlaps(source, c) {
            let found = format!("{own} at {:#x}, which overlaps C", source.address());
            return wrong(found, "C itself, or a matrix without a part of C");
        }
        Ok(())
    }

    /// The inputs as launch arguments of [`Inputs::check`]ed operands.
    pub(crate) fn addresses(&self, epilogue: &Epilogue, c: &MatrixViewMut<O>) -> BoundEpilogue {
        let vector = |address: Option<u64>| address.unwrap_or(0);
        let source = match self.source {
            Source::None => None,
            Source::InPlace => Some((c.layout(), c.address())),
            Source::View(source) => Some((source.layout(), source.address())),
        };
        BoundEpilogue {
            values: epilogue.values(),
            source: source.map(|(layout, address)| {
                let layout = layout.normalized();
                let step = layout.batch_stride.wrapping_mul(size_of::<O>());
                let strides = Strides {
                    row_stride: layout.row_stride as u64,
                    col_stride: layout.col_stride as u64,
                    batch_stride: layout.batch_stride as u64,
                    alignment: Strides::alignment_of(address | step as u64),
                };
                (strides, address)
            }),
            bias: vector(self.bias.map(|bias| bias.address())),
            row_scale: vector(self.row_scale.map(|scale| scale.address())),
            col_scale: vector(self.col_scale.map(|scale| scale.address())),
        }
    }

    /// The inputs in the memory of the process, of [`Inputs::check`]ed operands.
    pub(crate) fn on_host(&self, epilogue: &Epilogue, c: HostMatrix<O>) -> HostEpilogue<O> {
        HostEpilogue {
            form: epilogue.form(),
            values: epilogue.values(),
            source: match self.source {
                Source::None => None,
                Source::InPlace => Some(c),
                Source::View(source) => Some(source.0.host_matrix()),
            },
            bias: self
                .bias
                .map(|bias| bias.0.host_matrix().first.cast_const()),
            row_scale: (self.row_scale).map(|scale| scale.0.host_matrix().first.cast_const()),
            col_scale: (self.col_scale).map(|scale| scale.0.host_matrix().first.cast_const()),
        }
    }
}

impl<O: Element> Inputs<'_, O> {
    /// The elements in f64, row by row.
    ///
    /// # Errors
    /// [`Error::Epilogue`] for a source in place, and [`Error::Driver`] when a device has
    /// failed.
    pub(crate) fn elements(&self) -> Result<InputElements, Error> {
        fn wide<T: Element>(view: Option<MatrixView<T>>) -> Result<Option<Vec<f64>>, Error> {
            let elements = view.map(|view| view.to_vec()).transpose()?;
            Ok(elements.map(|elements| elements.into_iter().map(Element::to_f64).collect()))
        }
        let source = match self.source {
            Source::None => None,
            Source::View(source) => Some(source),
            Source::InPlace => {
                return Err(Error::Epilogue {
                    argument: "source",
                    found: "in place".into(),
                    accepted: "a view of the old values of C",
                });
            }
        };
        Ok(InputElements {
            source: wide(source)?,
            bias: wide(self.bias)?,
            row_scale: wide(self.row_scale)?,
            col_scale: wide(self.col_scale)?,
        })
    }
}

/// The elements of [`Inputs`] in f64.
pub(crate) struct InputElements {
    /// Matrix by matrix and row by row; one matrix is the source of all products.
    pub(crate) source: Option<Vec<f64>>,
    pub(crate) bias: Option<Vec<f64>>,
    pub(crate) row_scale: Option<Vec<f64>>,
    pub(crate) col_scale: Option<Vec<f64>>,
}

/// Checks that `vector` is there if, and only if, it has a shape, and that it is contiguous
/// and has this shape.
fn check_vector<T: Element>(
    argument: &'static str,
    vector: Option<MatrixView<T>>,
    device: &Device,
    shape: Option<(usize, usize)>,
    accepted: &'static str,
) -> Result<(), Error> {
    let wrong = |found| {
        Err(Error::Epilogue {
            argument,
            found,
            accepted,
        })
    };
    match (vector, shape) {
        (None, None) => Ok(()),
        (Some(_), None) => wrong("given".into()),
        (None, Some(_)) => wrong("not given".into()),
        (Some(vector), Some((rows, cols))) => {
            let layout: Layout = vector.layout();
            let is_shaped = (layout.rows, layout.cols, layout.batches) == (rows, cols, 1);
            let is_contiguous =
                (rows <= 1 || layout.row_stride == 1) && (cols <= 1 || layout.col_stride == 1);
            if !is_shaped || !is_contiguous {
                return wrong(layout.to_string());
            }
            if vector.device() != device {
                return wrong(format!("on {}", vector.device()));
            }
            Ok(())
        }
    }
}

/// Whether `source` and `c` share memory without being the same elements in the same places.
/// Exact for layouts with the same strides; for others, it tells whether their spans meet.
fn overlaps<O: Element>(source: MatrixView<O>, c: &MatrixViewMut<O>) -> bool {
    let (own, of_c) = (source.layout().normalized(), c.layout().normalized());
    let (own_address, c_address) = (source.address(), c.address());
    if own.is_empty() || own == of_c && own_address == c_address {
        return false;
    }
    let bytes = |layout: Layout| {
        let span = layout.span().expect("a view has a span");
        (span * size_of::<O>()) as u64
    };
    let is_apart = own_address + bytes(own) <= c_address || c_address + bytes(of_c) <= own_address;
    if is_apart {
        return false;
    }
    let distance = own_address.abs_diff(c_address);
    let size = size_of::<O>() as u64;
    own != of_c || !distance.is_multiple_of(size) || own.meets_itself_at((distance / size) as usize)
}
