//! [`Array`]: the memory, shape, strides and element type of an argument, whichever library
//! it comes from.

use std::fmt;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use tilewise::Layout;

use crate::dlpack;

/// The most dimensions of an argument: batch, rows, columns.
pub const MAX_RANK: usize = 3;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// IEEE binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE binary32.
    F32,
}

impl Element {
    /// All element types.
    pub const ALL: [Element; 3] = [Element::F16, Element::Bf16, Element::F32];

    /// The name that NumPy, ml_dtypes and PyTorch share.
    pub fn name(self) -> &'static str {
        match self {
            Element::F16 => "float16",
            Element::Bf16 => "bfloat16",
            Element::F32 => "float32",
        }
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Element::F16 | Element::Bf16 => 2,
            Element::F32 => 4,
        }
    }

    /// The type with the name `name`, with or without a prefix such as `torch.`.
    pub fn parse(argument: &str, name: &str) -> PyResult<Element> {
        let last = name.rsplit('.').next().unwrap_or(name);
        let found = Element::ALL.into_iter().find(|one| one.name() == last);
        found.ok_or_else(|| unsupported(argument, name))
    }

    /// The type that DLPack describes.
    pub fn of_dlpack(argument: &str, found: dlpack::DataType) -> PyResult<Element> {
        match (found.code, found.bits, found.lanes) {
            (dlpack::FLOAT, 16, 1) => Ok(Element::F16),
            (dlpack::BFLOAT, 16, 1) => Ok(Element::Bf16),
            (dlpack::FLOAT, 32, 1) => Ok(Element::F32),
            (code, bits, lanes) => {
                let name = match code {
                    0 => "int",
                    1 => "uint",
                    dlpack::FLOAT => "float",
                    5 => "complex",
                    6 => "bool",
                    _ => "another type of ",
                };
                let lanes = if lanes == 1 {
                    String::new()
                } else {
                    format!("x{lanes}")
                };
                Err(unsupported(argument, &format!("{name}{bits}{lanes}")))
            }
        }
    }
}

fn unsupported(argument: &str, name: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{argument} has the dtype {name}; accepted: float16, bfloat16, float32"
    ))
}

/// Where elements are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The memory of the process.
    Host,
    /// The memory of the GPU with this ordinal.
    Gpu(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Host => f.write_str("the CPU"),
            Place::Gpu(ordinal) => write!(f, "GPU {ordinal}"),
        }
    }
}

/// Shape and strides over memory that the caller owns. The dimensions are aligned to the
/// right: columns are the last, whatever the rank. Those that are missing have extent 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Array {
    /// Address of the first element.
    pub address: u64,
    /// Where it is.
    pub place: Place,
    /// The type of the elements.
    pub element: Element,
    /// Number of dimensions.
    pub rank: usize,
    /// Extents of batch, rows and columns.
    pub shape: [usize; MAX_RANK],
    /// Elements between neighbours along each dimension.
    pub strides: [usize; MAX_RANK],
}

impl Array {
    /// An array of these extents and strides, which count elements.
    pub fn new(
        argument: &str,
        address: u64,
        place: Place,
        element: Element,
        shape: &[i64],
        strides: &[i64],
    ) -> PyResult<Array> {
        let rank = shape.len();
        if !(1..=MAX_RANK).contains(&rank) {
            return Err(PyValueError::new_err(format!(
                "{argument} has {rank} dimensions; accepted: 2, or 3 for batches, and 1 for a \
                 vector"
            )));
        }
        let mut array = Array {
            address,
            place,
            element,
            rank,
            shape: [1; MAX_RANK],
            strides: [0; MAX_RANK],
        };
        let empty = shape.contains(&0);
        for (index, (&extent, &stride)) in shape.iter().zip(strides).enumerate() {
            let at = MAX_RANK - rank + index;
            array.shape[at] = extent as usize;
            // Nothing is read along an extent of one, or in an empty array.
            let unused = extent <= 1 || empty;
            array.strides[at] = match usize::try_from(stride) {
                Ok(stride) => stride,
                Err(_) if unused => 0,
                Err(_) => {
                    return Err(PyValueError::new_err(format!(
                        "{argument} has the strides {strides:?}; accepted: none below 0"
                    )));
                }
            };
        }
        if !array.address.is_multiple_of(element.bytes() as u64) && !empty {
            return Err(PyValueError::new_err(format!(
                "{argument} starts at {address:#x}; accepted: multiples of {} bytes",
                element.bytes()
            )));
        }
        Ok(array)
    }

    /// Number of matrices.
    pub fn batches(&self) -> usize {
        self.shape[0]
    }

    /// Rows of each matrix.
    pub fn rows(&self) -> usize {
        self.shape[1]
    }

    /// Columns of each matrix.
    pub fn cols(&self) -> usize {
        self.shape[2]
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The layout of the matrices.
    pub fn layout(&self) -> Layout {
        Layout {
            rows: self.shape[1],
            cols: self.shape[2],
            row_stride: self.strides[1],
            col_stride: self.strides[2],
            batches: self.shape[0],
            // Of no meaning to a single matrix, whose plan should be the same whatever it is.
            batch_stride: if self.batches() == 1 {
                0
            } else {
                self.strides[0]
            },
        }
    }

    /// The extents as the caller wrote them.
    pub fn dimensions(&self) -> &[usize] {
        &self.shape[MAX_RANK - self.rank..]
    }

    /// Returns an error unless this is a matrix or a batch of them.
    pub fn check_matrix(&self, argument: &str) -> PyResult<()> {
        match self.rank {
            2 | 3 => Ok(()),
            rank => Err(PyValueError::new_err(format!(
                "{argument} has {rank} dimension; accepted: 2, or 3 for batches"
            ))),
        }
    }

    /// Whether the rows of all matrices follow each other at one stride, so that the batch is
    /// one matrix of `batches · rows` rows.
    pub fn is_one_matrix(&self) -> bool {
        self.batches() == 1 || self.rows() == 1 || self.strides[0] == self.rows() * self.strides[1]
    }

    /// The batch as one matrix; see [`Array::is_one_matrix`].
    pub fn as_one_matrix(self) -> Array {
        // The stride of a single row is not that of its neighbour in the batch.
        let row_stride = match self.rows() {
            1 if self.batches() > 1 => self.strides[0],
            _ => self.strides[1],
        };
        Array {
            shape: [1, self.batches() * self.rows(), self.cols()],
            strides: [0, row_stride, self.strides[2]],
            ..self
        }
    }
}
