use std::collections::HashSet;

use super::*;
use crate::entry::KERNELS;
use crate::kernel::Family;

/// The thread block and element size of every instantiation.
fn instances() -> Vec<(Threads, u32)> {
    let instances: Vec<_> = KERNELS
        .iter()
        .filter(|kernel| kernel.family == Family::Tiled)
        .map(|kernel| {
            let threads = Threads {
                block_m: kernel.block.m,
                block_n: kernel.block.n,
                block_k: kernel.block.k,
            };
            assert_eq!(threads.count(), kernel.threads);
            (threads, kernel.input.bytes())
        })
        .collect();
    assert!(!instances.is_empty());
    instances
}

#[test]
fn blocks_that_the_index_functions_do_not_cover_are_refused() {
    for (threads, _) in instances() {
        threads.check();
    }
    for (block_m, block_n, block_k, reason) in [
        (96, 128, 16, "powers of two"),
        (128, 128, 8, "every 16 steps"),
        (16, 128, 16, "BLOCK_M is too small"),
        (64, 16, 16, "BLOCK_N is too small"),
        (512, 512, 16, "32 to 1024 threads"),
        (512, 32, 16, "too few threads"),
        (256, 256, 16, "BLOCK_K is too small"),
        (128, 128, 64, "BLOCK_K is too large"),
    ] {
        let threads = Threads {
            block_m,
            block_n,
            block_k,
        };
        let refused = std::panic::catch_unwind(|| threads.check()).expect_err(reason);
        let message = refused.downcast_ref::<&str>().copied().unwrap_or_default();
        assert!(message.contains(reason), "{threads:?}: {message}");
    }
}

/// Every way in which the instances copy a tile.
fn copy_maps() -> Vec<CopyMap> {
    let mut maps = Vec::new();
    for (threads, bytes) in instances() {
        for block_mn in [threads.block_m, threads.block_n] {
            for vector in [1, 16 / bytes] {
                for along_k in [false, true] {
                    maps.push(CopyMap {
                        block_mn,
                        block_k: threads.block_k,
                        threads: threads.count(),
                        vector,
                        along_k,
                    });
                }
            }
        }
    }
    maps
}

/// The start of item `item` of `thread`.
fn item(map: CopyMap, thread: u32, item: u32) -> Place {
    let (first, step) = (map.first(thread), map.step());
    Place {
        mn: first.mn + item * step.mn,
        k: first.k + item * step.k,
    }
}

/// Wavefronts of one access: groups of lanes are served one after the other, and a
/// group takes as many wavefronts as its busiest bank has different words.
fn wavefronts(addresses: &[u32], words: u32, lanes_together: usize) -> usize {
    addresses
        .chunks(lanes_together)
        .map(|group| {
            let touched: HashSet<u32> = group
                .iter()
                .flat_map(|address| (0..words).map(move |word| address / 4 + word))
                .collect();
            (0..32)
                .map(|bank| touched.iter().filter(|word| *word % 32 == bank).count())
                .max()
                .unwrap_or(0)
        })
        .sum()
}

#[test]
fn register_tiles_cover_the_block_once() {
    for (threads, _) in instances() {
        let mut seen = HashSet::new();
        for thread in 0..threads.count() {
            let (row, col) = threads.register_tile(thread);
            for m in 0..threads.register_m() {
                for n in 0..threads.register_n() {
                    let row = row + m / QUAD * threads.quad_step_m() + m % QUAD;
                    let col = col + n / QUAD * threads.quad_step_n() + n % QUAD;
                    assert!(row < threads.block_m && col < threads.block_n);
                    assert!(seen.insert((row, col)), "{threads:?} {row} {col}");
                }
            }
        }
        assert_eq!(seen.len() as u32, threads.block_m * threads.block_n);
    }
}

#[test]
fn copies_cover_the_tile_once() {
    for map in copy_maps() {
        let mut seen = HashSet::new();
        for thread in 0..map.threads {
            for i in 0..map.items() {
                let place = item(map, thread, i);
                for element in 0..map.vector {
                    let (mn, k) = if map.along_k {
                        (place.mn, place.k + element)
                    } else {
                        (place.mn + element, place.k)
                    };
                    assert!(mn < map.block_mn && k < map.block_k);
                    assert!(seen.insert((mn, k)), "{map:?} {mn} {k}");
                }
            }
        }
        assert_eq!(seen.len() as u32, map.block_mn * map.block_k);
    }
}

#[test]
fn neighbouring_threads_copy_neighbours() {
    for map in copy_maps() {
        let (one, two) = (map.first(0), map.first(1));
        assert_eq!(one, Place { mn: 0, k: 0 });
        let distance = if map.along_k { two.k } else { two.mn };
        assert_eq!(distance, map.vector, "{map:?}");
    }
}

#[test]
fn shared_offsets_are_a_bijection_that_keeps_quads_whole() {
    for (threads, _) in instances() {
        for block_mn in [threads.block_m, threads.block_n] {
            let mut seen = HashSet::new();
            for k in 0..threads.block_k {
                for mn in 0..block_mn {
                    let offset = shared_offset(block_mn, Place { mn, k });
                    assert!(offset.is_multiple_of(4) && offset < block_mn * threads.block_k * 4);
                    assert!(seen.insert(offset));
                    let quad = shared_offset(
                        block_mn,
                        Place {
                            mn: mn / QUAD * QUAD,
                            k,
                        },
                    );
                    assert_eq!(offset, quad + mn % QUAD * 4);
                }
            }
        }
    }
}

/// The inner loop XORs the swizzle into the address of a fragment in line 0,
/// and adds the other quads' distance afterwards.
#[test]
fn fragments_are_read_where_they_were_written() {
    let stage = 1024 * 3;
    for (threads, _) in instances() {
        for thread in 0..threads.count() {
            let (row, _) = threads.register_tile(thread);
            for k in 0..threads.block_k {
                for quad in 0..threads.register_m() / QUAD {
                    let read = ((stage + row * 4) ^ (swizzle(k % 16) * 4))
                        + k * threads.block_m * 4
                        + quad * threads.quad_step_m() * 4;
                    let mn = row + quad * threads.quad_step_m();
                    assert_eq!(
                        read,
                        stage + shared_offset(threads.block_m, Place { mn, k })
                    );
                }
            }
        }
    }
}

#[test]
fn fragment_reads_take_one_wavefront_a_half_warp() {
    for (threads, _) in instances() {
        for warp in 0..threads.count() / 32 {
            for k in 0..threads.block_k {
                let offsets = |line: fn(Threads, u32) -> (u32, u32)| -> Vec<u32> {
                    (warp * 32..warp * 32 + 32)
                        .map(|thread| {
                            let (block_mn, mn) = line(threads, thread);
                            shared_offset(block_mn, Place { mn, k })
                        })
                        .collect()
                };
                let a =
                    offsets(|threads, thread| (threads.block_m, threads.register_tile(thread).0));
                let b =
                    offsets(|threads, thread| (threads.block_n, threads.register_tile(thread).1));
                assert_eq!(wavefronts(&a, 4, 16), 2);
                assert_eq!(wavefronts(&b, 4, 16), 2);
            }
        }
    }
}

/// Wavefronts of the stores of one item into shared memory, for the worst warp:
/// along K one 32-bit store an element (32 lanes together), along M or N one
/// 128-bit store a quad (8 lanes together).
fn store_wavefronts(map: CopyMap) -> usize {
    let mut worst = 0;
    for warp in 0..map.threads / 32 {
        for element in (0..map.vector).step_by(if map.along_k { 1 } else { QUAD as usize }) {
            let offsets: Vec<u32> = (warp * 32..warp * 32 + 32)
                .map(|thread| {
                    let Place { mn, k } = map.first(thread);
                    let place = if map.along_k {
                        Place { mn, k: k + element }
                    } else {
                        Place {
                            mn: mn + element,
                            k,
                        }
                    };
                    shared_offset(map.block_mn, place)
                })
                .collect();
            let (words, together) = if map.along_k || map.vector == 1 {
                (1, 32)
            } else {
                (4, 8)
            };
            worst = worst.max(wavefronts(&offsets, words, together));
        }
    }
    worst
}

#[test]
fn stores_of_vectors_along_k_have_no_bank_conflicts() {
    for map in copy_maps() {
        if map.vector > 1 && map.along_k {
            assert_eq!(store_wavefronts(map), 1, "{map:?}");
        }
    }
}

/// 512 bytes take four wavefronts; the two quads of eight 16-bit elements are
/// 32 bytes apart from thread to thread, which costs twice that.
#[test]
fn stores_of_vectors_along_mn_conflict_only_for_16_bit_elements() {
    for map in copy_maps() {
        if map.vector > 1 && !map.along_k {
            assert_eq!(store_wavefronts(map), map.vector as usize, "{map:?}");
        }
    }
}
