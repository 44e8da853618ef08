//! The machine: the state of one cluster of CTAs, and the effect of each instruction
//! on it, one family a file as in `gpu_kernels::isa`.
//!
//! Threads, which are fibers on one host thread, call the instructions. A call borrows
//! the cluster (`with`), never across a switch of fibers. A call that must wait names the
//! event that it waits for (`block`), and tries again when the thread is woken.

pub mod barrier;
pub mod cluster;
pub mod cp_async;
pub mod dependency;
pub mod flag;
pub mod global;
pub mod matrix;
pub mod mbarrier;
pub mod poison;
pub mod shared;
pub mod thread;
pub mod tma;
pub mod warpgroup;
pub mod wgmma;

mod banks;
mod broken;
mod copy_engine;
mod current;
mod gather;
mod order;
mod stuck;

use std::collections::VecDeque;

pub(super) use self::broken::Broken;
pub(super) use self::current::{Aborted, enter};
use self::current::{block, checked, fail, issue, wait_until, with};
use self::gather::Gather;
use self::order::own_access;
use super::agent::Agents;
use super::clock::Knowledge;
use super::counts::{Counts, Request};
use super::instruction::Instruction;
use super::memory::Memory;
use super::options::Options;
use super::random::Random;
use super::report::{Address, Check, Report};

/// Threads of a warpgroup: four consecutive warps (PTX ISA, "Warpgroup").
pub(crate) const WARPGROUP: u32 = 4 * WARP;

/// Lanes of a warp.
pub(super) const WARP: u32 = 32;

/// The part of a launch that a cluster needs.
pub(super) struct Launch<'l> {
    pub(super) kernel: &'l str,
    pub(super) memory: &'l Memory,
    pub(super) options: &'l Options,
    /// CTAs along x and y.
    pub(super) grid: (u32, u32),
    pub(super) threads: u32,
    pub(super) ctas_per_cluster: u32,
    pub(super) shared_bytes: u32,
}

/// A running cluster of CTAs.
pub(super) struct Cluster<'l> {
    pub(super) launch: &'l Launch<'l>,
    /// Index in the grid.
    pub(super) index: u32,
    pub(super) ctas: Vec<Cta>,
    pub(super) threads: Vec<Thread>,
    warps: Vec<Gather>,
    /// Accesses to shared memory, by warp.
    accesses: Vec<banks::Accesses>,
    warpgroups: Vec<wgmma::Warpgroup>,
    cluster_barrier: cluster::Barrier,
    /// Threads that can go on.
    ready: VecDeque<u32>,
    /// Copies that are started and not yet performed.
    copies: Vec<copy_engine::BoxCopy>,
    agents: Agents,
    random: Random,
    /// Number of flags that threads found raised.
    pub(super) flags_seen: u64,
    pub(super) counts: Counts,
    /// The first rule that was broken.
    pub(super) failure: Option<Report>,
}

/// One CTA.
pub(super) struct Cta {
    shared: shared::SharedMemory,
    barriers: Vec<barrier::Barrier>,
    mbarriers: std::collections::BTreeMap<u32, mbarrier::Mbarrier>,
    registers: warpgroup::Registers,
    loaded_lines: global::LoadedLines,
    /// Threads that have not ended.
    alive: u32,
    /// The cluster barrier that must complete before this CTA may end, as a count of
    /// phases: peers have accessed its memory since the barrier before that.
    needed_until: u32,
}

/// One thread.
pub(super) struct Thread {
    /// Index of the thread's CTA in the cluster.
    pub(super) cta: u32,
    /// Index of the thread in its CTA.
    pub(super) index: u32,
    status: Status,
    /// The thread's knowledge of other agents.
    knowledge: Knowledge,
    /// The thread's own epoch.
    clock: u32,
    /// The thread's knowledge at its last `fence.mbarrier_init`.
    at_init_fence: Knowledge,
    instruction: Option<Instruction>,
    executed: Vec<u32>,
    copies: cp_async::AsyncGroups,
    stores: copy_engine::BulkGroups,
    arrivals: u32,
    waits: u32,
    dependency_awaited: bool,
}

/// Whether a thread can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// The thread is in the queue, or runs.
    Ready,
    Waiting(Wait),
    Ended,
}

/// The events that a thread can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Wait {
    /// The other lanes of its warp, at an instruction.
    Warp(Instruction),
    /// The other threads of its warpgroup, at an instruction.
    Warpgroup(Instruction),
    /// `bar.sync` with this number.
    Barrier(u32),
    /// The mbarrier at this address to complete the phase of this parity.
    Mbarrier { address: u32, parity: u32 },
    /// The cluster's barrier.
    Cluster,
    /// The thread's bulk stores up to this group, to have read shared memory or to be complete.
    Stores(u32),
    /// A flag in global memory.
    Flag(u64),
    /// Registers that other warpgroups release.
    Registers,
}

impl<'l> Cluster<'l> {
    /// Cluster `index` of the grid, all of its threads ready.
    pub(super) fn new(launch: &'l Launch<'l>, index: u32) -> Cluster<'l> {
        let ctas = launch.ctas_per_cluster;
        let total = ctas * launch.threads;
        let thread = |number: u32| Thread {
            cta: number / launch.threads,
            index: number % launch.threads,
            status: Status::Ready,
            knowledge: Knowledge::default(),
            clock: 1,
            at_init_fence: Knowledge::default(),
            instruction: None,
            executed: Vec::new(),
            copies: cp_async::AsyncGroups::default(),
            stores: copy_engine::BulkGroups::default(),
            arrivals: 0,
            waits: 0,
            dependency_awaited: !launch.options.overlaps,
        };
        let cta = |_| Cta {
            shared: shared::SharedMemory::new(launch.shared_bytes, launch.options.checks),
            barriers: barrier::Barrier::all(),
            mbarriers: Default::default(),
            registers: warpgroup::Registers::new(launch.threads),
            loaded_lines: Default::default(),
            alive: launch.threads,
            needed_until: 0,
        };
        Cluster {
            launch,
            index,
            ctas: (0..ctas).map(cta).collect(),
            threads: (0..total).map(thread).collect(),
            warps: (0..total.div_ceil(WARP)).map(|_| Gather::new()).collect(),
            accesses: (0..total.div_ceil(WARP))
                .map(|_| Default::default())
                .collect(),
            warpgroups: (0..total.div_ceil(WARPGROUP))
                .map(|_| wgmma::Warpgroup::new())
                .collect(),
            cluster_barrier: cluster::Barrier::new(total),
            ready: (0..total).collect(),
            copies: Vec::new(),
            agents: Agents::new(total),
            random: Random::new(launch.options.seed, index),
            flags_seen: 0,
            counts: Counts::default(),
            failure: None,
        }
    }

    /// The thread to run next. Before that the copy engine may perform copies: when no
    /// thread can run, and at random. `None` if no thread can run and no copy is left.
    pub(super) fn next(&mut self) -> Result<Option<u32>, Report> {
        loop {
            let (threads, copies) = (self.ready.len(), self.copies.len());
            let copy_first = copies > 0 && self.random.takes(copies, threads + copies);
            if threads > 0 && !copy_first {
                let place = self.random.below(threads);
                return Ok(self.ready.remove(place));
            }
            if copies == 0 {
                return Ok(None);
            }
            let copy = self.copies.remove(self.random.below(copies));
            self.perform(copy)?;
        }
    }

    /// Makes the threads ready that wait for flags, and returns their number.
    pub(super) fn poll_flags(&mut self) -> usize {
        self.wake(|_, wait| matches!(wait, Wait::Flag(_)))
    }

    /// Whether some thread waits for a flag, which another cluster may raise.
    pub(super) fn waits_for_flag(&self) -> bool {
        let flag = |thread: &Thread| matches!(thread.status, Status::Waiting(Wait::Flag(_)));
        self.threads.iter().any(flag)
    }

    /// Whether all threads have ended.
    pub(super) fn is_finished(&self) -> bool {
        self.ctas.iter().all(|cta| cta.alive == 0)
    }

    /// Makes the threads ready whose wait `ends`, and returns their number.
    fn wake(&mut self, ends: impl Fn(&Thread, &Wait) -> bool) -> usize {
        let mut woken = 0;
        for (number, thread) in self.threads.iter_mut().enumerate() {
            if let Status::Waiting(wait) = thread.status
                && ends(thread, &wait)
            {
                thread.status = Status::Ready;
                self.ready.push_back(number as u32);
                woken += 1;
            }
        }
        woken
    }

    /// Makes one thread ready.
    fn wake_one(&mut self, thread: u32) {
        self.threads[thread as usize].status = Status::Ready;
        self.ready.push_back(thread);
    }

    /// Called when a thread has returned from the kernel.
    pub(super) fn end_thread(&mut self, thread: u32) -> Result<(), Report> {
        self.threads[thread as usize].status = Status::Ended;
        self.threads[thread as usize].instruction = None;
        let cta = self.threads[thread as usize].cta;
        self.ctas[cta as usize].alive -= 1;
        self.leave_cluster_barrier(thread);
        let ended = self.end_stores(thread).and_then(|()| {
            if self.ctas[cta as usize].alive == 0 {
                self.end_cta(cta)?;
            }
            Ok(())
        });
        ended.map_err(|broken| self.report(Some(thread), broken))
    }

    /// Whether a CTA may end: no thread and no copy needs its memory any more.
    fn end_cta(&mut self, cta: u32) -> Result<(), Broken> {
        self.check_memory_awaited(cta)?;
        self.check_peers_done(cta)
    }

    /// The report of `broken`.
    pub(super) fn report(&self, thread: Option<u32>, broken: Broken) -> Report {
        let who = thread.map(|thread| &self.threads[thread as usize]);
        Report {
            kernel: self.launch.kernel.to_owned(),
            check: broken.check,
            cta: self.grid_index(who.map_or(0, |thread| thread.cta)),
            thread: who.map(|thread| thread.index),
            instruction: who.and_then(|thread| thread.instruction),
            address: broken.address,
            detail: broken.detail,
            source: Vec::new(),
            seed: self.launch.options.seed,
        }
    }

    /// Linear index in the grid of CTA `cta` of this cluster.
    fn grid_index(&self, cta: u32) -> u32 {
        self.index * self.launch.ctas_per_cluster + cta
    }

    /// CTA and shared address as a report shows them.
    fn shared_address(&self, cta: u32, address: u32) -> Address {
        Address::Shared {
            cta: self.grid_index(cta),
            address,
        }
    }

    /// Whether accesses are checked.
    fn checks(&self) -> bool {
        self.launch.options.checks
    }

    /// Records a request to L2.
    fn request(&mut self, cta: u32, address: u64, bytes: u32, writes: bool) {
        if self.launch.options.trace {
            let request = Request {
                time: self.counts.instructions() / self.threads.len() as u64,
                cta: self.grid_index(cta),
                address,
                bytes,
                writes,
            };
            self.counts.requests.push(request);
        }
    }
}
