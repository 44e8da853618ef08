//! 8×8 matrices of 16-bit elements between shared memory and the registers of a
//! warp (PTX ISA, "Warp-level matrix load instruction: ldmatrix", "Warp-level
//! matrix store instruction: stmatrix").
//!
//! One, two or four matrices at once (`.x1`, `.x2`, `.x4`). A matrix is eight
//! rows of 16 bytes anywhere in shared memory; lane 8·i + r gives the address of
//! row r of matrix i. Register i of a lane holds two elements of matrix i:
//!
//! | | low half | high half |
//! |---|---|---|
//! | as stored | (lane / 4, 2 · (lane % 4)) | (lane / 4, 2 · (lane % 4) + 1) |
//! | `.trans` | (2 · (lane % 4), lane / 4) | (2 · (lane % 4) + 1, lane / 4) |

use super::convert::{pack, unpack};

/// Lanes of a warp.
pub const LANES: usize = 32;

/// Rows, and columns, of one matrix.
pub const EXTENT: usize = 8;

/// Bytes of one row.
pub const ROW_BYTES: u32 = 16;

/// One row of a matrix, as it lies in memory.
pub type Row = [u8; ROW_BYTES as usize];

/// The eight rows of one matrix.
pub type Matrix = [Row; EXTENT];

/// Whether a matrix is transposed on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Neighbours in a register are neighbours in a row.
    AsStored,
    /// `.trans`: neighbours in a register are neighbours in a column.
    Transposed,
}

/// A row address that the instruction does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "row {row} of matrix {matrix} is at shared address {address:#x}, accepted: multiples of \
     {ROW_BYTES}"
)]
pub struct MisalignedRow {
    /// Which matrix of the instruction, from 0.
    pub matrix: usize,
    /// Which row of it, from 0.
    pub row: usize,
    /// The shared address given.
    pub address: u32,
}

/// The rows that an instruction with `COUNT` (1, 2 or 4) matrices accesses, by
/// matrix and row, from the addresses that the lanes give. The addresses of lanes from
/// 8 · `COUNT` on are ignored.
///
/// # Errors
/// The first address that is no multiple of 16.
pub fn row_addresses<const COUNT: usize>(
    lanes: &[u32; LANES],
) -> Result<[[u32; EXTENT]; COUNT], MisalignedRow> {
    const {
        assert!(
            COUNT == 1 || COUNT == 2 || COUNT == 4,
            "`.x1`, `.x2` or `.x4`"
        )
    }
    let mut rows = [[0; EXTENT]; COUNT];
    for (lane, &address) in lanes.iter().take(COUNT * EXTENT).enumerate() {
        let (matrix, row) = (lane / EXTENT, lane % EXTENT);
        if !address.is_multiple_of(ROW_BYTES) {
            return Err(MisalignedRow {
                matrix,
                row,
                address,
            });
        }
        rows[matrix][row] = address;
    }
    Ok(rows)
}

/// (row, column) of the two elements that a register of `lane` holds, the low
/// half's first.
pub const fn elements(lane: usize, order: Order) -> [(usize, usize); 2] {
    let (line, first) = (lane / 4, lane % 4 * 2);
    match order {
        Order::AsStored => [(line, first), (line, first + 1)],
        Order::Transposed => [(first, line), (first + 1, line)],
    }
}

/// `ldmatrix`: the registers of each lane, one for each of `matrices`.
pub fn load<const COUNT: usize>(matrices: &[Matrix; COUNT], order: Order) -> [[u32; COUNT]; LANES] {
    std::array::from_fn(|lane| {
        let [low, high] = elements(lane, order);
        matrices.each_ref().map(|matrix| {
            let element = |(row, column): (usize, usize)| {
                let bytes = &matrix[row][2 * column..][..2];
                u16::from_le_bytes([bytes[0], bytes[1]])
            };
            pack(element(low), element(high))
        })
    })
}

/// `stmatrix`: the rows that the `registers` of all lanes make.
pub fn store<const COUNT: usize>(
    registers: &[[u32; COUNT]; LANES],
    order: Order,
) -> [Matrix; COUNT] {
    let mut matrices = [[[0; ROW_BYTES as usize]; EXTENT]; COUNT];
    for (lane, registers) in registers.iter().enumerate() {
        for (matrix, &register) in matrices.iter_mut().zip(registers) {
            let values = unpack(register);
            for ((row, column), value) in elements(lane, order).into_iter().zip(values) {
                matrix[row][2 * column..][..2].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    matrices
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Matrices whose element (row, column) of matrix i is 100·i + 10·row + column.
    fn numbered<const COUNT: usize>() -> [Matrix; COUNT] {
        std::array::from_fn(|matrix| {
            std::array::from_fn(|row| {
                std::array::from_fn(|byte| {
                    let value = (100 * matrix + 10 * row + byte / 2) as u16;
                    value.to_le_bytes()[byte % 2]
                })
            })
        })
    }

    #[test]
    fn lanes_receive_the_elements_of_the_figure_in_the_isa() {
        let registers = load(&numbered::<4>(), Order::AsStored);
        // T0 has columns 0 and 1 of row 0, T5 columns 2 and 3 of row 1, T31 the last.
        assert_eq!(unpack(registers[0][0]), [0, 1]);
        assert_eq!(unpack(registers[5][0]), [12, 13]);
        assert_eq!(unpack(registers[31][0]), [76, 77]);
        assert_eq!(unpack(registers[5][3]), [312, 313]);
    }

    #[test]
    fn transposed_lanes_receive_columns() {
        let registers = load(&numbered::<2>(), Order::Transposed);
        assert_eq!(unpack(registers[0][0]), [0, 10]);
        assert_eq!(unpack(registers[5][0]), [21, 31]);
        assert_eq!(unpack(registers[31][1]), [167, 177]);
    }

    #[test]
    fn a_store_undoes_a_load() {
        for order in [Order::AsStored, Order::Transposed] {
            assert_eq!(
                store(&load(&numbered::<1>(), order), order),
                numbered::<1>()
            );
            assert_eq!(
                store(&load(&numbered::<2>(), order), order),
                numbered::<2>()
            );
            assert_eq!(
                store(&load(&numbered::<4>(), order), order),
                numbered::<4>()
            );
        }
    }

    #[test]
    fn loading_as_stored_and_storing_transposed_transposes() {
        let registers = load(&numbered::<4>(), Order::AsStored);
        for (matrix, transposed) in numbered::<4>()
            .iter()
            .zip(store(&registers, Order::Transposed))
        {
            for row in 0..EXTENT {
                for column in 0..EXTENT {
                    assert_eq!(
                        transposed[row][2 * column..][..2],
                        matrix[column][2 * row..][..2]
                    );
                }
            }
        }
    }

    #[test]
    fn each_lane_names_a_row() {
        let lanes = std::array::from_fn(|lane| 16 * lane as u32);
        let rows = row_addresses::<4>(&lanes).unwrap();
        assert_eq!(rows[3][7], 16 * 31);
        assert_eq!(rows[1][2], 16 * 10);
    }

    #[test]
    fn only_the_lanes_that_name_rows_must_be_aligned() {
        let mut lanes = [64; LANES];
        lanes[8] = 24;
        assert_eq!(row_addresses::<1>(&lanes), Ok([[64; EXTENT]]));
        let refused = row_addresses::<2>(&lanes).unwrap_err();
        assert_eq!(
            refused,
            MisalignedRow {
                matrix: 1,
                row: 0,
                address: 24
            }
        );
        assert_eq!(
            refused.to_string(),
            "row 0 of matrix 1 is at shared address 0x18, accepted: multiples of 16"
        );
    }
}
