//! Flags in global memory: `st.release.gpu` and `ld.acquire.gpu`.

use super::{Wait, checked, issue, wait_until};
use crate::clock::Message;
use crate::instruction::Instruction;

/// `st.release.gpu` of 1.
pub fn raise(address: u64) {
    let Some([address]) = issue(Instruction::RaiseFlag, [address]) else {
        return;
    };
    checked(|cluster, thread| {
        let mut knowledge = cluster.release(thread);
        let memory = cluster.launch.memory;
        if cluster.checks() {
            // The message includes the store of the flag itself.
            knowledge.generic.learn(cluster.epoch(thread));
            let message = Message::new(cluster.index, &knowledge);
            memory.messages().insert(address, message);
        }
        let stored = cluster.store_global(thread, address, &[1, 0]);
        cluster.release(thread);
        stored
    });
}

/// Repeats `ld.acquire.gpu` until the flag is not 0.
pub fn wait(address: u64) {
    let Some([address]) = issue(Instruction::WaitFlag, [address]) else {
        return;
    };
    wait_until(Wait::Flag(address), |cluster, thread| {
        cluster.check_dependency(thread)?;
        let memory = cluster.launch.memory;
        let raised = memory.load_flag(address)? != 0;
        cluster.flags_seen += u64::from(raised);
        if raised && let Some(message) = memory.messages().get(&address) {
            message.tell(&mut cluster.threads[thread as usize].knowledge);
        }
        Ok(raised)
    });
}
