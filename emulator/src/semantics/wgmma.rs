//! `wgmma.mma_async`: which elements of D and A the registers of a warpgroup hold (PTX
//! ISA, "Register Fragments for wgmma.mma_async.m64nNk16" and ".m64nNk8").
//!
//! D is 64×N in f32, N / 2 registers in each of 128 threads; A and B lie in shared
//! memory, where [`descriptor`](super::descriptor) finds them, or A in registers, and
//! [`dot::multiply_add`](super::dot::multiply_add) is the product. Between a
//! warpgroup's first multiply and its wait, the emulator keeps D as a tile, 64 rows of N.

use super::factor::Factor;
use super::format::Format;

/// Rows of A and D.
pub const ROWS: usize = 64;

/// Threads of a warpgroup.
pub const THREADS: usize = 128;

/// (row, column) of D that `register` of `thread` (of 128) holds.
pub const fn d_element(thread: usize, register: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    let row = 16 * warp + lane / 4 + 8 * (register / 2 % 2);
    (row, 8 * (register / 4) + 2 * (lane % 4) + register % 2)
}

/// Registers in which a thread gives its elements of A, of 4 bytes each.
pub const A_REGISTERS: usize = 4;

/// (row, k) of A, of 4-byte elements, that `register` of `thread` (of 128) holds.
pub const fn a_element(thread: usize, register: usize) -> (usize, usize) {
    let (warp, lane) = (thread / 32, thread % 32);
    let row = 16 * warp + lane / 4 + 8 * (register % 2);
    (row, lane % 4 + 4 * (register / 2))
}

/// A, of 4-byte elements, from the registers of each of 128 threads.
pub fn a_from_registers(dtype: Format, threads: &[[u32; A_REGISTERS]; THREADS]) -> Factor {
    let mut factor = Factor::zeros(dtype, ROWS);
    for (thread, registers) in threads.iter().enumerate() {
        for (register, bits) in registers.iter().enumerate() {
            let (row, k) = a_element(thread, register);
            factor.set(row, k, *bits);
        }
    }
    factor
}

/// D as a tile, row by row, from the registers of each of 128 threads.
///
/// # Panics
/// There are not 128 threads with equally many registers, a multiple of 4.
pub fn tile_from_registers(threads: &[impl AsRef<[f32]>]) -> Vec<f32> {
    assert_eq!(threads.len(), THREADS);
    let columns = 2 * threads[0].as_ref().len();
    let mut tile = vec![0.0; ROWS * columns];
    for (thread, registers) in threads.iter().enumerate() {
        let registers = registers.as_ref();
        assert_eq!(2 * registers.len(), columns);
        for (quad, values) in registers.chunks_exact(4).enumerate() {
            let (row, column) = d_element(thread, 4 * quad);
            let at = row * columns + column;
            tile[at..at + 2].copy_from_slice(&values[..2]);
            tile[at + 8 * columns..][..2].copy_from_slice(&values[2..]);
        }
    }
    tile
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fragment_is_that_of_the_figure_in_the_isa() {
        // Thread 0 of each warp starts its 16 rows.
        assert_eq!(
            [0, 32, 64, 96].map(|t| d_element(t, 0)),
            [(0, 0), (16, 0), (32, 0), (48, 0)]
        );
        // d0..d7 of thread 38: warp 1, group 1, second in its group.
        let found: Vec<_> = (0..8).map(|register| d_element(38, register)).collect();
        let [top, below] = [17, 25];
        assert_eq!(
            found,
            [
                (top, 4),
                (top, 5),
                (below, 4),
                (below, 5),
                (top, 12),
                (top, 13),
                (below, 12),
                (below, 13)
            ]
        );
    }

    #[test]
    fn a_in_registers_is_that_of_the_figure_in_the_isa() {
        // a0..a3 of thread 38: warp 1, group 1, third in its group.
        let found: Vec<_> = (0..4).map(|register| a_element(38, register)).collect();
        assert_eq!(found, [(17, 2), (25, 2), (17, 6), (25, 6)]);
        let element = |thread, register| {
            let (row, k) = a_element(thread, register);
            ((8 * row + k) as f32).to_bits()
        };
        let threads: [[u32; A_REGISTERS]; THREADS] =
            std::array::from_fn(|thread| std::array::from_fn(|register| element(thread, register)));
        let factor = a_from_registers(Format::Tf32, &threads);
        for row in 0..ROWS {
            for k in 0..8 {
                assert_eq!(factor.value(row, k), (8 * row + k) as f32);
            }
        }
    }

    #[test]
    fn a_tile_has_the_element_of_each_register_at_its_place() {
        for columns in [8, 64, 256] {
            let element = |thread, register| {
                let (row, column) = d_element(thread, register);
                (row * columns + column) as f32
            };
            let threads: Vec<Vec<f32>> = (0..THREADS)
                .map(|thread| (0..columns / 2).map(|r| element(thread, r)).collect())
                .collect();
            let tile: Vec<f32> = (0..ROWS * columns).map(|i| i as f32).collect();
            assert_eq!(tile_from_registers(&threads), tile);
        }
    }
}
