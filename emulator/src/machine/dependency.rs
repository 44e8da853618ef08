//! `griddepcontrol`.

use super::{issue, with};
use crate::instruction::Instruction;

/// `griddepcontrol.launch_dependents`: a hint, and no other grid is emulated.
pub fn launch_dependents() {
    issue(Instruction::LaunchDependents, []);
}

/// `griddepcontrol.wait`.
pub fn wait() {
    if issue(Instruction::WaitDependency, []).is_some() {
        with(|cluster, thread| cluster.threads[thread as usize].dependency_awaited = true);
    }
}
