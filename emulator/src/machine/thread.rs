//! Special registers, `shfl.sync` and `trap`.

use super::gather::{Scope, gather, operands};
use super::{Broken, Check, fail, issue, with};
use crate::instruction::Instruction;

/// `%tid.x`.
pub fn thread_index() -> u32 {
    with(|cluster, thread| cluster.threads[thread as usize].index)
}

/// Linear index of the CTA in the grid.
fn cta_index() -> u32 {
    with(|cluster, thread| cluster.grid_index(cluster.threads[thread as usize].cta))
}

/// `%ctaid.x`.
pub fn cta_index_x() -> u32 {
    cta_index() % grid_size_x()
}

/// `%ctaid.y`.
pub fn cta_index_y() -> u32 {
    cta_index() / grid_size_x()
}

/// `%nctaid.x`.
pub fn grid_size_x() -> u32 {
    with(|cluster, _| cluster.launch.grid.0)
}

/// `%nctaid.y`.
pub fn grid_size_y() -> u32 {
    with(|cluster, _| cluster.launch.grid.1)
}

/// `%smid`: every CTA has an SM of its own.
pub fn sm_index() -> u32 {
    cta_index()
}

/// `shfl.sync.idx` from lane 0.
pub fn broadcast(value: u32) -> u32 {
    let Some([value]) = issue(Instruction::Broadcast, [value.into()]) else {
        return value;
    };
    let instruction = Instruction::Broadcast;
    let mine = operands([value as u32]);
    gather(Scope::Warp, instruction, mine, |_, _, lanes| {
        lanes.fill(lanes[0]);
        Ok(())
    })[0]
}

/// `shfl.sync.down` by one lane.
pub fn shuffle_next(value: u32) -> u32 {
    let instruction = Instruction::ShuffleDown;
    let Some([value]) = issue(instruction, [value.into()]) else {
        return value;
    };
    let mine = operands([value as u32]);
    gather(Scope::Warp, instruction, mine, |_, _, lanes| {
        // What the last lane reads is out of range, so it keeps its own value.
        lanes.copy_within(1.., 0);
        Ok(())
    })[0]
}

/// `trap`.
pub fn trap() -> ! {
    with(|cluster, thread| {
        cluster.threads[thread as usize].instruction = Some(Instruction::Trap);
    });
    fail(Broken::new(Check::Trap, "the kernel gave up"))
}
