//! Launches: the clusters of a grid over slots, and slots over host threads.
//!
//! A slot holds one cluster at a time and runs the clusters with its number, modulo
//! the number of slots, in order, like a GPU with room for that many clusters. The
//! slots of one host thread take turns when all threads of a cluster wait for flags
//! that other clusters raise; clusters depend on each other in no other way.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

use super::counts::Counts;
use super::fiber::{Body, Fiber, Reservation, Stacks};
use super::machine::{Aborted, Broken, Cluster, Launch, enter};
use super::memory::Memory;
use super::options::Options;
use super::report::{Check, Report};

/// A grid to launch.
#[derive(Clone, Copy)]
pub struct Grid<'a> {
    /// A name, for reports.
    pub kernel: &'a str,
    /// CTAs along x and y; CTAs of a cluster are neighbours along x.
    pub ctas: (u32, u32),
    /// Threads of a CTA, a multiple of 32.
    pub threads: u32,
    /// CTAs of a cluster; it divides the number of CTAs along x.
    pub ctas_per_cluster: u32,
    /// Dynamic shared memory of a CTA, bytes.
    pub shared_bytes: u32,
    /// The function that each thread runs.
    pub body: &'a (dyn Fn() + Sync),
}

/// Why a launch failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel broke rules: at least one report, by cluster.
    #[error("{}", lines(.0))]
    Broken(Vec<Report>),
    /// The grid cannot be launched.
    #[error("the grid cannot be launched: {reason}")]
    Grid {
        /// Why the grid cannot be launched.
        reason: String,
    },
    /// The host has no memory for the stacks of the threads, or no mappings.
    #[error(
        "no stack for one of {threads} threads that run at once: {source}; where that is `Cannot \
         allocate memory`, Linux's vm.max_map_count must be more than twice their number"
    )]
    Stacks {
        /// Threads of all clusters that run at once.
        threads: u32,
        /// What the operating system says.
        source: std::io::Error,
    },
}

fn lines(reports: &[Report]) -> String {
    let reports: Vec<String> = reports.iter().map(Report::to_string).collect();
    reports.join("\n")
}

/// Runs a grid to its end.
///
/// # Errors
/// [`Error`]. `memory` then contains the writes of the clusters without reports.
pub fn launch(memory: &mut Memory, grid: &Grid<'_>, options: &Options) -> Result<Counts, Error> {
    launch_watched(memory, grid, options, &|_| {})
}

/// [`launch`], with progress: whenever CTAs have ended, it calls `ended` with their number.
///
/// # Errors
/// [`Error`].
pub fn launch_watched(
    memory: &mut Memory,
    grid: &Grid<'_>,
    options: &Options,
    ended: &(dyn Fn(u32) + Sync),
) -> Result<Counts, Error> {
    check(grid)?;
    let launch = Launch {
        kernel: grid.kernel,
        memory,
        options,
        grid: grid.ctas,
        threads: grid.threads,
        ctas_per_cluster: grid.ctas_per_cluster,
        shared_bytes: grid.shared_bytes,
    };
    let clusters = grid.ctas.0 * grid.ctas.1 / grid.ctas_per_cluster;
    let slots = options.slots.clamp(1, clusters.max(1));
    let workers = options.workers.clamp(1, slots as usize);
    let shared = Shared {
        launch: &launch,
        body: grid.body,
        clusters,
        slots,
        workers,
        progress: AtomicU64::new(0),
        idle: AtomicUsize::new(0),
        ended,
    };
    let shared = &shared;
    let reservation = Reservation::of(shared.threads() as usize);
    let outcomes: Vec<Result<Outcome, Error>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|worker| scope.spawn(move || Worker::new(shared, worker as u32).run()))
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect()
    });
    drop(reservation);
    memory.end_launch();
    let mut total = Outcome::default();
    for outcome in outcomes {
        let outcome = outcome?;
        total.counts.add(outcome.counts);
        total.reports.extend(outcome.reports);
    }
    if !total.reports.is_empty() {
        total.reports.sort_by_key(|report| report.cta);
        return Err(Error::Broken(total.reports));
    }
    total.counts.requests.sort_unstable();
    Ok(total.counts)
}

fn check(grid: &Grid<'_>) -> Result<(), Error> {
    let reason = if grid.threads == 0 || !grid.threads.is_multiple_of(32) || grid.threads > 1024 {
        format!(
            "{} threads a CTA, accepted: multiples of 32 up to 1024",
            grid.threads
        )
    } else if grid.ctas_per_cluster == 0
        || grid.ctas_per_cluster > 16
        || !grid.ctas.0.is_multiple_of(grid.ctas_per_cluster)
    {
        format!(
            "clusters of {} CTAs, accepted: divisors of {} up to 16",
            grid.ctas_per_cluster, grid.ctas.0
        )
    } else if grid
        .ctas
        .0
        .checked_mul(grid.ctas.1)
        .is_none_or(|ctas| ctas >= 1 << 20)
    {
        format!(
            "{} x {} CTAs, accepted: below 2^20",
            grid.ctas.0, grid.ctas.1
        )
    } else {
        return Ok(());
    };
    Err(Error::Grid { reason })
}

/// The state that the workers share.
struct Shared<'l> {
    launch: &'l Launch<'l>,
    body: Body<'l>,
    clusters: u32,
    slots: u32,
    workers: usize,
    /// A counter that grows whenever a flag may have been raised.
    progress: AtomicU64,
    /// Workers that found nothing to do since the last progress.
    idle: AtomicUsize,
    ended: &'l (dyn Fn(u32) + Sync),
}

/// The counts and reports of a worker's clusters.
#[derive(Default)]
struct Outcome {
    counts: Counts,
    reports: Vec<Report>,
}

/// One host thread, with its slots.
struct Worker<'l> {
    shared: &'l Shared<'l>,
    /// Clusters that wait for a slot, by slot.
    queues: Vec<VecDeque<u32>>,
    stacks: Stacks,
    outcome: Outcome,
}

/// Why a cluster stopped running.
enum Stop {
    Finished,
    /// It waits until another cluster raises a flag.
    Polls,
    Broken(Report),
}

impl<'l> Worker<'l> {
    fn new(shared: &'l Shared<'l>, worker: u32) -> Worker<'l> {
        let slots = (worker..shared.slots).step_by(shared.workers);
        let queue = |slot| {
            (slot..shared.clusters)
                .step_by(shared.slots as usize)
                .collect()
        };
        Worker {
            shared,
            queues: slots.map(queue).collect(),
            stacks: Stacks::default(),
            outcome: Outcome::default(),
        }
    }

    fn run(mut self) -> Result<Outcome, Error> {
        // However this worker ends, the other workers no longer wait for it.
        let _idle = Idle(&self.shared.idle);
        let mut slots: Vec<Option<Running<'l>>> = self.queues.iter().map(|_| None).collect();
        loop {
            let seen = self.shared.progress.load(SeqCst);
            let mut busy = false;
            let mut polling = false;
            let mut ended = Vec::new();
            for (index, slot) in slots.iter_mut().enumerate() {
                if slot.is_none() {
                    let Some(next) = self.queues[index].pop_front() else {
                        continue;
                    };
                    *slot = Some(Running::new(self.shared, next, &mut self.stacks)?);
                }
                let Some(running) = slot else { continue };
                let (stop, moved) = running.run();
                busy |= moved;
                match stop {
                    Stop::Polls => {
                        polling = true;
                        continue;
                    }
                    Stop::Finished => ended.push((slot.take(), None)),
                    Stop::Broken(report) => ended.push((slot.take(), Some(report))),
                }
                busy = true;
            }
            for (running, report) in ended {
                self.end(running, report);
            }
            if busy {
                self.shared.progress.fetch_add(1, SeqCst);
            } else if polling {
                if self.shared.all_idle(seen) {
                    // All workers are idle, so no cluster will raise these flags.
                    for slot in &mut slots {
                        let report = slot.as_ref().map(|running| running.cluster().stuck());
                        self.end(slot.take(), report);
                    }
                    self.shared.progress.fetch_add(1, SeqCst);
                }
            } else {
                return Ok(self.outcome);
            }
        }
    }

    /// Adds the counts of a cluster that has ended, and keeps its stacks.
    fn end(&mut self, running: Option<Running<'l>>, report: Option<Report>) {
        let Some(mut running) = running else { return };
        running.cluster_mut().count_accesses();
        self.outcome
            .counts
            .add(std::mem::take(&mut running.cluster_mut().counts));
        self.outcome.reports.extend(report);
        for fiber in running.fibers.drain(..) {
            self.stacks.give_back(fiber);
        }
        (self.shared.ended)(self.shared.launch.ctas_per_cluster);
    }
}

impl Shared<'_> {
    /// Threads of the clusters in all slots.
    fn threads(&self) -> u32 {
        self.slots * self.launch.ctas_per_cluster * self.launch.threads
    }

    /// Waits until there is progress since `seen`, or all workers wait here.
    /// Returns whether all workers wait.
    fn all_idle(&self, seen: u64) -> bool {
        self.idle.fetch_add(1, SeqCst);
        let all = loop {
            if self.progress.load(SeqCst) != seen {
                break false;
            }
            if self.idle.load(SeqCst) == self.workers && self.progress.load(SeqCst) == seen {
                break true;
            }
            std::thread::yield_now();
        };
        self.idle.fetch_sub(1, SeqCst);
        all
    }
}

/// Counts a worker as idle once it has ended.
struct Idle<'a>(&'a AtomicUsize);

impl Drop for Idle<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// A cluster and its fibers.
struct Running<'l> {
    /// A pointer from `Box::into_raw`, because threads refer to the cluster while they run.
    cluster: *mut Cluster<'l>,
    fibers: Vec<Fiber>,
}

impl<'l> Running<'l> {
    fn new(shared: &Shared<'l>, index: u32, stacks: &mut Stacks) -> Result<Running<'l>, Error> {
        let cluster = Box::new(Cluster::new(shared.launch, index));
        let threads = cluster.threads.len();
        let mut running = Running {
            cluster: Box::into_raw(cluster),
            fibers: Vec::with_capacity(threads),
        };
        for _ in 0..threads {
            // SAFETY: the body belongs to the launch, which outlives its workers.
            let fiber = unsafe { Fiber::new(shared.body, stacks) };
            running.fibers.push(fiber.map_err(|source| Error::Stacks {
                threads: shared.threads(),
                source,
            })?);
        }
        Ok(running)
    }

    fn cluster(&self) -> &Cluster<'l> {
        // SAFETY: the cluster lives as long as `self`, and no fiber runs.
        unsafe { &*self.cluster }
    }

    fn cluster_mut(&mut self) -> &mut Cluster<'l> {
        // SAFETY: as in `cluster`.
        unsafe { &mut *self.cluster }
    }

    /// Runs until no thread can go on without another cluster. Also returns whether there
    /// was progress other than polls of flags that are still down.
    fn run(&mut self) -> (Stop, bool) {
        let seen = self.cluster().flags_seen;
        let in_vain = self.cluster_mut().poll_flags();
        let mut steps = 0;
        let stop = loop {
            match self.cluster_mut().next() {
                Err(report) => break Stop::Broken(report),
                Ok(Some(thread)) => {
                    steps += 1;
                    if let Err(report) = self.resume(thread) {
                        break Stop::Broken(report);
                    }
                }
                Ok(None) if self.cluster().is_finished() => break Stop::Finished,
                Ok(None) if self.cluster().waits_for_flag() => break Stop::Polls,
                Ok(None) => break Stop::Broken(self.cluster().stuck()),
            }
        };
        let moved = steps > in_vain || self.cluster().flags_seen > seen;
        (stop, moved)
    }

    /// Lets one thread run until it waits or ends.
    fn resume(&mut self, thread: u32) -> Result<(), Report> {
        let fiber = &mut self.fibers[thread as usize];
        let cluster = self.cluster;
        // SAFETY: nothing else refers to the cluster here; after a panic of the fiber only
        // the report reads the state that the fiber left.
        let resumed = catch_unwind(AssertUnwindSafe(|| unsafe {
            enter(cluster, thread, || fiber.resume())
        }));
        match resumed {
            Ok(false) => Ok(()),
            Ok(true) => self.cluster_mut().end_thread(thread),
            Err(panic) => Err(match self.cluster_mut().failure.take() {
                Some(report) if panic.is::<Aborted>() => report,
                _ => {
                    let broken = Broken::new(
                        Check::Trap,
                        format!("the kernel panicked: {}", message(&*panic)),
                    );
                    self.cluster().report(Some(thread), broken)
                }
            }),
        }
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        // Fibers unwind, and may still access the cluster, so they are dropped first.
        self.fibers.clear();
        // SAFETY: the pointer is from `Box::into_raw`, and is dropped once.
        drop(unsafe { Box::from_raw(self.cluster) });
    }
}

/// The message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> &str {
    let literal = panic.downcast_ref::<&str>().copied();
    let formatted = panic.downcast_ref::<String>().map(String::as_str);
    literal.or(formatted).unwrap_or("no message")
}
