//! The proof that no two steps of a program meet in memory, in whatever order they run.

use alloc::vec;
use alloc::vec::Vec;

use super::{Buffer, Part, Program, Step, Work};

/// Two steps that access the same rows, one of them writing, and that nothing keeps apart; or
/// a step that reads rows that no earlier step has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The first step; for rows that nobody wrote, the reader.
    pub first: usize,
    /// The second step, and whether it belongs to the next run of the program.
    pub second: Option<(usize, bool)>,
    /// The rows.
    pub part: Part,
}

/// How many runs, one after the other, the check looks at: one, and one behind it.
const RUNS: usize = 2;

impl Program {
    /// Proves for two runs, one enqueued behind the other, that every two accesses to the same
    /// rows, of which one is a write, have an order: one happens before the other because
    /// they are in one queue, or because the later one waits, at once or through others. A
    /// start counts as a write of all that the caller owns on that rank, and so does an end:
    /// the caller may have written it before, and may write it again. Copies and products
    /// read nothing that an earlier step of the run has not written.
    ///
    /// Because the order follows from the program alone, it holds for all timings.
    pub fn check(&self) -> Result<(), Conflict> {
        let steps = self.steps.len();
        let before = self.happens_before();
        let accesses: Vec<_> = self.steps.iter().map(|step| self.accesses(step)).collect();
        let is_before = |first: usize, second: usize| before[second][first];
        for second in 0..RUNS * steps {
            for first in 0..second {
                if is_before(first, second) {
                    continue;
                }
                let (reads_1, writes_1) = &accesses[first % steps];
                let (reads_2, writes_2) = &accesses[second % steps];
                let met = (writes_1.iter())
                    .find(|part| {
                        writes_2
                            .iter()
                            .chain(reads_2)
                            .any(|other| part.meets(other))
                    })
                    .or_else(|| {
                        (reads_1.iter()).find(|part| writes_2.iter().any(|other| part.meets(other)))
                    });
                if let Some(part) = met {
                    return Err(Conflict {
                        first: first % steps,
                        second: Some((second % steps, first / steps != second / steps)),
                        part: part.clone(),
                    });
                }
            }
        }
        for (reader, (reads, _)) in accesses.iter().enumerate() {
            for part in reads {
                let is_written = |row: usize| {
                    (0..reader).any(|writer| {
                        is_before(writer, reader)
                            && accesses[writer].1.iter().any(|written| {
                                written.buffer == part.buffer && written.rows.contains(&row)
                            })
                    })
                };
                // Parts begin and end where others do, so the ends stand for all rows.
                let ends = [part.rows.start, part.rows.end - 1];
                if !ends.into_iter().all(is_written) {
                    return Err(Conflict {
                        first: reader,
                        second: None,
                        part: part.clone(),
                    });
                }
            }
        }
        Ok(())
    }

    /// For each step of the runs, the steps that have finished when it begins.
    fn happens_before(&self) -> Vec<Vec<bool>> {
        let steps = self.steps.len();
        let mut before: Vec<Vec<bool>> = Vec::new();
        for index in 0..RUNS * steps {
            let step = &self.steps[index % steps];
            let run = index / steps * steps;
            let mut own = vec![false; RUNS * steps];
            let in_queue = (0..index).rev().find(|&other| {
                let other = &self.steps[other % steps];
                (other.rank, other.queue) == (step.rank, step.queue)
            });
            let waits = step.after.iter().map(|&other| run + other);
            for other in waits.chain(in_queue) {
                own[other] = true;
                for (mine, theirs) in own.iter_mut().zip(&before[other]) {
                    *mine |= theirs;
                }
            }
            before.push(own);
        }
        before
    }

    /// What a step reads, and what it writes.
    fn accesses(&self, step: &Step) -> (Vec<Part>, Vec<Part>) {
        match &step.work {
            Work::Start | Work::End => {
                let rank = step.rank;
                let owned = [Buffer::A { rank }, Buffer::B { rank }, Buffer::C { rank }];
                let whole = |buffer| Part::new(buffer, 0..usize::MAX);
                (Vec::new(), owned.map(whole).into())
            }
            Work::Copy { from, to } => (vec![from.clone()], vec![to.clone()]),
            Work::Product { a, source, c, .. } => {
                let b = Part::new(Buffer::B { rank: step.rank }, 0..1);
                let mut reads = vec![a.clone(), b];
                reads.extend(source.clone());
                (reads, vec![c.clone()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use super::super::{
        Shards, all_gather_matmul, all_gather_matmul_pushed, matmul_all_reduce,
        matmul_all_reduce_pushed, matmul_reduce_scatter,
    };
    use super::*;

    /// Programs of one to eight ranks, with parts of equal and of different size.
    fn programs() -> Vec<(String, Program)> {
        let mut programs = Vec::new();
        for ranks in 1..=8 {
            for (name, rows) in [
                ("equal", vec![1024; ranks]),
                ("growing", (0..ranks).map(|rank| 300 * rank + 1).collect()),
                ("one empty", (0..ranks).map(|rank| 512 * rank).collect()),
            ] {
                let shards = Shards::new(rows).expect("small");
                for chunks in [1, 2, 4] {
                    let name = |what| format!("{what}, {ranks} ranks, {name}, {chunks} chunks");
                    programs.push((name("all-gather"), all_gather_matmul(&shards, chunks)));
                    programs.push((name("scatter"), matmul_reduce_scatter(&shards, chunks)));
                    programs.push((name("all-reduce"), matmul_all_reduce(&shards, chunks)));
                    let pushed = all_gather_matmul_pushed(&shards, chunks);
                    programs.push((name("pushed all-gather"), pushed));
                    let pushed = matmul_all_reduce_pushed(&shards, chunks);
                    programs.push((name("pushed all-reduce"), pushed));
                }
            }
        }
        programs
    }

    #[test]
    fn no_two_steps_meet() {
        for (name, program) in programs() {
            assert_eq!(program.check(), Ok(()), "{name}");
        }
    }

    /// Every wait is needed, and the check sees that it is missing. (So a check that accepts
    /// everything fails here.)
    #[test]
    fn every_wait_is_needed() {
        let mut waits = 0;
        for (name, program) in programs() {
            // Empty parts leave steps out that others would have waited through.
            if !name.contains("equal") || program.ranks > 5 {
                continue;
            }
            for step in 0..program.steps.len() {
                for wait in 0..program.steps[step].after.len() {
                    // The copies of an all-reduce keep its runs apart as well.
                    let is_bound = program.steps[step].after[wait] < program.ranks
                        || program.steps[step].work == Work::End;
                    if is_bound && name.contains("all-reduce") {
                        continue;
                    }
                    let mut mutant = program.clone();
                    let before = mutant.steps[step].after.remove(wait);
                    assert!(
                        mutant.check().is_err(),
                        "{name}: step {step} ({:?}) need not wait for {before} ({:?})",
                        program.steps[step],
                        program.steps[before]
                    );
                    waits += 1;
                }
            }
        }
        assert!(waits > 500, "{waits}");
    }

    /// A step that accesses the wrong chunk is seen too.
    #[test]
    fn a_wrong_chunk_is_seen() {
        let shards = Shards::new([1024, 1024]).expect("small");
        let program = all_gather_matmul(&shards, 2);
        let mut mutant = program.clone();
        let gathered = mutant
            .steps
            .iter_mut()
            .find_map(|step| match &mut step.work {
                Work::Product { a, .. } if matches!(a.buffer, Buffer::Gathered { .. }) => Some(a),
                _ => None,
            });
        gathered.expect("a product of gathered rows").rows = 512..1024;
        assert!(mutant.check().is_err());
    }
}
