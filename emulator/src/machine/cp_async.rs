//! `cp.async`: copies that a thread starts, and waits for in groups. The emulator performs
//! a copy as late as possible: when its thread waits for it.

use std::collections::VecDeque;

use super::{Broken, Check, Cluster, checked, issue, with};
use crate::agent::{Proxy, Role};
use crate::clock::{Epoch, Knowledge};
use crate::instruction::Instruction;
use crate::memory::Reads;
use crate::report::Address;
use crate::shadow::Access;

/// Bytes of a copy.
const BYTES: u32 = 16;

/// A thread's copies, by group, counted from 1.
#[derive(Debug, Default)]
pub(super) struct AsyncGroups {
    committed: u32,
    pending: VecDeque<AsyncCopy>,
}

#[derive(Debug)]
struct AsyncCopy {
    group: u32,
    /// Offset in the CTA's shared memory.
    offset: u32,
    source: u64,
    /// Bytes of the source; the rest is zeros.
    bytes: u32,
    issuer: Epoch,
    knowledge: Knowledge,
}

/// `cp.async.cg` of 16 bytes, if `active`.
pub fn copy_16_if(active: bool, destination: u32, source: u64) {
    if active {
        copy_16_clipped(destination, source, BYTES);
    }
}

/// `cp.async.cg` of `bytes`, and zeros up to 16.
pub fn copy_16_clipped(destination: u32, source: u64, bytes: u32) {
    let arguments = [destination.into(), source, bytes.into()];
    if let Some([destination, source, bytes]) = issue(Instruction::CopyAsync, arguments) {
        checked(|cluster, thread| {
            cluster.start_async(thread, destination as u32, source, bytes as u32)
        });
    }
}

/// `cp.async.commit_group`.
pub fn commit_group() {
    if issue(Instruction::CommitCopies, []).is_some() {
        with(|cluster, thread| cluster.threads[thread as usize].copies.committed += 1);
    }
}

/// `cp.async.wait_group`.
pub fn wait(pending: u32) {
    if let Some([pending]) = issue(Instruction::WaitCopies, [pending.into()]) {
        checked(|cluster, thread| {
            let committed = cluster.threads[thread as usize].copies.committed;
            cluster.finish_async(thread, committed.saturating_sub(pending as u32))
        });
    }
}

/// `cp.async.wait_all`.
pub fn wait_all() {
    if issue(Instruction::WaitCopies, [0]).is_some() {
        checked(|cluster, thread| {
            let groups = &mut cluster.threads[thread as usize].copies;
            groups.committed += 1;
            let all = groups.committed;
            cluster.finish_async(thread, all)
        });
    }
}

impl Cluster<'_> {
    fn start_async(
        &mut self,
        thread: u32,
        destination: u32,
        source: u64,
        bytes: u32,
    ) -> Result<(), Broken> {
        self.check_dependency(thread)?;
        if bytes > BYTES {
            let detail = format!("{bytes} bytes, accepted: up to {BYTES}");
            return Err(Broken::new(Check::InvalidArgument, detail));
        }
        if !source.is_multiple_of(BYTES.into()) {
            let detail = format!("not a multiple of {BYTES}");
            return Err(Broken::new(Check::Misaligned, detail).at(Address::Global(source)));
        }
        let cta = self.threads[thread as usize].cta;
        let offset = self.locate((cta, destination), BYTES, BYTES)?;
        if bytes > 0 {
            self.request_line(thread, source);
        }
        let (knowledge, issuer) = self.start(thread);
        let groups = &mut self.threads[thread as usize].copies;
        groups.pending.push_back(AsyncCopy {
            group: groups.committed + 1,
            offset,
            source,
            bytes,
            issuer,
            knowledge,
        });
        Ok(())
    }

    /// Performs a thread's copies of groups up to `upto`.
    fn finish_async(&mut self, thread: u32, upto: u32) -> Result<(), Broken> {
        let agent = self.agents.number(Role::Copies(thread));
        let cta = self.threads[thread as usize].cta;
        loop {
            let pending = &mut self.threads[thread as usize].copies.pending;
            let Some(copy) = pending.pop_front_if(|copy| copy.group <= upto) else {
                break;
            };
            let epoch = Epoch {
                agent,
                clock: copy.group,
            };
            let mut halves = [0; BYTES as usize / 2];
            if copy.bytes > 0 {
                let actor = self.engine_actor(epoch, &copy.knowledge);
                let into = &mut halves[..copy.bytes.div_ceil(2) as usize];
                let memory = self.launch.memory;
                memory.load(copy.source, 2, into, actor, Reads::NonCoherently)?;
                self.counts.global_read_bytes += u64::from(copy.bytes);
            }
            let access = Access {
                epoch,
                knowledge: &copy.knowledge,
                issuer: Some(copy.issuer),
                proxy: Proxy::Generic,
            };
            let bytes = halves.map(u16::to_le_bytes);
            self.engine_write(cta, copy.offset, bytes.as_flattened(), access)?;
        }
        if upto > 0 {
            self.learn(thread, Epoch { agent, clock: upto });
        }
        Ok(())
    }
}
