//! Threads as coroutines: each runs on a stack of its own until it waits.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

/// Bytes of a stack. Pages that a thread does not touch cost nothing.
const STACK_BYTES: usize = 256 << 10;

/// The function that a thread runs.
pub(super) type Body<'a> = &'a (dyn Fn() + Sync);

thread_local! {
    /// The yielder of the running fiber.
    static YIELDER: Cell<*const Yielder<(), ()>> = const { Cell::new(std::ptr::null()) };
}

/// One emulated thread.
pub(super) struct Fiber {
    coroutine: Coroutine<(), (), (), DefaultStack>,
    /// The fiber's yielder; null before the fiber has run.
    yielder: *const Yielder<(), ()>,
}

/// Stacks of fibers that have ended, for new ones.
#[derive(Default)]
pub(super) struct Stacks(Vec<DefaultStack>);

/// Stacks of launches that have ended, kept because mapping a stack takes longer than
/// running a short thread.
static KEPT: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

/// Maximum number of stacks that are kept.
const MOST_KEPT: usize = 4096;

/// What is behind these mutexes is whole whenever they are free.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stacks that all launches of the process may have at the same time. Linux gives a process 65,530
/// mappings (`vm.max_map_count`), and a stack with its guard page takes two; the rest is for
/// stacks that are kept and for the program.
const MOST_RESERVED: usize = 24 << 10;

/// Stacks that running launches may use.
static RESERVED: Mutex<usize> = Mutex::new(0);

/// Notified whenever there are fewer.
static RELEASED: Condvar = Condvar::new();

/// Held by the launch whose turn it is to reserve, so that small launches do not pass a large one
/// for ever.
static TURN: Mutex<()> = Mutex::new(());

/// The right of a launch to have so many stacks at the same time, until it is dropped.
pub(super) struct Reservation(usize);

impl Reservation {
    /// Waits until other launches leave room for `stacks`, or until there are none: a launch reserves
    /// all that it needs at once, so it ends without waiting again.
    pub(super) fn of(stacks: usize) -> Self {
        let _turn = lock(&TURN);
        let full = |reserved: &mut usize| *reserved > 0 && *reserved + stacks > MOST_RESERVED;
        let reserved = RELEASED.wait_while(lock(&RESERVED), full);
        *reserved.unwrap_or_else(PoisonError::into_inner) += stacks;
        Reservation(stacks)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        *lock(&RESERVED) -= self.0;
        RELEASED.notify_all();
    }
}

impl Drop for Stacks {
    fn drop(&mut self) {
        let mut kept = lock(&KEPT);
        let room = MOST_KEPT.saturating_sub(kept.len());
        kept.extend(self.0.drain(..).take(room));
    }
}

impl Stacks {
    fn take(&mut self) -> std::io::Result<DefaultStack> {
        let kept = || lock(&KEPT).pop();
        match self.0.pop().or_else(kept) {
            Some(stack) => Ok(stack),
            None => DefaultStack::new(STACK_BYTES),
        }
    }

    /// Keeps the stack of a fiber that has ended.
    pub(super) fn give_back(&mut self, fiber: Fiber) {
        if fiber.coroutine.done() {
            self.0.push(fiber.coroutine.into_stack());
        }
    }
}

impl Fiber {
    /// A fiber that will run `body`.
    ///
    /// # Safety
    /// `body` outlives the fiber.
    pub(super) unsafe fn new(body: Body<'_>, stacks: &mut Stacks) -> std::io::Result<Fiber> {
        // SAFETY: the caller ensures that `body` outlives the fiber.
        let body: Body<'static> = unsafe { std::mem::transmute(body) };
        let coroutine = Coroutine::with_stack(stacks.take()?, move |yielder, ()| {
            YIELDER.set(yielder);
            body();
        });
        Ok(Fiber {
            coroutine,
            yielder: std::ptr::null(),
        })
    }

    /// Runs the fiber until it waits or ends, and returns whether it has ended. A panic in
    /// the fiber continues in the caller.
    pub(super) fn resume(&mut self) -> bool {
        YIELDER.set(self.yielder);
        let result = self.coroutine.resume(());
        self.yielder = YIELDER.get();
        matches!(result, CoroutineResult::Return(()))
    }
}

/// Suspends the running fiber until it is resumed.
///
/// # Panics
/// No fiber runs.
pub(super) fn suspend() {
    let yielder = YIELDER.get();
    assert!(!yielder.is_null(), "only kernels execute instructions");
    // SAFETY: the yielder lives on the stack of the running fiber.
    unsafe { (*yielder).suspend(()) };
}
