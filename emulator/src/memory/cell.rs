//! The shadow of a granule of global memory: its last writer, and its last reader.
//!
//! One reader is enough for the kernels here. They read inputs that no kernel writes, by
//! `ld.global.nc` and by TMA; a source that C replaces, by one thread or one TMA load; and
//! everything else they hand over through flags.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use bytemuck::Zeroable;

use crate::clock::{Epoch, Knowledge};
use crate::report::Check;

/// The host, or an earlier launch, has written the granule.
const BEFORE_LAUNCH: u64 = u64::MAX;

/// Marks readers after which nothing may write the granule in this launch: one that reads
/// through the non-coherent path, or several TMA loads of which none is ordered after
/// another.
const FINAL: u64 = 1 << 63;

/// How a granule is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// `ld.global`.
    Coherently,
    /// `ld.global` of a word that the kernel uses in part. What may not be read is not used, and
    /// undefined.
    InPart,
    /// `ld.global.nc`, `cp.async`, and the loads of tensor maps.
    NonCoherently,
    /// A TMA load. It does not see this launch's writes, because no kernel here has the proxy
    /// fence that would be needed in between; but a write may follow it.
    ByTma,
}

/// See the head of this file.
#[derive(Debug)]
pub(super) struct Cell {
    /// A packed [`Actor`], [`BEFORE_LAUNCH`], or 0 for none.
    write: AtomicU64,
    /// A packed [`Actor`], perhaps with [`FINAL`], or 0 for none.
    read: AtomicU64,
}

// SAFETY: both of its atomics may be zero.
unsafe impl Zeroable for Cell {}

/// An agent that accesses global memory.
#[derive(Clone, Copy)]
pub(crate) struct Actor<'a> {
    /// Index of the cluster in the grid.
    pub(crate) cluster: u32,
    pub(crate) epoch: Epoch,
    pub(crate) knowledge: &'a Knowledge,
}

const CLUSTER_SHIFT: u32 = 43;
const AGENT_SHIFT: u32 = 30;

/// Cluster (20 bits), agent (13) and clock (30) in one word, never 0.
fn pack(actor: Actor<'_>) -> u64 {
    u64::from(actor.cluster) << CLUSTER_SHIFT
        | u64::from(actor.epoch.agent) << AGENT_SHIFT
        | u64::from(actor.epoch.clock)
}

fn unpack(packed: u64) -> (u32, Epoch) {
    let field = |shift: u32, bits: u32| (packed >> shift & ((1 << bits) - 1)) as u32;
    (
        field(CLUSTER_SHIFT, 20),
        Epoch {
            agent: field(AGENT_SHIFT, 13),
            clock: field(0, AGENT_SHIFT),
        },
    )
}

impl Actor<'_> {
    /// Whether this actor's access is ordered after `packed`.
    fn follows(&self, packed: u64) -> bool {
        let (cluster, epoch) = unpack(packed);
        if cluster == self.cluster {
            epoch.agent == self.epoch.agent || self.knowledge.generic.covers(epoch)
        } else {
            self.knowledge.covers_foreign(cluster, epoch)
        }
    }
}

fn describe(packed: u64) -> String {
    let (cluster, epoch) = unpack(packed);
    format!("agent {} of cluster {cluster}", epoch.agent)
}

impl Cell {
    /// Whether the host or a kernel has written the granule.
    pub(super) fn is_written(&self) -> bool {
        self.write.load(Relaxed) != 0
    }

    /// The host writes the granule, or a kernel whose accesses are not checked.
    pub(super) fn write_by_host(&self) {
        self.write.store(BEFORE_LAUNCH, Relaxed);
    }

    /// The contents of the granule become undefined.
    pub(super) fn undefine(&self) {
        self.write.store(0, Relaxed);
    }

    /// The launch has ended.
    pub(super) fn end_launch(&mut self) {
        if *self.write.get_mut() != 0 {
            *self.write.get_mut() = BEFORE_LAUNCH;
        }
        *self.read.get_mut() = 0;
    }

    pub(super) fn read(&self, actor: Actor<'_>, reads: Reads) -> Result<(), (Check, String)> {
        let write = self.write.load(Relaxed);
        if write == 0 {
            return Err((Check::Uninitialized, "nothing wrote it".into()));
        }
        if write != BEFORE_LAUNCH {
            let instruction = match reads {
                Reads::Coherently | Reads::InPart => None,
                Reads::NonCoherently => Some("ld.global.nc"),
                Reads::ByTma => Some("a TMA load"),
            };
            if let Some(instruction) = instruction {
                let detail = format!(
                    "{} wrote it in this launch, and {instruction} may read an older value",
                    describe(write)
                );
                return Err((Check::DataRace, detail));
            }
            if !actor.follows(write) {
                let detail = format!(
                    "nothing orders the read after a write by {}",
                    describe(write)
                );
                return Err((Check::DataRace, detail));
            }
        }
        let before = self.read.load(Relaxed);
        if before & FINAL == 0 {
            let is_final = match reads {
                Reads::Coherently | Reads::InPart => false,
                Reads::NonCoherently => true,
                Reads::ByTma => before != 0 && !actor.follows(before),
            };
            let mark = if is_final { FINAL } else { 0 };
            self.read.store(pack(actor) | mark, Relaxed);
        }
        Ok(())
    }

    pub(super) fn write(&self, actor: Actor<'_>) -> Result<(), (Check, String)> {
        let write = self.write.swap(pack(actor), Relaxed);
        if write != 0 && write != BEFORE_LAUNCH && !actor.follows(write) {
            let detail = format!("nothing orders the write after one by {}", describe(write));
            return Err((Check::DataRace, detail));
        }
        let read = self.read.load(Relaxed);
        if read & FINAL != 0 {
            let detail = format!(
                "{} reads it in this launch by ld.global.nc, or several TMA loads do",
                describe(read & !FINAL)
            );
            return Err((Check::DataRace, detail));
        }
        if read != 0 && !actor.follows(read) {
            let detail = format!(
                "nothing orders the write after a read by {}",
                describe(read)
            );
            return Err((Check::DataRace, detail));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Accesses of a granule that the host has written.
    fn cell() -> Cell {
        let cell = Cell::zeroed();
        cell.write_by_host();
        cell
    }

    /// An epoch of agent 3, and one of agent 4 of the same cluster.
    const FIRST: Epoch = Epoch { agent: 3, clock: 7 };
    const SECOND: Epoch = Epoch { agent: 4, clock: 1 };

    fn actor(epoch: Epoch, knowledge: &Knowledge) -> Actor<'_> {
        Actor {
            cluster: 0,
            epoch,
            knowledge,
        }
    }

    #[test]
    fn a_write_may_follow_a_tma_load_that_it_knows_of() {
        let (nothing, mut first) = (Knowledge::default(), Knowledge::default());
        first.learn(FIRST);
        let read = |reads| {
            let cell = cell();
            cell.read(actor(FIRST, &nothing), reads).unwrap();
            cell
        };
        assert!(read(Reads::ByTma).write(actor(SECOND, &first)).is_ok());
        assert!(read(Reads::ByTma).write(actor(SECOND, &nothing)).is_err());
        assert!(
            read(Reads::NonCoherently)
                .write(actor(SECOND, &first))
                .is_err()
        );
        // What one reader allows, a second that is not ordered after it does not.
        let cell = read(Reads::ByTma);
        cell.read(actor(SECOND, &nothing), Reads::ByTma).unwrap();
        let third = Epoch { agent: 5, clock: 1 };
        let mut both = first.clone();
        both.learn(SECOND);
        assert!(cell.write(actor(third, &both)).is_err());
        // Nor does a later read take back that one was not coherent.
        let cell = read(Reads::NonCoherently);
        cell.read(actor(SECOND, &first), Reads::Coherently).unwrap();
        assert!(cell.write(actor(SECOND, &first)).is_err());
    }

    #[test]
    fn only_coherent_reads_see_this_launchs_writes() {
        let mut first = Knowledge::default();
        first.learn(FIRST);
        for (reads, allowed) in [
            (Reads::Coherently, true),
            (Reads::NonCoherently, false),
            (Reads::ByTma, false),
        ] {
            let cell = cell();
            cell.write(actor(FIRST, &Knowledge::default())).unwrap();
            let result = cell.read(actor(SECOND, &first), reads);
            assert_eq!(result.is_ok(), allowed, "{reads:?}");
        }
    }

    #[test]
    fn actors_survive_packing() {
        let actor = Actor {
            cluster: 0xf_fffe,
            epoch: Epoch {
                agent: 8191,
                clock: (1 << 30) - 1,
            },
            knowledge: &Knowledge::default(),
        };
        assert_eq!(unpack(pack(actor)), (actor.cluster, actor.epoch));
    }
}
