//! GEMM + reduce-scatter, and GEMM + all-reduce: A and B are split along K.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Buffer, Part, Program, Queue, Shards, Turns, Work};

/// Every rank adds up its own rows of C: the sum of the products of all ranks.
///
/// The sums go round a ring. The rows of rank d start on rank d + 1, which multiplies its part
/// of K; a copy engine moves the product to rank d + 2; that one adds its own product, and so on,
/// until rank d adds the last one. The order of each sum is therefore fixed: d + 1, d + 2, …, d.
/// A launch adds what its rank has received as the source of its epilogue, so no pass over C is
/// spent on adding.
///
/// `rows` are those of C. Each rank's are multiplied by at most `chunks` launches, so that a sum
/// travels while its rank makes the next one.
pub fn matmul_reduce_scatter(rows: &Shards, chunks: usize) -> Program {
    let mut program = Program::new(rows.ranks());
    let ring = reduce(&mut program, rows, chunks, |_, chunk| chunk);
    for (rank, last) in ring.last_copies.into_iter().enumerate() {
        // The next run overwrites what the copy reads.
        let after = last.into_iter().chain(program.last_of_c(&ring.turns, rank));
        program.push(rank, Queue::Compute, after.collect(), Work::End);
    }
    program
}

/// [`matmul_reduce_scatter`] into the rows of C that each rank owns, of a C that every rank
/// has whole; then the others copy these rows, chunk by chunk, while the next chunk is
/// multiplied.
pub fn matmul_all_reduce(rows: &Shards, chunks: usize) -> Program {
    let ranks = rows.ranks();
    let mut program = Program::new(ranks);
    let Ring {
        sums,
        last_copies,
        turns,
    } = reduce(&mut program, rows, chunks, |rank, chunk| {
        let first = rows.range(rank).start;
        first + chunk.start..first + chunk.end
    });
    // The last copy of each rank, and the last copies that read the rows of each rank.
    let mut last = last_copies;
    let mut touches_c = vec![false; ranks];
    let mut readers = vec![Vec::new(); ranks];
    for distance in 1..ranks {
        for rank in 0..ranks {
            let peer = (rank + distance) % ranks;
            let mut last_here = None;
            for (step, chunk) in &sums[peer] {
                let mut after = vec![*step];
                if !touches_c[rank] {
                    // The caller's earlier work on this rank's C.
                    after.push(rank);
                    touches_c[rank] = true;
                }
                let from = Part::new(Buffer::C { rank: peer }, chunk.clone());
                let to = Part::new(Buffer::C { rank }, chunk.clone());
                let copy = program.push(rank, Queue::Copy, after, Work::Copy { from, to });
                last[rank] = Some(copy);
                last_here = Some(copy);
            }
            readers[peer].extend(last_here);
        }
    }
    for rank in 0..ranks {
        let mut after = core::mem::take(&mut readers[rank]);
        after.extend(last[rank]);
        after.extend(program.last_of_c(&turns, rank));
        program.push(rank, Queue::Compute, after, Work::End);
    }
    program
}

/// What [`reduce`] has appended.
pub(super) struct Ring {
    /// The last product of each sum, by the rank that owns the rows, and its place in C.
    pub sums: Vec<Vec<(usize, Range<usize>)>>,
    /// The last copy of each rank.
    pub last_copies: Vec<Option<usize>>,
    pub turns: Turns,
}

/// Appends the starts and the ring. `in_c` gives the place of a chunk of a rank's rows in that
/// rank's C.
pub(super) fn reduce(
    program: &mut Program,
    rows: &Shards,
    chunks: usize,
    in_c: impl Fn(usize, Range<usize>) -> Range<usize>,
) -> Ring {
    let ranks = rows.ranks();
    program.start_all();
    let mut ring = Ring {
        sums: vec![Vec::new(); ranks],
        last_copies: vec![None; ranks],
        turns: Turns::new(ranks),
    };
    // The copies of the hop before, by the rank that owns the rows.
    let mut arrivals: Vec<Vec<usize>> = vec![Vec::new(); ranks];
    for hop in 0..ranks {
        let is_last = hop + 1 == ranks;
        for (owner, arrivals) in arrivals.iter_mut().enumerate() {
            let rank = (owner + 1 + hop) % ranks;
            let next = (rank + 1) % ranks;
            let first = rows.range(owner).start;
            let arrived = core::mem::take(arrivals);
            for (index, chunk) in rows.chunks(owner, chunks).enumerate() {
                let source = (hop > 0).then(|| {
                    let hop = hop - 1;
                    Part::new(Buffer::Received { rank, hop }, chunk.clone())
                });
                let to = match is_last {
                    true => Part::new(Buffer::C { rank }, in_c(rank, chunk.clone())),
                    false => Part::new(Buffer::Made { rank, hop }, chunk.clone()),
                };
                let product = Work::Product {
                    a: Part::new(Buffer::A { rank }, first + chunk.start..first + chunk.end),
                    source,
                    c: to.clone(),
                    is_last,
                };
                let after = arrived.get(index).copied().into_iter().collect();
                let product = program.multiply(&mut ring.turns, rank, after, product);
                if is_last {
                    ring.sums[rank].push((product, to.rows));
                    continue;
                }
                let mut after = vec![product];
                if ring.last_copies[rank].is_none() {
                    // The next rank has read what the run before left there. (Later copies are
                    // in the same queue.)
                    after.push(next);
                }
                let copy = Work::Copy {
                    from: to,
                    to: Part::new(Buffer::Received { rank: next, hop }, chunk),
                };
                let copy = program.push(rank, Queue::Copy, after, copy);
                ring.last_copies[rank] = Some(copy);
                arrivals.push(copy);
            }
        }
    }
    ring
}
