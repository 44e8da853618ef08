//! The executing thread, and how an instruction begins, waits and fails.

use std::cell::Cell;

use super::{Broken, Cluster, Status, Wait};
use crate::fiber;
use crate::instruction::Instruction;
use crate::options::Site;
use crate::report::Report;
use crate::source;

/// The payload of the panic by which a thread that has broken a rule unwinds.
pub(crate) struct Aborted;

/// The running cluster and thread.
#[derive(Clone, Copy)]
struct Current {
    cluster: *mut Cluster<'static>,
    thread: u32,
}

thread_local! {
    static CURRENT: Cell<Option<Current>> = const { Cell::new(None) };
}

/// Runs `resume`, during which `thread` of `cluster` executes.
///
/// # Safety
/// `cluster` is valid, and nothing else refers to it until this returns.
pub(crate) unsafe fn enter<R>(
    cluster: *mut Cluster<'_>,
    thread: u32,
    resume: impl FnOnce() -> R,
) -> R {
    CURRENT.set(Some(Current {
        cluster: cluster.cast(),
        thread,
    }));
    let result = resume();
    CURRENT.set(None);
    result
}

/// The cluster, and the number of the thread that executes.
pub(super) fn with<R>(f: impl FnOnce(&mut Cluster<'_>, u32) -> R) -> R {
    let Some(current) = CURRENT.get() else {
        panic!("an instruction was executed outside of a launch");
    };
    // SAFETY: `enter` ensures that the pointer is valid, and no `with` is nested in another.
    f(unsafe { &mut *current.cluster }, current.thread)
}

/// [`with`], which ends the cluster if `f` returns a broken rule.
pub(super) fn checked<R>(f: impl FnOnce(&mut Cluster<'_>, u32) -> Result<R, Broken>) -> R {
    match with(f) {
        Ok(result) => result,
        Err(broken) => fail(broken),
    }
}

/// Reports the rule that the executing thread has broken, and unwinds the thread.
#[cold]
pub(super) fn fail(broken: Broken) -> ! {
    let source = source::lines();
    with(|cluster, thread| {
        let report = cluster.report(Some(thread), broken);
        cluster.failure = Some(Report { source, ..report });
    });
    std::panic::resume_unwind(Box::new(Aborted))
}

/// Begins an instruction: counts it and lets faults change it. `None` if a fault
/// drops it.
pub(super) fn issue<const N: usize>(
    instruction: Instruction,
    arguments: [u64; N],
) -> Option<[u64; N]> {
    let (arguments, preempted) = with(|cluster, thread| {
        cluster.counts.count(instruction);
        cluster.threads[thread as usize].instruction = Some(instruction);
        let arguments = cluster.apply_faults(instruction, thread, arguments);
        let preempted = instruction.synchronises() && cluster.random.preempts();
        if preempted {
            cluster.ready.push_back(thread);
        }
        (arguments, preempted)
    });
    if preempted {
        fiber::suspend();
    }
    arguments
}

/// Blocks the executing thread, for `wait`, until `done`.
pub(super) fn wait_until(
    wait: Wait,
    mut done: impl FnMut(&mut Cluster<'_>, u32) -> Result<bool, Broken>,
) {
    while !checked(&mut done) {
        block(wait);
    }
}

/// Suspends the executing thread until another wakes it.
pub(super) fn block(wait: Wait) {
    with(|cluster, thread| cluster.threads[thread as usize].status = Status::Waiting(wait));
    fiber::suspend();
}

impl Cluster<'_> {
    fn apply_faults<const N: usize>(
        &mut self,
        instruction: Instruction,
        thread: u32,
        mut arguments: [u64; N],
    ) -> Option<[u64; N]> {
        let faults = &self.launch.options.faults;
        if faults.is_empty() {
            return Some(arguments);
        }
        let cta = self.grid_index(self.threads[thread as usize].cta);
        let thread = &mut self.threads[thread as usize];
        if thread.executed.is_empty() {
            thread.executed = vec![0; Instruction::ALL.len()];
        }
        let count = &mut thread.executed[instruction as usize];
        let site = Site {
            cta,
            thread: thread.index,
            occurrence: *count,
        };
        *count += 1;
        faults
            .iter()
            .filter(|fault| fault.instruction == instruction)
            .all(|fault| (fault.change)(&site, &mut arguments))
            .then_some(arguments)
    }
}
