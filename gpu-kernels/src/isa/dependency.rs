//! Launches that overlap (PTX ISA, "griddepcontrol"; CUDA C++ programming guide,
//! "Programmatic Dependent Launch and Synchronization").
//!
//! A grid launched with "programmatic stream serialization" may start before the
//! grid ahead of it in the stream has finished: it sets itself up, and waits here.
//! In a grid launched without that attribute neither instruction does anything.

/// `griddepcontrol.launch_dependents`: the next grid may start once every CTA has
/// executed this or exited, and there is room for it.
#[inline(always)]
pub fn launch_dependents() {
    instruction!(
        // SAFETY: a hint to the scheduler.
        ptx = unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack)) },
        emulated = machine::dependency::launch_dependents()
    )
}

/// `griddepcontrol.wait`: waits until the grids ahead have finished and their writes
/// are visible. It must precede any access to memory that those grids write, and any
/// write to memory that they read. Every CTA must execute it, because the next grid
/// waits only for this one.
#[inline(always)]
pub fn wait() {
    instruction!(
        // SAFETY: this only waits.
        ptx = unsafe { asm!("griddepcontrol.wait;", options(nostack)) },
        emulated = machine::dependency::wait()
    )
}
