//! The shapes and layouts of an operation, checked.

use tilewise::{Device, Element, Layout, MatrixView, MatrixViewMut};

use crate::error::Error;
use crate::lines::Lines;
use crate::program::{Operation, Shards};

/// The operands of an operation fit together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operands {
    pub operation: Operation,
    /// Of A, B and C, by rank.
    pub layouts: [Vec<Layout>; 3],
    /// Powers of two that divide the addresses of A, B and C, by rank.
    pub alignments: [Vec<u64>; 3],
    /// The rows that the ranks own: of A, or of C.
    pub rows: Shards,
    /// Columns of the C of each rank.
    pub cols: Vec<usize>,
}

impl Operands {
    /// The highest alignment that matters. Allocations of the library have it.
    pub const ALIGNMENT: u64 = 256;

    /// Checks `a`, `b` and `c`.
    pub fn new<T: Element, O: Element>(
        operation: Operation,
        devices: &[Device],
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &[MatrixViewMut<O>],
    ) -> Result<Self, Error> {
        let alignments = alignments(a, b, c);
        let layouts = all_layouts(devices, a, b, c)?;
        Operands::of::<T, O>(operation, layouts, alignments)
    }

    /// Checks operands with these layouts, of A, B and C, one for each rank.
    pub fn of<T, O>(
        operation: Operation,
        layouts: [Vec<Layout>; 3],
        alignments: [Vec<u64>; 3],
    ) -> Result<Self, Error> {
        let [a, b, c] = &layouts;
        let ranks = a.len();
        for rank in 0..ranks {
            shape("b", rank, b[rank], (a[rank].cols, b[rank].cols))?;
            match operation {
                Operation::AllGather => {
                    shape("a", rank, a[rank], (a[rank].rows, a[0].cols))?;
                    lines::<T>("a", rank, a[rank])?;
                }
                Operation::ReduceScatter | Operation::AllReduce => {
                    shape("a", rank, a[rank], (a[0].rows, a[rank].cols))?;
                    shape("b", rank, b[rank], (b[rank].rows, b[0].cols))?;
                }
            }
        }
        let shards = |shards: Option<Shards>| {
            shards.ok_or_else(|| Error::operand("a", 0, a[0], "rows that can be counted"))
        };
        let rows = match operation {
            Operation::AllGather => shards(Shards::new(a.iter().map(|a| a.rows)))?,
            Operation::ReduceScatter => shards(Shards::new(c.iter().map(|c| c.rows)))?,
            Operation::AllReduce => {
                let even = a[0]
                    .rows
                    .div_ceil(ranks)
                    .next_multiple_of(Shards::ALIGNMENT);
                let rows = |rank: usize| {
                    let first = a[0].rows.min(rank.saturating_mul(even));
                    a[0].rows.min(first.saturating_add(even)) - first
                };
                shards(Shards::new((0..ranks).map(rows)))?
            }
        };
        for rank in 0..ranks {
            let of_c = match operation {
                Operation::AllGather => rows.rows(),
                Operation::ReduceScatter => c[rank].rows,
                Operation::AllReduce => a[0].rows,
            };
            shape("c", rank, c[rank], (of_c, b[rank].cols))?;
            if operation == Operation::AllReduce {
                lines::<O>("c", rank, c[rank])?;
                if Lines::are_rows(c[rank]) != Lines::are_rows(c[0]) {
                    let accepted = "contiguous in the direction of rank 0's";
                    return Err(Error::operand("c", rank, c[rank], accepted));
                }
            }
        }
        if operation == Operation::ReduceScatter && rows.rows() != a[0].rows {
            let accepted = format!("{} rows in all ranks together, as A has", a[0].rows);
            return Err(Error::operand("c", 0, c[0], accepted));
        }
        let cols = c.iter().map(|c| c.cols).collect();
        Ok(Operands {
            operation,
            layouts,
            alignments,
            rows,
            cols,
        })
    }

    /// Checks that the operands of a run have the planned layouts.
    pub fn check_same<T: Element, O: Element>(
        &self,
        devices: &[Device],
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &[MatrixViewMut<O>],
    ) -> Result<(), Error> {
        let (layouts, alignments) = (all_layouts(devices, a, b, c)?, alignments(a, b, c));
        for (operand, layouts) in layouts.iter().enumerate() {
            for (rank, &layout) in layouts.iter().enumerate() {
                self.check_layout(operand, rank, layout)?;
            }
        }
        for (operand, alignments) in alignments.iter().enumerate() {
            for (rank, &alignment) in alignments.iter().enumerate() {
                self.check_alignment(operand, rank, alignment)?;
            }
        }
        Ok(())
    }

    /// Checks that A, B or C (`operand` 0, 1 or 2) of `rank` has the planned layout.
    pub fn check_layout(&self, operand: usize, rank: usize, found: Layout) -> Result<(), Error> {
        let planned = self.layouts[operand][rank];
        if found == planned {
            return Ok(());
        }
        let accepted = format!("{planned}, as planned");
        Err(Error::operand(NAMES[operand], rank, found, accepted))
    }

    /// Checks that A, B or C of `rank` is aligned as planned, or better.
    pub fn check_alignment(&self, operand: usize, rank: usize, found: u64) -> Result<(), Error> {
        let planned = self.alignments[operand][rank];
        if found >= planned {
            return Ok(());
        }
        Err(Error::Operand {
            argument: NAMES[operand],
            rank,
            found: format!("at an address aligned to {found} bytes"),
            accepted: format!("{planned} bytes, as planned"),
        })
    }

    /// Checks the bias of `rank`.
    pub fn check_bias(&self, rank: usize, found: Layout) -> Result<(), Error> {
        let cols = self.cols[rank];
        let is_contiguous = found.cols <= 1 || found.col_stride == 1;
        if (found.rows, found.cols) == (1, cols) && is_contiguous {
            return Ok(());
        }
        let accepted = format!("contiguous, 1×{cols}");
        Err(Error::operand("bias", rank, found, accepted))
    }
}

/// A power of two that divides an address on `device`; 1 where the library does not ask for it.
pub(crate) fn alignment(device: &Device, address: u64) -> u64 {
    match device.is_gpu() {
        true => 1 << (address | Operands::ALIGNMENT).trailing_zeros(),
        false => 1,
    }
}

/// Powers of two that divide the addresses of operands on GPUs.
fn alignments<T: Element, O: Element>(
    a: &[MatrixView<T>],
    b: &[MatrixView<T>],
    c: &[MatrixViewMut<O>],
) -> [Vec<u64>; 3] {
    [
        a.iter()
            .map(|a| alignment(a.device(), a.address()))
            .collect(),
        b.iter()
            .map(|b| alignment(b.device(), b.address()))
            .collect(),
        c.iter()
            .map(|c| alignment(c.device(), c.address()))
            .collect(),
    ]
}

/// The names of the operands.
pub(crate) const NAMES: [&str; 3] = ["a", "b", "c"];

/// The layouts of A, B and C.
fn all_layouts<T: Element, O: Element>(
    devices: &[Device],
    a: &[MatrixView<T>],
    b: &[MatrixView<T>],
    c: &[MatrixViewMut<O>],
) -> Result<[Vec<Layout>; 3], Error> {
    Ok([
        layouts("a", devices, a.iter().map(|a| (a.layout(), a.device())))?,
        layouts("b", devices, b.iter().map(|b| (b.layout(), b.device())))?,
        layouts("c", devices, c.iter().map(|c| (c.layout(), c.device())))?,
    ])
}

/// The layouts of one operand: one for each rank, of one matrix, on the rank's device.
pub(crate) fn layouts<'a>(
    argument: &'static str,
    devices: &[Device],
    found: impl ExactSizeIterator<Item = (Layout, &'a Device)>,
) -> Result<Vec<Layout>, Error> {
    if found.len() != devices.len() {
        return Err(Error::Count {
            argument,
            found: found.len(),
            ranks: devices.len(),
        });
    }
    let check = |(rank, found)| layout(argument, rank, &devices[rank], found);
    found.enumerate().map(check).collect()
}

/// The layout of the operand of `rank`: one matrix, on the rank's device.
pub(crate) fn layout(
    argument: &'static str,
    rank: usize,
    device: &Device,
    (found, found_on): (Layout, &Device),
) -> Result<Layout, Error> {
    if found.batches != 1 {
        let accepted = "one matrix, no batch";
        return Err(Error::operand(argument, rank, found, accepted));
    }
    if found_on != device {
        return Err(Error::Operand {
            argument,
            rank,
            found: format!("on {found_on}"),
            accepted: format!("a matrix on {device}"),
        });
    }
    Ok(found)
}

/// An error unless `layout` has the given shape.
fn shape(
    argument: &'static str,
    rank: usize,
    layout: Layout,
    (rows, cols): (usize, usize),
) -> Result<(), Error> {
    if (layout.rows, layout.cols) == (rows, cols) {
        return Ok(());
    }
    Err(Error::operand(
        argument,
        rank,
        layout,
        format!("{rows}×{cols}"),
    ))
}

/// An error unless copy engines can copy the matrix.
fn lines<E>(argument: &'static str, rank: usize, layout: Layout) -> Result<(), Error> {
    if layout.is_empty() || Lines::of(layout, size_of::<E>()).is_some() {
        return Ok(());
    }
    Err(Error::operand(
        argument,
        rank,
        layout,
        "contiguous rows or contiguous columns, because other ranks copy it",
    ))
}
