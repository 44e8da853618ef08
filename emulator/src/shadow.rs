//! Shadow memory of one CTA's shared memory: the last writer of each granule, its readers
//! since, and whether accesses are ordered.
//!
//! Reads between two writes form a set. Most granules share their history with
//! their neighbours, so sets are kept once, as lists that share their tails, and a
//! granule holds the number of its list.

use std::collections::HashMap;

use super::agent::{Agents, Proxy, Role};
use super::clock::{Epoch, Knowledge};
use super::report::Check;

/// Bytes that one shadow cell stands for: the smallest access of any instruction.
pub(super) const GRANULE: u32 = 2;

/// An access: its agent, and the knowledge of that agent.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) epoch: Epoch,
    pub(super) knowledge: &'a Knowledge,
    /// The epoch of the thread that started the access, where that is another agent.
    pub(super) issuer: Option<Epoch>,
    pub(super) proxy: Proxy,
}

impl Access<'_> {
    /// Whether this access is ordered after `other`.
    fn follows(self, other: Epoch) -> bool {
        let after = |own: Epoch| other.agent == own.agent && other.clock <= own.clock;
        after(self.epoch) || self.issuer.is_some_and(after) || self.knowledge.generic.covers(other)
    }
}

/// An access that breaks a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) check: Check,
    /// Byte offset of the granule.
    pub(super) offset: u32,
    /// The access that this one conflicts with.
    pub(super) other: Epoch,
}

/// The last write of a granule and the reads since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Cell {
    /// 0 for none.
    write: u64,
    /// Index in [`ReadSets`]; 0 for none.
    reads: u32,
}

fn pack(epoch: Epoch) -> u64 {
    u64::from(epoch.agent) << 32 | u64::from(epoch.clock)
}

fn unpack(packed: u64) -> Epoch {
    Epoch {
        agent: (packed >> 32) as u32,
        clock: packed as u32,
    }
}

/// The shadow of one CTA's shared memory.
#[derive(Debug)]
pub(super) struct Shadow {
    cells: Vec<Cell>,
    sets: ReadSets,
}

impl Shadow {
    pub(super) fn new(bytes: u32) -> Shadow {
        Shadow {
            cells: vec![Cell::default(); bytes.div_ceil(GRANULE) as usize],
            sets: ReadSets::new(),
        }
    }

    fn range(offset: u32, bytes: u32) -> std::ops::Range<usize> {
        (offset / GRANULE) as usize..(offset + bytes).div_ceil(GRANULE) as usize
    }

    /// Whether all of `bytes` from `offset` on were written.
    pub(super) fn is_written(&self, offset: u32, bytes: u32) -> bool {
        self.cells[Shadow::range(offset, bytes)]
            .iter()
            .all(|cell| cell.write != 0)
    }

    /// Records a read, and returns whether all of its bytes were ever written.
    pub(super) fn read(
        &mut self,
        (offset, bytes): (u32, u32),
        access: Access<'_>,
        agents: &Agents,
    ) -> Result<bool, Conflict> {
        if self.sets.is_full() {
            self.sets.compact(&mut self.cells);
        }
        let range = Shadow::range(offset, bytes);
        let mut last = None;
        let mut all_written = true;
        for (index, cell) in range.clone().zip(&mut self.cells[range]) {
            if let Some((before, after)) = last
                && before == *cell
            {
                *cell = after;
                continue;
            }
            let conflict = |check, other| Conflict {
                check,
                offset: index as u32 * GRANULE,
                other,
            };
            if cell.write != 0 {
                let write = unpack(cell.write);
                follows_write(write, access, agents).map_err(|check| conflict(check, write))?;
            } else {
                all_written = false;
            }
            let before = *cell;
            cell.reads = self.sets.add(cell.reads, access);
            last = Some((before, *cell));
        }
        Ok(all_written)
    }

    /// Records a write.
    pub(super) fn write(
        &mut self,
        (offset, bytes): (u32, u32),
        access: Access<'_>,
        agents: &Agents,
    ) -> Result<(), Conflict> {
        let range = Shadow::range(offset, bytes);
        let mut last = None;
        for (index, cell) in range.clone().zip(&mut self.cells[range]) {
            if last != Some(*cell) {
                let conflict = |check, other| Conflict {
                    check,
                    offset: index as u32 * GRANULE,
                    other,
                };
                if cell.write != 0 {
                    let write = unpack(cell.write);
                    follows_write(write, access, agents).map_err(|check| conflict(check, write))?;
                }
                for read in self.sets.iter(cell.reads) {
                    if !access.follows(read) {
                        let check = match agents.role(read.agent) {
                            Role::Multiplies(_) => Check::OperandOverwritten,
                            _ => Check::DataRace,
                        };
                        return Err(conflict(check, read));
                    }
                }
                last = Some(*cell);
            }
            *cell = Cell {
                write: pack(access.epoch),
                reads: 0,
            };
        }
        Ok(())
    }
}

/// Whether `access` is ordered after `write`.
fn follows_write(write: Epoch, access: Access<'_>, agents: &Agents) -> Result<(), Check> {
    if !access.follows(write) {
        return Err(Check::DataRace);
    }
    let written_by = agents.role(write.agent).proxy();
    let crosses = access.proxy == Proxy::Async && written_by == Proxy::Generic;
    if crosses && !access.knowledge.asynchronous.covers(write) {
        return Err(Check::MissingProxyFence);
    }
    Ok(())
}

/// One read, and the list of the other reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Node {
    read: Epoch,
    rest: u32,
}

/// Lists of reads with common tails; list 0 is empty.
#[derive(Debug)]
struct ReadSets {
    nodes: Vec<Node>,
    known: HashMap<Node, u32>,
}

impl ReadSets {
    /// Number of nodes at which unused nodes are dropped.
    const FULL: usize = 1 << 21;

    fn new() -> ReadSets {
        let epoch = Epoch { agent: 0, clock: 0 };
        ReadSets {
            nodes: vec![Node {
                read: epoch,
                rest: 0,
            }],
            known: HashMap::new(),
        }
    }

    fn is_full(&self) -> bool {
        self.nodes.len() > ReadSets::FULL
    }

    fn iter(&self, mut list: u32) -> impl Iterator<Item = Epoch> {
        std::iter::from_fn(move || {
            let node = self.nodes[list as usize];
            (list != 0).then(|| {
                list = node.rest;
                node.read
            })
        })
    }

    /// The list with one more read. Reads that the new reader knows of are dropped, because
    /// an access that is ordered after the new read is also ordered after them.
    fn add(&mut self, list: u32, access: Access<'_>) -> u32 {
        if self.iter(list).any(|read| read == access.epoch) {
            return list;
        }
        let all_known = self.iter(list).all(|read| access.follows(read));
        let rest = if all_known { 0 } else { list };
        self.node(Node {
            read: access.epoch,
            rest,
        })
    }

    fn node(&mut self, node: Node) -> u32 {
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        })
    }

    /// Drops the lists that no cell holds.
    fn compact(&mut self, cells: &mut [Cell]) {
        let old = std::mem::replace(self, ReadSets::new());
        let mut moved = HashMap::from([(0, 0)]);
        for cell in cells {
            cell.reads = self.copy(&old, cell.reads, &mut moved);
        }
    }

    fn copy(&mut self, old: &ReadSets, list: u32, moved: &mut HashMap<u32, u32>) -> u32 {
        let mut path = Vec::new();
        let mut next = list;
        while !moved.contains_key(&next) {
            path.push(next);
            next = old.nodes[next as usize].rest;
        }
        let mut rest = moved[&next];
        for list in path.into_iter().rev() {
            let read = old.nodes[list as usize].read;
            rest = self.node(Node { read, rest });
            moved.insert(list, rest);
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(agent: u32, clock: u32) -> Epoch {
        Epoch { agent, clock }
    }

    /// Knowledge of these epochs in the generic proxy only.
    fn knowing(epochs: &[Epoch]) -> Knowledge {
        let mut knowledge = Knowledge::default();
        for &epoch in epochs {
            knowledge.generic.learn(epoch);
        }
        knowledge
    }

    fn generic(epoch: Epoch, knowledge: &Knowledge) -> Access<'_> {
        Access {
            epoch,
            knowledge,
            issuer: None,
            proxy: Proxy::Generic,
        }
    }

    #[test]
    fn a_write_must_know_of_every_read() {
        let agents = Agents::new(4);
        let mut shadow = Shadow::new(64);
        let nothing = knowing(&[]);
        let at = (8, 4);
        shadow
            .write(at, generic(epoch(0, 1), &nothing), &agents)
            .unwrap();
        let wrote = knowing(&[epoch(0, 1)]);
        for reader in [1, 2] {
            shadow
                .read(at, generic(epoch(reader, 1), &wrote), &agents)
                .unwrap();
        }
        let one = knowing(&[epoch(0, 1), epoch(2, 1)]);
        let error = shadow
            .write(at, generic(epoch(3, 1), &one), &agents)
            .unwrap_err();
        assert_eq!((error.check, error.other), (Check::DataRace, epoch(1, 1)));
        let both = knowing(&[epoch(0, 1), epoch(1, 1), epoch(2, 1)]);
        shadow
            .write(at, generic(epoch(3, 1), &both), &agents)
            .unwrap();
    }

    #[test]
    fn reads_must_know_of_the_write_and_of_its_fence() {
        let agents = Agents::new(2);
        let mut shadow = Shadow::new(64);
        let nothing = knowing(&[]);
        let mut fresh = Shadow::new(64);
        assert!(
            !fresh
                .read((0, 2), generic(epoch(1, 1), &nothing), &agents)
                .unwrap()
        );
        shadow
            .write((0, 2), generic(epoch(0, 1), &nothing), &agents)
            .unwrap();
        let race = shadow.read((0, 2), generic(epoch(1, 1), &nothing), &agents);
        assert_eq!(race.unwrap_err().check, Check::DataRace);
        let mut knowledge = knowing(&[epoch(0, 1)]);
        let mut engine = |knowledge: &Knowledge| {
            let access = Access {
                epoch: epoch(2, 1),
                knowledge,
                issuer: None,
                proxy: Proxy::Async,
            };
            shadow.read((0, 2), access, &agents)
        };
        assert_eq!(
            engine(&knowledge).unwrap_err().check,
            Check::MissingProxyFence
        );
        knowledge.asynchronous = knowledge.generic.clone();
        engine(&knowledge).unwrap();
    }

    #[test]
    fn compacting_keeps_the_lists_in_use() {
        let nothing = knowing(&[]);
        let mut sets = ReadSets::new();
        let first = sets.add(0, generic(epoch(1, 1), &nothing));
        let second = sets.add(first, generic(epoch(2, 1), &nothing));
        sets.add(second, generic(epoch(3, 1), &nothing));
        let mut cells = [Cell {
            write: 1,
            reads: second,
        }; 2];
        sets.compact(&mut cells);
        assert_eq!(cells[0], cells[1]);
        let reads: Vec<_> = sets.iter(cells[0].reads).collect();
        assert_eq!(reads, [epoch(2, 1), epoch(1, 1)]);
        assert_eq!(sets.nodes.len(), 3);
    }
}
