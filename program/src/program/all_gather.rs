//! All-gather + GEMM: A is split along M, B along N.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use super::{Buffer, Part, Program, Queue, Shards, Turns, Work};

/// Every rank multiplies all rows of A with its own B: first its own rows, which are there,
/// then those of rank + 1, rank + 2 and so on, in the order in which its copies bring them.
/// The copies of a rank read a different peer each, at any time, so that no link has two.
///
/// `rows` are those of A. The rows of a peer come in at most `chunks` parts, and each is
/// multiplied by a launch of its own.
pub fn all_gather_matmul(rows: &Shards, chunks: usize) -> Program {
    let ranks = rows.ranks();
    let mut program = Program::new(ranks);
    program.start_all();
    // The copies that read the A of each rank.
    let mut readers = vec![Vec::new(); ranks];
    let mut arrivals = vec![Vec::new(); ranks];
    for distance in 1..ranks {
        for (rank, arrived) in arrivals.iter_mut().enumerate() {
            let peer = (rank + distance) % ranks;
            let gathered = Buffer::Gathered { rank, from: peer };
            let mut last = None;
            for chunk in rows.chunks(peer, chunks) {
                let mut after = Vec::new();
                if last.is_none() {
                    // The peer's A is written, and the products of the run before have read
                    // what this overwrites. (Later copies are in the same queue.)
                    after.push(peer);
                    if arrived.is_empty() {
                        after.push(rank);
                    }
                }
                let from = Part::new(Buffer::A { rank: peer }, chunk.clone());
                let to = Part::new(gathered, chunk.clone());
                let copy = program.push(rank, Queue::Copy, after, Work::Copy { from, to });
                arrived.push((copy, gathered, chunk, rows.range(peer).start));
                last = Some(copy);
            }
            readers[peer].extend(last);
        }
    }
    let mut turns = Turns::new(ranks);
    for (rank, arrived) in arrivals.into_iter().enumerate() {
        program.multiply_gathered(&mut turns, rank, rows, arrived);
    }
    for (rank, mut readers) in readers.into_iter().enumerate() {
        readers.extend(turns.last_aside[rank]);
        program.push(rank, Queue::Compute, readers, Work::End);
    }
    program
}

impl Program {
    /// Appends the products of `rank`: of its own rows, and then of those that copies bring, in
    /// their order: the copy, the buffer, its rows and the first row of their owner in C.
    pub(super) fn multiply_gathered(
        &mut self,
        turns: &mut Turns,
        rank: usize,
        rows: &Shards,
        arrived: Vec<(usize, Buffer, Range<usize>, usize)>,
    ) {
        let first = rows.range(rank).start;
        let own = (None, Buffer::A { rank }, 0..rows.len(rank), first);
        let peers = arrived.into_iter();
        let peers = peers.map(|(copy, from, chunk, first)| (Some(copy), from, chunk, first));
        for (copy, from, chunk, first) in core::iter::once(own).chain(peers) {
            if chunk.is_empty() {
                continue;
            }
            let of_c = first + chunk.start..first + chunk.end;
            let product = Work::Product {
                a: Part::new(from, chunk),
                source: None,
                c: Part::new(Buffer::C { rank }, of_c),
                is_last: true,
            };
            self.multiply(turns, rank, copy.into_iter().collect(), product);
        }
    }
}
