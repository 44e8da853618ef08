//! Launches that overlap (PTX ISA, "griddepcontrol"; CUDA C++ programming guide,
//! "Programmatic Dependent Launch and Synchronization").
//!
//! A grid launched with "programmatic stream serialization" may start before the
//! one ahead of it in the stream has finished: it sets itself up, and waits here.
//! Launched without, neither instruction does anything.

/// `griddepcontrol.launch_dependents`: as far as this CTA is concerned, the next
/// grid may start, once there is room for it.
#[inline(always)]
pub fn launch_dependents() {
    instruction!(
        // SAFETY: a hint to the scheduler.
        ptx = unsafe { asm!("griddepcontrol.launch_dependents;", options(nostack)) },
        emulated = machine::dependency::launch_dependents()
    )
}

/// `griddepcontrol.wait`: until the grids ahead have finished and what they wrote
/// is visible. Before any access to memory that they write, or read what this
/// grid will overwrite; and in every CTA, for the next grid waits only for this.
#[inline(always)]
pub fn wait() {
    instruction!(
        // SAFETY: waits.
        ptx = unsafe { asm!("griddepcontrol.wait;", options(nostack)) },
        emulated = machine::dependency::wait()
    )
}
