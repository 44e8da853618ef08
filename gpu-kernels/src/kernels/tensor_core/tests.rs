//! The index arithmetic, proved on the host for every instantiation.
//!
//! The tests describe the instructions a second time, straight from the figures
//! of the PTX ISA, and on symbols: an element is its own coordinates. A warp then
//! "multiplies", and the tests compare the symbols that meet in an accumulator
//! with the definition of a product.

mod copies;

use std::collections::HashSet;

use super::layout::*;
use super::*;
use crate::dtype::{AlongK, AlongMn, Major};
use crate::element::{Bf16, F16, F16x3, Tf32};

/// The constants of one instantiation.
#[derive(Clone, Copy, Debug)]
struct Instance {
    a: Panel,
    b: Panel,
    warp_m: u32,
    warp_n: u32,
    steps: u32,
    threads: u32,
    staged_rows: u32,
}

impl<
    T: ElementType,
    A: Contiguous,
    B: Contiguous,
    const BM: u32,
    const BN: u32,
    const BK: u32,
    const WM: u32,
    const WN: u32,
    L: MainLoop,
> TensorCore<T, A, B, BM, BN, BK, WM, WN, L>
{
    const INSTANCE: Instance = {
        let () = Self::CHECK;
        Instance {
            a: Self::A_PANEL,
            b: Self::B_PANEL,
            warp_m: WM,
            warp_n: WN,
            steps: Self::STEPS,
            threads: Self::THREADS,
            staged_rows: Self::STAGED_ROWS,
        }
    };
}

/// All entries, and shapes that reach the other swizzles and step counts.
fn shapes() -> Vec<Instance> {
    macro_rules! layouts {
        ($($t:ty: $($parameter:literal)*, $loop:ty;)*) => {
            vec![$(
                TensorCore::<$t, AlongK, AlongK, $($parameter,)* $loop>::INSTANCE,
                TensorCore::<$t, AlongK, AlongMn, $($parameter,)* $loop>::INSTANCE,
                TensorCore::<$t, AlongMn, AlongK, $($parameter,)* $loop>::INSTANCE,
                TensorCore::<$t, AlongMn, AlongMn, $($parameter,)* $loop>::INSTANCE,
            )*]
        };
    }
    let parts = [
        TensorCore::<F16x3, AlongK, AlongK, 128, 128, 32, 64, 32, MultistageParts<4>>::INSTANCE,
        TensorCore::<F16x3, AlongK, AlongK, 64, 64, 32, 32, 32, MultistageParts<4>>::INSTANCE,
    ];
    let mut shapes = layouts! {
        F16: 128 256 64 64 64, Multistage<3>;
        Bf16: 128 128 64 64 64, Multistage<3>;
        F16: 64 64 64 32 32, Multistage<4>;
        Tf32: 128 256 32 64 64, Multistage<3>;
        Tf32: 128 128 32 64 64, Multistage<3>;
        Tf32: 64 64 32 32 32, Multistage<4>;
        F16: 128 128 32 64 32, Multistage<4>;
        F16: 64 128 128 32 64, Multistage<2>;
        Tf32: 128 64 16 32 32, Multistage<3>;
        Tf32: 64 64 64 32 32, Multistage<2>;
        F16: 128 128 32 64 64, Pipelined<2>;
        F16: 64 64 32 32 32, Pipelined<3>;
        F16: 128 64 32 64 32, Pipelined<2>;
        F16: 64 128 32 32 64, Pipelined<2>;
        F16: 64 64 64 32 32, Pipelined<1>;
    };
    shapes.extend(parts);
    shapes
}

/// The distinct panels of all instances, with the number of threads that copy them.
fn panels() -> HashSet<(Panel, u32)> {
    shapes()
        .into_iter()
        .flat_map(|shape| [(shape.a, shape.threads), (shape.b, shape.threads)])
        .collect()
}

/// An element's coordinates along M or N, and along K.
type Symbol = (u32, u32);

/// A panel full of symbols, by element address.
fn fill(panel: Panel) -> Vec<Symbol> {
    let mut memory = vec![(u32::MAX, u32::MAX); (panel.bytes() / panel.element_bytes) as usize];
    for line in 0..panel.lines() {
        for chunk in 0..panel.line_chunks() {
            for element in 0..panel.chunk_elements() {
                let run = chunk * panel.chunk_elements() + element;
                let at = panel.offset(line, chunk) / panel.element_bytes + element;
                memory[at as usize] = match panel.major {
                    Major::K => (line, run),
                    Major::Mn => (run, line),
                };
            }
        }
    }
    memory
}

/// `ldmatrix.x4[.trans]` or four `ld.shared.b32` of a whole warp:
/// `[lane][register]`, each register a list of elements, low bits first.
fn load_quads(
    panel: Panel,
    memory: &[Symbol],
    origin: u32,
    quad: u32,
    step: u32,
) -> Vec<[Vec<Symbol>; 4]> {
    let address = |lane: u32, register| {
        panel.quad_offset(panel.lane_offset(origin, lane), quad, step, register)
    };
    let at = |byte: u32| memory[(byte / panel.element_bytes) as usize];
    let row = |matrix: u32, row: u32| address(8 * matrix + row, 0);
    (0..WARP)
        .map(|lane| {
            [0, 1, 2, 3].map(|register| {
                if panel.scalar_fragments() {
                    vec![at(address(lane, register))]
                } else if panel.major == Major::K {
                    // Word lane % 4 of row lane / 4.
                    let word = row(register, lane / 4) + 4 * (lane % 4);
                    (0..4 / panel.element_bytes)
                        .map(|i| at(word + i * panel.element_bytes))
                        .collect()
                } else {
                    // Column lane / 4 of rows 2 · (lane % 4) and 2 · (lane % 4) + 1.
                    (0..2)
                        .map(|i| at(row(register, lane % 4 * 2 + i) + 2 * (lane / 4)))
                        .collect()
                }
            })
        })
        .collect()
}

/// What each lane has of a warp's part of a panel, `extent` elements from `origin` on;
/// unused quads repeat the first.
fn lanes_quads(
    panel: Panel,
    memory: &[Symbol],
    (origin, extent): (u32, u32),
    step: u32,
) -> Vec<[[Vec<Symbol>; 4]; MAX_QUADS]> {
    let quads: Vec<_> = (0..extent / panel.quad_extent())
        .map(|quad| load_quads(panel, memory, origin, quad, step))
        .collect();
    (0..WARP as usize)
        .map(|lane| std::array::from_fn(|quad| quads.get(quad).unwrap_or(&quads[0])[lane].clone()))
        .collect()
}

/// PTX ISA, figures of mma.m16n8k16 (16-bit), m16n8k8 (.f16) and m16n8k8 (.tf32), matrix A:
/// (row, k) of element `i` of register `register`. The second has the first two registers of
/// the first.
fn a_position(element_bytes: u32, lane: u32, register: u32, i: u32) -> (u32, u32) {
    let (group, thread_in_group) = (lane >> 2, lane % 4);
    let row = if register == 0 || register == 2 {
        group
    } else {
        group + 8
    };
    let k = if element_bytes == 2 {
        thread_in_group * 2 + i + if register < 2 { 0 } else { 8 }
    } else {
        thread_in_group + if register < 2 { 0 } else { 4 }
    };
    (row, k)
}

/// The same for matrix B: (k, column).
fn b_position(element_bytes: u32, lane: u32, register: u32, i: u32) -> (u32, u32) {
    let (group, thread_in_group) = (lane >> 2, lane % 4);
    let k = if element_bytes == 2 {
        thread_in_group * 2 + i + if register == 0 { 0 } else { 8 }
    } else {
        thread_in_group + if register == 0 { 0 } else { 4 }
    };
    (k, group)
}

/// The same for the accumulators: (row, column) of register c0 to c3.
fn c_position(lane: u32, register: u32) -> (u32, u32) {
    let row = if register < 2 {
        lane >> 2
    } else {
        (lane >> 2) + 8
    };
    (row, lane % 4 * 2 + (register & 1))
}

#[test]
fn a_panel_is_a_bijection() {
    for (panel, _) in panels() {
        let symbols: HashSet<Symbol> = fill(panel).into_iter().collect();
        assert_eq!(
            symbols.len() as u32,
            panel.extent * panel.depth,
            "{panel:?}"
        );
        assert!(!symbols.contains(&(u32::MAX, u32::MAX)), "{panel:?}");
    }
}

/// For every warp, step and `mma`, the element that the instruction takes as
/// A(row, k) is A(row, k), and the element that it takes as B(k, column) is
/// B(k, column).
#[test]
fn fragments_hold_what_the_instruction_multiplies() {
    for shape in shapes() {
        let bytes = shape.a.element_bytes;
        let (a_memory, b_memory) = (fill(shape.a), fill(shape.b));
        for step in 0..shape.steps {
            let k0 = step * shape.a.step_depth();
            for origin in (0..shape.a.extent).step_by(shape.warp_m as usize) {
                let lanes = lanes_quads(shape.a, &a_memory, (origin, shape.warp_m), step);
                for tile in 0..shape.warp_m / 16 {
                    let mut seen = HashSet::new();
                    for (lane, quads) in (0..).zip(&lanes) {
                        let quads = quads.each_ref().map(|quad| quad.each_ref());
                        let registers = match shape.a.mma_chunks {
                            1 => pair(&quads, tile as usize).to_vec(),
                            _ => quads[tile as usize].to_vec(),
                        };
                        for (register, elements) in (0..).zip(registers) {
                            for (i, &symbol) in (0..).zip(elements) {
                                let (row, k) = a_position(bytes, lane, register, i);
                                assert_eq!(symbol, (origin + 16 * tile + row, k0 + k), "{shape:?}");
                                seen.insert((row, k));
                            }
                        }
                    }
                    assert_eq!(seen.len() as u32, 16 * shape.a.step_depth());
                }
            }
            for origin in (0..shape.b.extent).step_by(shape.warp_n as usize) {
                let lanes = lanes_quads(shape.b, &b_memory, (origin, shape.warp_n), step);
                for tile in 0..shape.warp_n / 8 {
                    let mut seen = HashSet::new();
                    for (lane, quads) in (0..).zip(&lanes) {
                        let quads = quads.each_ref().map(|quad| quad.each_ref());
                        let registers = match shape.b.mma_chunks {
                            1 => vec![register(&quads, tile as usize)],
                            _ => pair(&quads, tile as usize).to_vec(),
                        };
                        for (register, elements) in (0..).zip(registers) {
                            for (i, &symbol) in (0..).zip(elements) {
                                let (k, col) = b_position(bytes, lane, register, i);
                                assert_eq!(symbol, (origin + 8 * tile + col, k0 + k), "{shape:?}");
                                seen.insert((k, col));
                            }
                        }
                    }
                    assert_eq!(seen.len() as u32, 8 * shape.b.step_depth());
                }
            }
        }
        assert_eq!(shape.steps * shape.a.step_depth(), shape.a.depth);
    }
}

#[test]
fn accumulators_stand_where_the_figure_says() {
    for lane in 0..WARP {
        for register in 0..4 {
            assert_eq!(
                accumulator_position(lane, register),
                c_position(lane, register)
            );
        }
    }
}

/// The 4-byte banks that a set of accesses of `bytes` each touches, sorted.
fn banks(addresses: impl Iterator<Item = u32>, bytes: u32) -> Vec<u32> {
    let mut banks: Vec<u32> = addresses
        .flat_map(|address| (0..bytes / 4).map(move |word| (address / 4 + word) % 32))
        .collect();
    banks.sort_unstable();
    banks
}

/// Whether an access of 128 bytes is one transaction: it touches each bank once.
fn each_once(banks: Vec<u32>) -> bool {
    banks == (0..32).collect::<Vec<u32>>()
}

#[test]
fn fragment_loads_have_no_bank_conflicts() {
    for shape in shapes() {
        for (panel, warp) in [(shape.a, shape.warp_m), (shape.b, shape.warp_n)] {
            for origin in (0..panel.extent).step_by(warp as usize) {
                for (quad, step) in (0..warp / panel.quad_extent())
                    .flat_map(|q| (0..shape.steps).map(move |s| (q, s)))
                {
                    let address = |lane, register| {
                        panel.quad_offset(panel.lane_offset(origin, lane), quad, step, register)
                    };
                    for part in 0..4 {
                        // One register of all lanes, or the eight rows of one matrix.
                        let banks = if panel.scalar_fragments() {
                            banks((0..WARP).map(|lane| address(lane, part)), 4)
                        } else {
                            banks((0..8).map(|row| address(8 * part + row, 0)), 16)
                        };
                        assert!(
                            each_once(banks),
                            "{panel:?} origin {origin} quad {quad} step {step}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn panels_that_the_threads_cannot_copy_are_refused() {
    for (panel, threads) in panels() {
        check_copies(panel, threads, 16);
    }
    // 64 lines of 128 bytes; the swizzle repeats after eight lines.
    let panel = Panel {
        factor: Factor::A,
        major: Major::K,
        extent: 64,
        depth: 64,
        element_bytes: 2,
        mma_chunks: 2,
        parts: 1,
    };
    for (threads, most, reason) in [
        (96, 16, "whole passes"),
        (16, 16, "at most as many chunks"),
        (64, 4, "at most as many chunks"),
        (32, 16, "whole periods of the swizzle"),
    ] {
        let refused =
            std::panic::catch_unwind(|| check_copies(panel, threads, most)).expect_err(reason);
        let message = refused.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(message.contains(reason), "{threads} threads: {message}");
    }
}

/// A warp writes accumulators as 8-byte pairs, 16 lanes at a time, and reads them
/// back as pairs of one row.
#[test]
fn staging_is_a_bijection_without_bank_conflicts() {
    let sizes = shapes()
        .into_iter()
        .map(|shape| (shape.staged_rows, shape.warp_n));
    for (height, width) in sizes.collect::<HashSet<_>>() {
        let mut offsets = HashSet::new();
        for (row, pair) in (0..height).flat_map(|r| (0..width / 2).map(move |p| (r, p))) {
            let offset = staging_offset(row, 2 * pair, width);
            assert!(offset.is_multiple_of(8) && offset < 4 * height * width);
            assert!(offsets.insert(offset));
        }
        for (i, j, register) in
            (0..height / 16).flat_map(|i| (0..width / 8).flat_map(move |j| [(i, j, 0), (i, j, 2)]))
        {
            for half in [0, 16] {
                let written = (half..half + 16).map(|lane| {
                    let (row, col) = accumulator_position(lane, register);
                    staging_offset(16 * i + row, 8 * j + col, width)
                });
                assert!(each_once(banks(written, 8)));
            }
        }
        for row in 0..height {
            for first in (0..width).step_by(32) {
                let read = (0..16).map(|pair| staging_offset(row, first + 2 * pair, width));
                assert!(each_once(banks(read, 8)));
            }
        }
    }
}
