//! Programs whose copies are run by the rank that has the rows, for ranks that are processes.
//!
//! A process cannot read the caller's matrices of another one without asking its allocator for
//! them. So no copy reads or writes the caller's memory of another rank: the owner of the rows
//! copies them into memory of the plan, which the receiver has opened to it.

use alloc::vec;
use alloc::vec::Vec;

use super::reduce_scatter::reduce;
use super::{Buffer, Part, Program, Queue, Shards, Turns, Work};

/// [`all_gather_matmul`](super::all_gather_matmul), whose rows are copied by their owner: rank q
/// serves q − 1 first, then q − 2 and so on, so that rank r receives from r + 1, r + 2, …, from
/// one peer at a time, as it does where it copies itself.
pub fn all_gather_matmul_pushed(rows: &Shards, chunks: usize) -> Program {
    let ranks = rows.ranks();
    let mut program = Program::new(ranks);
    program.start_all();
    let mut last_copies = vec![None; ranks];
    let mut arrivals = vec![Vec::new(); ranks];
    for distance in 1..ranks {
        for (owner, last_copy) in last_copies.iter_mut().enumerate() {
            let receiver = (owner + ranks - distance) % ranks;
            let gathered = Buffer::Gathered {
                rank: receiver,
                from: owner,
            };
            for (index, chunk) in rows.chunks(owner, chunks).enumerate() {
                let mut after = Vec::new();
                if last_copy.is_none() {
                    // A is written.
                    after.push(owner);
                }
                if index == 0 {
                    // The products of the run before have read what this overwrites.
                    after.push(receiver);
                }
                let from = Part::new(Buffer::A { rank: owner }, chunk.clone());
                let to = Part::new(gathered, chunk.clone());
                let copy = program.push(owner, Queue::Copy, after, Work::Copy { from, to });
                arrivals[receiver].push((copy, gathered, chunk, rows.range(owner).start));
                *last_copy = Some(copy);
            }
        }
    }
    let mut turns = Turns::new(ranks);
    for (rank, arrived) in arrivals.into_iter().enumerate() {
        program.multiply_gathered(&mut turns, rank, rows, arrived);
    }
    for (rank, last) in last_copies.into_iter().enumerate() {
        let after = last.into_iter().chain(turns.last_aside[rank]);
        program.push(rank, Queue::Compute, after.collect(), Work::End);
    }
    program
}

/// [`matmul_all_reduce`](super::matmul_all_reduce), whose finished rows are copied by their
/// owner into memory of the plan, and from there into C by its own rank.
pub fn matmul_all_reduce_pushed(rows: &Shards, chunks: usize) -> Program {
    let ranks = rows.ranks();
    let mut program = Program::new(ranks);
    let ring = reduce(&mut program, rows, chunks, |rank, chunk| {
        let first = rows.range(rank).start;
        first + chunk.start..first + chunk.end
    });
    let mut last_copies = ring.last_copies;
    let mut last_stores = vec![None; ranks];
    for distance in 1..ranks {
        for (owner, last_copy) in last_copies.iter_mut().enumerate() {
            let receiver = (owner + ranks - distance) % ranks;
            let first = rows.range(owner).start;
            let finished = Buffer::Finished {
                rank: receiver,
                from: owner,
            };
            for (sum, in_c) in &ring.sums[owner] {
                // Every rank has added to the sum, so the receiver has begun this run, and no
                // longer reads what the run before left in the plan's memory. Copies to other
                // receivers are behind the first one, in one queue.
                let after = if distance == 1 {
                    vec![*sum]
                } else {
                    Vec::new()
                };
                let received = Part::new(finished, in_c.start - first..in_c.end - first);
                let copy = Work::Copy {
                    from: Part::new(Buffer::C { rank: owner }, in_c.clone()),
                    to: received.clone(),
                };
                let copy = program.push(owner, Queue::Copy, after, copy);
                *last_copy = Some(copy);
                let store = Work::Copy {
                    from: received,
                    to: Part::new(Buffer::C { rank: receiver }, in_c.clone()),
                };
                let store = program.push(receiver, Queue::Local, vec![copy], store);
                last_stores[receiver] = Some(store);
            }
        }
    }
    for rank in 0..ranks {
        let mut after: Vec<_> = last_copies[rank].into_iter().collect();
        after.extend(last_stores[rank]);
        after.extend(program.last_of_c(&ring.turns, rank));
        program.push(rank, Queue::Compute, after, Work::End);
    }
    program
}
