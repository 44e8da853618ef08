//! wgmma: multiplies of a warpgroup, asynchronous until the warpgroup waits for them.
//!
//! While the tensor cores own an accumulator, its values are in the machine, and the
//! registers hold a ticket: NaNs that name the accumulator, so that the kernel may move
//! the array like any other. `finish` puts the values into the registers. A thread that
//! reads the registers before `finish` gets a report, or NaN.

use std::collections::{HashMap, VecDeque};

use super::WARPGROUP;
use super::gather::{Gather, Operands, Scope, gather, operands};
use super::{Broken, Check, Cluster, checked, fail, issue, poison, with};
use crate::agent::{Proxy, Role};
use crate::clock::{Epoch, Knowledge};
use crate::instruction::Instruction;
use crate::semantics::descriptor::{Descriptor, DescriptorError};
use crate::semantics::factor::Factor;
use crate::semantics::format::Format;
use crate::semantics::format::Major;
use crate::semantics::{dot, wgmma};
use crate::shadow::Access;

/// The multiplies of one warpgroup.
#[derive(Debug)]
pub(super) struct Warpgroup {
    pub(super) gather: Gather,
    accumulators: HashMap<u32, Accumulator>,
    /// Number of the last accumulator.
    last: u32,
    /// Multiplies that are issued and not yet performed, in order.
    pending: VecDeque<Multiply>,
    /// Number of closed groups.
    committed: u32,
    /// Whether a `wgmma.fence` has followed the last use of the registers.
    fenced: bool,
    /// The accumulator's registers that the threads give to a multiply, by thread.
    brought: Vec<Vec<f32>>,
}

/// An accumulator that the tensor cores own, or have finished.
#[derive(Debug)]
struct Accumulator {
    /// An m64 tile, row by row.
    tile: Vec<f32>,
    /// Threads that have not fetched their part.
    to_fetch: u32,
}

#[derive(Debug)]
struct Multiply {
    accumulator: u32,
    dtype: Format,
    majors: [Major; 2],
    descriptors: [Descriptor; 2],
    accumulates: bool,
    group: u32,
    knowledge: Knowledge,
}

impl Warpgroup {
    pub(super) fn new() -> Warpgroup {
        Warpgroup {
            gather: Gather::new(),
            accumulators: HashMap::new(),
            last: 0,
            pending: VecDeque::new(),
            committed: 0,
            fenced: false,
            brought: vec![Vec::new(); WARPGROUP as usize],
        }
    }
}

/// The NaNs of tickets: quiet, with the sign, the number of an accumulator (1 to
/// 2¹⁴ − 1) and a register's index. No arithmetic produces such payloads.
const TICKET: u32 = 0xffc0_0000;
const NUMBERS: u32 = (1 << 14) - 1;

/// The value of registers that nothing has written.
const UNDEFINED: u32 = 0x7fee_dead;

fn ticket(bits: u32) -> Option<u32> {
    let number = bits >> 8 & NUMBERS;
    (bits & TICKET == TICKET && number != 0).then_some(number)
}

/// Registers of undefined value.
pub fn undefined<const N: usize>() -> [u32; N] {
    [UNDEFINED; N]
}

/// `wgmma.fence`.
pub fn fence() {
    mark(Instruction::WgmmaFence, |warpgroup| warpgroup.fenced = true);
}

/// `wgmma.commit_group`.
pub fn commit() {
    mark(Instruction::WgmmaCommit, |warpgroup| {
        warpgroup.committed += 1;
    });
}

/// An instruction of a whole warpgroup that changes nothing but its state.
fn mark(instruction: Instruction, change: impl FnOnce(&mut Warpgroup)) {
    if issue(instruction, []).is_some() {
        gather(
            Scope::Warpgroup,
            instruction,
            operands([]),
            |cluster, number, _| {
                change(&mut cluster.warpgroups[number as usize]);
                Ok(())
            },
        );
    }
}

/// `wgmma.wait_group`.
pub fn wait(pending: u32) {
    let instruction = Instruction::WgmmaWait;
    if let Some([pending]) = issue(instruction, [pending.into()]) {
        let mine = operands([pending as u32]);
        gather(
            Scope::Warpgroup,
            instruction,
            mine,
            |cluster, number, all| cluster.retire(number, all[0][0]),
        );
    }
}

/// `wgmma.mma_async`: D += A · B, or D = A · B if `accumulate` is 0.
pub fn multiply(
    registers: &mut [u32],
    dtype: Format,
    majors: [Major; 2],
    [a, b]: [u64; 2],
    accumulate: u32,
) {
    let instruction = Instruction::WgmmaMultiply;
    let Some([a, b, accumulate]) = issue(instruction, [a, b, accumulate.into()]) else {
        return;
    };
    let held = ticket(registers[0]).unwrap_or(0);
    let undefined = accumulate != 0 && registers[0] == UNDEFINED;
    if undefined && with(|cluster, _| cluster.checks()) {
        let detail = "accumulates onto registers that nothing has written";
        fail(Broken::new(Check::Uninitialized, detail));
    }
    if held == 0 {
        with(|cluster, thread| {
            let group = &mut cluster.warpgroups[(thread / WARPGROUP) as usize];
            let place = &mut group.brought[(thread % WARPGROUP) as usize];
            place.clear();
            place.extend(registers.iter().copied().map(f32::from_bits));
        });
    }
    let halves = |value: u64| [value as u32, (value >> 32) as u32];
    let ([a0, a1], [b0, b1]) = (halves(a), halves(b));
    let columns = 2 * registers.len() as u32;
    let mine = operands([a0, a1, b0, b1, accumulate as u32, held, columns]);
    let [number, ..] = gather(
        Scope::Warpgroup,
        instruction,
        mine,
        |cluster, group, all| {
            let number = cluster.issue_multiply(group, dtype, majors, all)?;
            all.fill(operands([number]));
            Ok(())
        },
    );
    if held == 0 {
        for (index, register) in registers.iter_mut().enumerate() {
            *register = TICKET | number << 8 | index as u32;
        }
    }
}

/// `wgmma.wait_group`; puts the accumulator into the registers, if none of the `pending` groups
/// that may be unfinished writes it.
pub fn finish(registers: &mut [u32], pending: u32) {
    wait(pending);
    let Some(number) = ticket(registers[0]) else {
        return;
    };
    checked(|cluster, thread| {
        let group = &mut cluster.warpgroups[(thread / WARPGROUP) as usize];
        let in_flight = |multiply: &Multiply| multiply.accumulator == number;
        if group.pending.iter().any(in_flight) {
            // The tensor cores still own the registers: the group is among the pending ones, or
            // a fault dropped the wait.
            return Ok(());
        }
        let Some(accumulator) = group.accumulators.get_mut(&number) else {
            let detail = "its accumulator was given back before";
            return Err(Broken::new(Check::AccumulatorInUse, detail));
        };
        let columns = accumulator.tile.len() / wgmma::ROWS;
        for (index, register) in registers.iter_mut().enumerate() {
            let (row, column) = wgmma::d_element((thread % WARPGROUP) as usize, index);
            *register = accumulator.tile[row * columns + column].to_bits();
        }
        accumulator.to_fetch -= 1;
        if accumulator.to_fetch == 0 {
            group.accumulators.remove(&number);
        }
        group.fenced = false;
        Ok(())
    });
}

/// Checks that a thread that reads an accumulator owns its registers.
pub fn read(registers: &[u32]) {
    let foreign = registers
        .iter()
        .any(|value| ticket(*value).is_some() || *value == UNDEFINED);
    if foreign {
        with(|cluster, thread| cluster.threads[thread as usize].instruction = None);
        let detail = "reads an accumulator that wgmma owns: no wgmma.wait_group came before";
        fail(Broken::new(Check::AccumulatorInUse, detail));
    }
}

impl Cluster<'_> {
    /// Queues a multiply, and returns the number of its accumulator.
    fn issue_multiply(
        &mut self,
        group: u32,
        dtype: Format,
        majors: [Major; 2],
        all: &[Operands],
    ) -> Result<u32, Broken> {
        if all.iter().any(|operands| operands[..5] != all[0][..5]) {
            let detail = "the warpgroup's threads give different operands";
            return Err(Broken::new(Check::InvalidArgument, detail));
        }
        if all.iter().any(|operands| operands[5..7] != all[0][5..7]) {
            let detail = "the warpgroup's threads give different accumulators";
            return Err(Broken::new(Check::InvalidArgument, detail));
        }
        let [a0, a1, b0, b1, accumulate, held, columns, ..] = all[0];
        let descriptor =
            |low: u32, high: u32| Descriptor::decode(u64::from(low) | u64::from(high) << 32);
        let descriptors = [descriptor(a0, a1)?, descriptor(b0, b1)?];
        let mut knowledge: Option<Knowledge> = None;
        for thread in group * WARPGROUP..(group + 1) * WARPGROUP {
            let own = self.release(thread);
            match &mut knowledge {
                Some(all) => all.meet(&own),
                None => knowledge = Some(own),
            }
        }
        let checks = self.checks();
        let warpgroup = &mut self.warpgroups[group as usize];
        let number = match held {
            0 => {
                if checks && !warpgroup.fenced {
                    let detail = "no wgmma.fence since the registers were last used";
                    return Err(Broken::new(Check::AccumulatorInUse, detail));
                }
                warpgroup.last = warpgroup.last % NUMBERS + 1;
                let tile = match accumulate {
                    0 => vec![0.0; wgmma::ROWS * columns as usize],
                    _ => wgmma::tile_from_registers(&warpgroup.brought),
                };
                let accumulator = Accumulator {
                    tile,
                    to_fetch: WARPGROUP,
                };
                warpgroup.accumulators.insert(warpgroup.last, accumulator);
                warpgroup.last
            }
            number if warpgroup.accumulators.contains_key(&number) => number,
            _ => {
                let detail = "a copy of registers that wgmma has given back";
                return Err(Broken::new(Check::AccumulatorInUse, detail));
            }
        };
        let multiply = Multiply {
            accumulator: number,
            dtype,
            majors,
            descriptors,
            accumulates: accumulate != 0,
            group: warpgroup.committed + 1,
            knowledge: knowledge.unwrap_or_default(),
        };
        if checks {
            self.note_operands(group, &multiply, columns as usize)?;
        }
        self.warpgroups[group as usize].pending.push_back(multiply);
        Ok(number)
    }

    /// Performs all groups but the newest `pending`; the warpgroup then knows that they are
    /// complete.
    fn retire(&mut self, group: u32, pending: u32) -> Result<(), Broken> {
        let upto = self.warpgroups[group as usize]
            .committed
            .saturating_sub(pending);
        loop {
            let queue = &mut self.warpgroups[group as usize].pending;
            let Some(multiply) = queue.pop_front_if(|multiply| multiply.group <= upto) else {
                break;
            };
            self.perform_multiply(group, &multiply)?;
        }
        if upto > 0 {
            for thread in group * WARPGROUP..(group + 1) * WARPGROUP {
                self.learn_of(thread, Role::Multiplies(group), upto);
            }
        }
        Ok(())
    }

    fn perform_multiply(&mut self, group: u32, multiply: &Multiply) -> Result<(), Broken> {
        let warpgroup = &mut self.warpgroups[group as usize];
        let Some(mut accumulator) = warpgroup.accumulators.remove(&multiply.accumulator) else {
            let detail = "its accumulator was given back";
            return Err(Broken::new(Check::AccumulatorInUse, detail));
        };
        let columns = accumulator.tile.len() / wgmma::ROWS;
        let a = self.factor(group, multiply, 0, wgmma::ROWS)?;
        let b = self.factor(group, multiply, 1, columns)?;
        if !multiply.accumulates {
            accumulator.tile.fill(0.0);
        }
        dot::multiply_add(&a, &b, &mut accumulator.tile);
        self.counts.tensor_operations += 2 * (wgmma::ROWS * columns * a.depth()) as u64;
        let warpgroup = &mut self.warpgroups[group as usize];
        warpgroup
            .accumulators
            .insert(multiply.accumulator, accumulator);
        Ok(())
    }

    /// Records that a multiply reads its operands in shared memory from now until it is
    /// retired.
    fn note_operands(
        &mut self,
        group: u32,
        multiply: &Multiply,
        columns: usize,
    ) -> Result<(), Broken> {
        let access = Access {
            epoch: Epoch {
                agent: self.agents.number(Role::Multiplies(group)),
                clock: multiply.group,
            },
            knowledge: &multiply.knowledge,
            issuer: None,
            proxy: Proxy::Async,
        };
        let cta = self.threads[(group * WARPGROUP) as usize].cta;
        for (which, lines) in [wgmma::ROWS, columns].into_iter().enumerate() {
            let major = multiply.majors[which];
            for chunk in multiply.descriptors[which].chunks(multiply.dtype, major, lines)? {
                let offset = self.locate((cta, chunk.address), 16, 16)?;
                self.engine_reads(cta, offset, access)?;
            }
        }
        Ok(())
    }

    /// A (0) or B (1), read from shared memory.
    fn factor(
        &self,
        group: u32,
        multiply: &Multiply,
        which: usize,
        lines: usize,
    ) -> Result<Factor, Broken> {
        let cta = self.threads[(group * WARPGROUP) as usize].cta;
        let (descriptor, major) = (multiply.descriptors[which], multiply.majors[which]);
        descriptor.read(multiply.dtype, major, lines, |address| {
            let offset = self.locate((cta, address), 16, 16)?;
            // Rows past the edge of an operand may never be written: they reach only
            // elements of D that no thread stores.
            Ok(self.engine_data(cta, offset).unwrap_or(poison::CHUNK))
        })
    }
}

impl From<DescriptorError> for Broken {
    fn from(error: DescriptorError) -> Broken {
        Broken::new(Check::InvalidArgument, error.to_string())
    }
}
