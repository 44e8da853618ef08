//! Flags in global memory: `st.release.gpu` and `ld.acquire.gpu`.

use super::{Wait, block, checked, issue};
use crate::emulator::clock::Message;
use crate::emulator::instruction::Instruction;

/// `st.release.gpu` of 1.
pub fn raise(address: u64) {
    let Some([address]) = issue(Instruction::RaiseFlag, [address]) else {
        return;
    };
    checked(|cluster, thread| {
        let knowledge = cluster.release(thread);
        let memory = cluster.launch.memory;
        if cluster.checks() {
            let message = Message::new(cluster.index, &knowledge);
            memory.messages().insert(address, message);
        }
        cluster.store_global(thread, address, &[1, 0])
    });
}

/// `ld.acquire.gpu` until it sees what is not 0.
pub fn wait(address: u64) {
    let Some([address]) = issue(Instruction::WaitFlag, [address]) else {
        return;
    };
    loop {
        let raised = checked(|cluster, thread| {
            cluster.check_dependency(thread)?;
            let memory = cluster.launch.memory;
            let raised = memory.load_flag(address)? != 0;
            cluster.flags_seen += u64::from(raised);
            if raised && let Some(message) = memory.messages().get(&address) {
                message.tell(&mut cluster.threads[thread as usize].knowledge);
            }
            Ok(raised)
        });
        if raised {
            return;
        }
        block(Wait::Flag(address));
    }
}
