//! `setmaxnreg`: registers that warpgroups pass to each other.

use super::WARPGROUP;
use super::gather::{Scope, gather, operands};
use super::{Broken, Check, Cluster, Wait, issue, wait_until};
use crate::instruction::Instruction;

/// Registers of an SM.
const REGISTER_FILE: u32 = 65536;

/// Maximum number of registers of a thread.
const MOST: u32 = 255;

/// The registers of a CTA.
#[derive(Debug)]
pub(super) struct Registers {
    /// Registers of a thread, by warpgroup.
    held: Vec<u32>,
    /// Free registers, divided by the threads of a warpgroup.
    free: u32,
}

impl Registers {
    /// A CTA starts with all registers that its threads can have on an SM.
    pub(super) fn new(threads: u32) -> Registers {
        let each = (REGISTER_FILE / threads.max(1) / 8 * 8).min(MOST);
        Registers {
            held: vec![each; threads.div_ceil(WARPGROUP) as usize],
            free: 0,
        }
    }
}

/// `setmaxnreg.dec`.
pub fn release_registers(registers: u32) {
    let instruction = Instruction::ReleaseRegisters;
    let Some([registers]) = issue(instruction, [registers.into()]) else {
        return;
    };
    let registers = registers as u32;
    gather(
        Scope::Warpgroup,
        instruction,
        operands([]),
        |cluster, warpgroup, _| {
            let (cta, held) = cluster.registers_of(warpgroup);
            if registers > *held {
                let detail = format!("from {held} to {registers} registers");
                return Err(Broken::new(Check::InvalidArgument, detail));
            }
            let given = *held - registers;
            *held = registers;
            cluster.ctas[cta].registers.free += given;
            cluster.wake(|_, wait| *wait == Wait::Registers);
            Ok(())
        },
    );
}

/// `setmaxnreg.inc`.
pub fn claim_registers(registers: u32) {
    let instruction = Instruction::ClaimRegisters;
    let Some([registers]) = issue(instruction, [registers.into()]) else {
        return;
    };
    let registers = registers as u32;
    gather(
        Scope::Warpgroup,
        instruction,
        operands([]),
        |_, _, _| Ok(()),
    );
    // The first thread that finds enough registers takes them for its warpgroup.
    wait_until(Wait::Registers, |cluster, thread| {
        let (cta, held) = cluster.registers_of(thread / WARPGROUP);
        let wanted = registers.saturating_sub(*held);
        *held = (*held).max(registers);
        let free = &mut cluster.ctas[cta].registers.free;
        let done = *free >= wanted;
        if done {
            *free -= wanted;
        } else {
            *cluster.registers_of(thread / WARPGROUP).1 -= wanted;
        }
        Ok(done)
    });
}

impl Cluster<'_> {
    /// The CTA of a warpgroup of the cluster, and the warpgroup's registers a thread.
    fn registers_of(&mut self, warpgroup: u32) -> (usize, &mut u32) {
        let each = self.launch.threads.div_ceil(WARPGROUP);
        let (cta, index) = ((warpgroup / each) as usize, (warpgroup % each) as usize);
        (cta, &mut self.ctas[cta].registers.held[index])
    }
}
