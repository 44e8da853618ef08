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
        let [a, b, c] = &layouts;
        let ranks = devices.len();
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
        let differs = |found: &Layout, planned: &Layout| found != planned;
        if let Some((operand, rank)) = first(&layouts, &self.layouts, differs) {
            let accepted = format!("{}, as planned", self.layouts[operand][rank]);
            let found = layouts[operand][rank];
            return Err(Error::operand(NAMES[operand], rank, found, accepted));
        }
        let is_lower = |found: &u64, planned: &u64| found < planned;
        if let Some((operand, rank)) = first(&alignments, &self.alignments, is_lower) {
            let (found, planned) = (&alignments[operand], &self.alignments[operand]);
            return Err(Error::Operand {
                argument: NAMES[operand],
                rank,
                found: format!("at an address aligned to {} bytes", found[rank]),
                accepted: format!("{} bytes, as planned", planned[rank]),
            });
        }
        Ok(())
    }
}

/// Powers of two that divide the addresses of operands on GPUs.
fn alignments<T: Element, O: Element>(
    a: &[MatrixView<T>],
    b: &[MatrixView<T>],
    c: &[MatrixViewMut<O>],
) -> [Vec<u64>; 3] {
    let of = |device: &Device, address: u64| match device.is_gpu() {
        true => 1 << (address | Operands::ALIGNMENT).trailing_zeros(),
        false => 1,
    };
    [
        a.iter().map(|a| of(a.device(), a.address())).collect(),
        b.iter().map(|b| of(b.device(), b.address())).collect(),
        c.iter().map(|c| of(c.device(), c.address())).collect(),
    ]
}

/// The names of the operands.
const NAMES: [&str; 3] = ["a", "b", "c"];

/// The first operand and rank at which `is_wrong` holds of what was found and what was planned.
fn first<E>(
    found: &[Vec<E>; 3],
    planned: &[Vec<E>; 3],
    is_wrong: impl Fn(&E, &E) -> bool,
) -> Option<(usize, usize)> {
    (found.iter().zip(planned).enumerate()).find_map(|(operand, (found, planned))| {
        let mut pairs = found.iter().zip(planned);
        let rank = pairs.position(|(found, planned)| is_wrong(found, planned))?;
        Some((operand, rank))
    })
}

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
    let check = |(rank, (layout, device)): (usize, (Layout, &Device))| {
        if layout.batches != 1 {
            return Err(Error::operand(
                argument,
                rank,
                layout,
                "one matrix, no batch",
            ));
        }
        if *device != devices[rank] {
            return Err(Error::Operand {
                argument,
                rank,
                found: format!("on {device}"),
                accepted: format!("a matrix on {}", devices[rank]),
            });
        }
        Ok(layout)
    };
    found.enumerate().map(check).collect()
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
