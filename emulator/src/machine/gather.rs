//! Instructions that a warp or a warpgroup executes as one (`.sync.aligned`): each
//! thread leaves its operands, and the last thread executes for all.

use super::WARPGROUP;
use super::{Broken, Check, Cluster, WARP, Wait, block, checked, with};
use crate::instruction::Instruction;

/// The largest number of registers that a thread gives to such an instruction, or gets from
/// it.
const REGISTERS: usize = 10;

/// One thread's registers.
pub(super) type Operands = [u32; REGISTERS];

/// The threads that execute an instruction together.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    Warp,
    Warpgroup,
}

impl Scope {
    const fn threads(self) -> u32 {
        match self {
            Scope::Warp => WARP,
            Scope::Warpgroup => WARPGROUP,
        }
    }
}

/// The threads that have reached the instruction so far.
#[derive(Debug)]
pub(super) struct Gather {
    instruction: Option<Instruction>,
    arrived: u32,
    operands: Vec<Operands>,
}

impl Gather {
    pub(super) fn new() -> Gather {
        Gather {
            instruction: None,
            arrived: 0,
            operands: Vec::new(),
        }
    }
}

/// `registers`, followed by zeros.
pub(super) fn operands<const N: usize>(registers: [u32; N]) -> Operands {
    let mut operands = [0; REGISTERS];
    operands[..N].copy_from_slice(&registers);
    operands
}

/// Waits for the other threads of the executing thread's warp or warpgroup. The last thread
/// calls `execute` with the number of the warp or warpgroup and the operands of all its
/// threads, in order. `execute` replaces the operands by results, and each thread gets its
/// own.
pub(super) fn gather(
    scope: Scope,
    instruction: Instruction,
    mine: Operands,
    execute: impl FnOnce(&mut Cluster<'_>, u32, &mut [Operands]) -> Result<(), Broken>,
) -> Operands {
    let complete = checked(|cluster, thread| {
        let number = thread / scope.threads();
        let place = (thread % scope.threads()) as usize;
        let gather = cluster.gather_of(scope, number);
        if gather.arrived > 0 && gather.instruction != Some(instruction) {
            let others = gather.instruction.map_or("nothing", Instruction::name);
            let detail = format!(
                "{} of the {} wait at {others}",
                gather.arrived,
                scope.name()
            );
            return Err(Broken::new(Check::BarrierDivergence, detail));
        }
        gather.instruction = Some(instruction);
        gather
            .operands
            .resize(scope.threads() as usize, [0; REGISTERS]);
        gather.operands[place] = mine;
        gather.arrived += 1;
        if gather.arrived < scope.threads() {
            return Ok(false);
        }
        gather.arrived = 0;
        let mut operands = std::mem::take(&mut gather.operands);
        execute(cluster, number, &mut operands)?;
        cluster.gather_of(scope, number).operands = operands;
        let first = number * scope.threads();
        for other in first..first + scope.threads() {
            if other != thread {
                cluster.wake_one(other);
            }
        }
        Ok(true)
    });
    if !complete {
        block(match scope {
            Scope::Warp => Wait::Warp(instruction),
            Scope::Warpgroup => Wait::Warpgroup(instruction),
        });
    }
    with(|cluster, thread| {
        let place = (thread % scope.threads()) as usize;
        cluster.gather_of(scope, thread / scope.threads()).operands[place]
    })
}

impl Scope {
    const fn name(self) -> &'static str {
        match self {
            Scope::Warp => "warp",
            Scope::Warpgroup => "warpgroup",
        }
    }
}

impl Cluster<'_> {
    fn gather_of(&mut self, scope: Scope, number: u32) -> &mut Gather {
        match scope {
            Scope::Warp => &mut self.warps[number as usize],
            Scope::Warpgroup => &mut self.warpgroups[number as usize].gather,
        }
    }
}
