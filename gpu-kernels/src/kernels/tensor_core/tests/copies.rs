//! Global to shared memory: every element of a panel comes from its own
//! address, once, and elements past an edge are zeros.

use super::*;
use crate::kernels::tensor_core::copy::{Chunk, Copier, Source};
use crate::tensor_ref::TensorRef;

/// The hardware serves 16-byte stores eight lanes at a time.
#[test]
fn copies_have_no_bank_conflicts() {
    for (panel, threads) in panels() {
        for first in (0..threads).step_by(8) {
            let offsets = (first..first + 8).map(|thread| {
                let (line, chunk) = panel.first_chunk(thread);
                panel.offset(line, chunk)
            });
            assert!(
                each_once(banks(offsets, 16)),
                "{panel:?} from thread {first}"
            );
        }
    }
}

/// For every element of the panel, the address from which one CTA copies it for
/// one block, or `None` for a zero.
fn copied(copiers: &[Copier], panel: Panel, k: u32, run_bytes: u64) -> Vec<Option<u64>> {
    let mut memory = vec![None; (panel.bytes() / panel.element_bytes) as usize];
    let mut offsets = HashSet::new();
    for copier in copiers {
        let chunks = std::iter::successors(Some(copier.first_chunk(k)), |&chunk| {
            Some(copier.next_chunk(chunk))
        });
        for chunk in chunks.take_while(|chunk| chunk.line < panel.lines()) {
            assert!(offsets.insert(chunk.offset), "a chunk is copied twice");
            for element in 0..chunk.elements() {
                let at = chunk.offset / panel.element_bytes + element;
                memory[at as usize] = Some(chunk.address + run_bytes * element as u64);
            }
        }
    }
    assert_eq!(
        offsets.len() as u32 * CHUNK,
        panel.bytes(),
        "all chunks are copied"
    );
    memory
}

/// For every tile and block of an operand with ragged edges, in several layouts,
/// each element of the panel comes from its own address, and elements past the
/// edge are zeros.
#[test]
fn copies_bring_the_operand_and_zeros_past_its_edges() {
    for (panel, threads) in panels() {
        let (mn_size, k_size) = (panel.extent + panel.extent / 2 + 3, 2 * panel.depth + 5);
        let pitch = 4096u64;
        let strides = match panel.major {
            Major::K => [(pitch, 1), (1, pitch), (pitch + 1, 3), (0, 1)],
            Major::Mn => [(1, pitch), (pitch, 1), (3, pitch + 1), (1, 0)],
        };
        let bytes = panel.element_bytes as u64;
        let symbols = fill(panel);
        for (mn_stride, k_stride) in strides {
            // The copier treats A and B alike, so either stride may be the row stride.
            let operand = TensorRef {
                batch_stride: 0,
                address: 1 << 20,
                row_stride: mn_stride,
                col_stride: k_stride,
            };
            let source = Source::new(panel, &operand, mn_stride, k_stride);
            let run_bytes = bytes
                * if panel.major == Major::K {
                    k_stride
                } else {
                    mn_stride
                };
            for mn in [0, panel.extent] {
                let mut copiers: Vec<Copier> = (0..threads)
                    .map(|thread| Copier::new(panel, threads, thread, source, mn, mn_size, k_size))
                    .collect();
                for k in (0..k_size + panel.depth).step_by(panel.depth as usize) {
                    let from = copied(&copiers, panel, k, run_bytes);
                    for (&(i, j), &from) in symbols.iter().zip(&from) {
                        let (i, j) = (mn + i, k + j);
                        let exists = i < mn_size && j < k_size;
                        let address =
                            operand.address + (i as u64 * mn_stride + j as u64 * k_stride) * bytes;
                        assert_eq!(from, exists.then_some(address), "{panel:?} ({i}, {j})");
                    }
                    let line_stride = if panel.major == Major::K {
                        mn_stride
                    } else {
                        k_stride
                    };
                    // Elements in parts are always packed.
                    let aligned = panel.parts > 1
                        || run_bytes == bytes && (line_stride * bytes).is_multiple_of(16);
                    let inside = mn + panel.extent <= mn_size && k + panel.depth <= k_size;
                    for copier in &mut copiers {
                        assert_eq!(copier.is_whole(k), aligned && inside);
                        // A whole block's passes go to the same addresses.
                        let mut chunk = copier.first_chunk(k);
                        for pass in 0..panel.passes(threads) {
                            assert_eq!(copier.first_chunk(k).address, chunk.address);
                            assert_eq!(
                                copier.first_chunk(k).offset + pass * Panel::pass_bytes(threads),
                                chunk.offset
                            );
                            chunk = copier.next_chunk(chunk);
                            copier.next_pass();
                        }
                        copier.advance();
                    }
                }
            }
        }
    }
}

/// Chunks go through registers where the operand is aligned and each chunk of the block
/// exists whole or not at all.
#[test]
fn blocks_are_in_whole_chunks_where_no_chunk_is_cut() {
    for (panel, threads) in panels() {
        let full = panel.chunk_elements();
        for (more, k_more) in [
            (0, 0),
            (full, 2 * full),
            (full - 1, full),
            (full, 1),
            (0, 3),
        ] {
            let (mn_size, k_size) = (panel.extent + more, panel.depth + k_more);
            for pitch in [4096, 4097] {
                let (mn_stride, k_stride) = match panel.major {
                    Major::K => (pitch, 1),
                    Major::Mn => (1, pitch),
                };
                let operand = TensorRef {
                    batch_stride: 0,
                    address: 1 << 20,
                    row_stride: mn_stride,
                    col_stride: k_stride,
                };
                let source = Source::new(panel, &operand, mn_stride, k_stride);
                for (mn, k) in [0, panel.extent]
                    .into_iter()
                    .flat_map(|mn| [(mn, 0), (mn, panel.depth)])
                {
                    let copiers = (0..threads).map(|thread| {
                        Copier::new(panel, threads, thread, source, mn, mn_size, k_size)
                    });
                    let copiers: Vec<Copier> = copiers.collect();
                    let chunks = copiers.iter().flat_map(|copier| {
                        let next = |&chunk: &Chunk| Some(copier.next_chunk(chunk));
                        std::iter::successors(Some(copier.first_chunk(k)), next)
                            .take_while(|chunk| chunk.line < panel.lines())
                    });
                    let is_cut = |chunk: Chunk| !chunk.elements().is_multiple_of(full);
                    let aligned = pitch == 4096 || panel.parts > 1;
                    let whole = aligned && !chunks.into_iter().any(is_cut);
                    let exists = mn < mn_size && k < k_size;
                    for copier in &copiers {
                        // Nothing of a block past the operand is copied either way.
                        if exists {
                            let is_whole = copier.is_in_whole_chunks(k);
                            assert_eq!(
                                is_whole, whole,
                                "{panel:?} {mn_size}×{k_size} at {mn}, {k}"
                            );
                        }
                    }
                }
            }
        }
    }
}
