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
    /// Whether a thread has loaded registers from shared memory since the last `wgmma.fence`.
    loaded: bool,
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
    a: Source,
    b: Source,
    accumulates: bool,
    group: u32,
    knowledge: Knowledge,
}

/// Where a multiply reads A or B.
#[derive(Debug)]
enum Source {
    /// Shared memory, contiguous in this direction.
    Shared(Descriptor, Major),
    /// Registers, whose values are those at the time of issue.
    Registers(Factor),
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
            loaded: false,
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
    mark(Instruction::WgmmaFence, |warpgroup| {
        (warpgroup.fenced, warpgroup.loaded) = (true, false);
    });
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
    if let Some([a, b, accumulate]) = issue(INSTRUCTION, [a, b, accumulate.into()]) {
        issue_together(registers, b, accumulate as u32, halves(a), |all, b| {
            if all.iter().any(|a| a != &all[0]) {
                return Err(Broken::new(Check::InvalidArgument, DIFFERENT));
            }
            let [low, high] = all[0];
            let a = Descriptor::decode(u64::from(low) | u64::from(high) << 32)?;
            let [a, b] = [Source::Shared(a, majors[0]), Source::Shared(b, majors[1])];
            Ok((dtype, a, b))
        });
    }
}

/// The same with A in registers, for elements of 4 bytes; B is contiguous along K. Registers that
/// were loaded since the last `wgmma.fence` are taken to be those of A.
pub fn multiply_registers(
    registers: &mut [u32],
    dtype: Format,
    a: [u32; wgmma::A_REGISTERS],
    b: u64,
    accumulate: u32,
) {
    let Some([b, accumulate]) = issue(INSTRUCTION, [b, accumulate.into()]) else {
        return;
    };
    // Rows past the edge of an operand may never be written, as in `Cluster::factor`.
    if a.contains(&UNDEFINED) && with(|cluster, _| cluster.checks()) {
        let detail = "A is in registers that nothing has written";
        fail(Broken::new(Check::Uninitialized, detail));
    }
    issue_together(registers, b, accumulate as u32, a, |all, b| {
        let threads: &[_; wgmma::THREADS] = all.try_into().expect("a warpgroup");
        let a = Source::Registers(wgmma::a_from_registers(dtype, threads));
        Ok((dtype, a, Source::Shared(b, Major::K)))
    });
}

const INSTRUCTION: Instruction = Instruction::WgmmaMultiply;

/// The report of threads that disagree.
const DIFFERENT: &str = "the warpgroup's threads give different operands";

fn halves(value: u64) -> [u32; 2] {
    [value as u32, (value >> 32) as u32]
}

/// Issues a multiply once all threads of the warpgroup have arrived. `a` is this thread's part
/// of A, and `factors` makes the element type, A and B of the parts of all threads and of the
/// descriptor of B.
fn issue_together<const A: usize>(
    registers: &mut [u32],
    b: u64,
    accumulate: u32,
    a: [u32; A],
    factors: impl FnOnce(&[[u32; A]], Descriptor) -> Result<(Format, Source, Source), Broken>,
) {
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
    let [b0, b1] = halves(b);
    let columns = 2 * registers.len() as u32;
    let mut mine = operands([b0, b1, accumulate, held, columns]);
    mine[COMMON..COMMON + A].copy_from_slice(&a);
    let [number, ..] = gather(
        Scope::Warpgroup,
        INSTRUCTION,
        mine,
        |cluster, group, all| {
            let parts: Vec<[u32; A]> = (all.iter())
                .map(|operands| std::array::from_fn(|i| operands[COMMON + i]))
                .collect();
            let number = cluster.issue_multiply(group, all, |b| factors(&parts, b))?;
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

/// Operands that all threads of a warpgroup give alike: they precede A.
const COMMON: usize = 5;

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
        all: &[Operands],
        factors: impl FnOnce(Descriptor) -> Result<(Format, Source, Source), Broken>,
    ) -> Result<u32, Broken> {
        if all.iter().any(|operands| operands[..3] != all[0][..3]) {
            return Err(Broken::new(Check::InvalidArgument, DIFFERENT));
        }
        let accumulators = 3..COMMON;
        if (all.iter())
            .any(|operands| operands[accumulators.clone()] != all[0][accumulators.clone()])
        {
            let detail = "the warpgroup's threads give different accumulators";
            return Err(Broken::new(Check::InvalidArgument, detail));
        }
        let [b0, b1, accumulate, held, columns, ..] = all[0];
        let b = Descriptor::decode(u64::from(b0) | u64::from(b1) << 32)?;
        let (dtype, a, b) = factors(b)?;
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
        if checks && warpgroup.loaded && matches!(a, Source::Registers(_)) {
            let detail = "no wgmma.fence since A's registers were loaded";
            return Err(Broken::new(Check::AccumulatorInUse, detail));
        }
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
            a,
            b,
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
        let a = self.factor(group, multiply.dtype, &multiply.a, wgmma::ROWS)?;
        let b = self.factor(group, multiply.dtype, &multiply.b, columns)?;
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
        for (source, lines) in [(&multiply.a, wgmma::ROWS), (&multiply.b, columns)] {
            let &Source::Shared(descriptor, major) = source else {
                continue;
            };
            for chunk in descriptor.chunks(multiply.dtype, major, lines)? {
                let offset = self.locate((cta, chunk.address), 16, 16)?;
                self.engine_reads(cta, offset, access)?;
            }
        }
        Ok(())
    }

    /// A or B, read where it is.
    fn factor(
        &self,
        group: u32,
        dtype: Format,
        source: &Source,
        lines: usize,
    ) -> Result<Factor, Broken> {
        let cta = self.threads[(group * WARPGROUP) as usize].cta;
        match source {
            Source::Shared(descriptor, major) => descriptor.read(dtype, *major, lines, |address| {
                let offset = self.locate((cta, address), 16, 16)?;
                // Rows past the edge of an operand may never be written: they reach only
                // elements of D that no thread stores.
                Ok(self.engine_data(cta, offset).unwrap_or(poison::CHUNK))
            }),
            Source::Registers(factor) => Ok(factor.clone()),
        }
    }
}

impl Cluster<'_> {
    /// Notes that `thread` has loaded registers from shared memory.
    pub(super) fn note_loaded(&mut self, thread: u32) {
        if let Some(warpgroup) = self.warpgroups.get_mut((thread / WARPGROUP) as usize) {
            warpgroup.loaded = true;
        }
    }
}

impl From<DescriptorError> for Broken {
    fn from(error: DescriptorError) -> Broken {
        Broken::new(Check::InvalidArgument, error.to_string())
    }
}
