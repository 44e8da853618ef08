//! Global memory: `ld.global`, `ld.global.nc` and `st.global`.

use std::collections::HashSet;

use super::{Broken, Check, Cluster, checked, issue, poison};
use crate::instruction::Instruction;
use crate::memory::Reads;

/// Bytes of a line of L2.
const LINE: u64 = 128;

/// The cache lines that a CTA has loaded since its last barrier. L1 and the coalescing of
/// a warp's accesses serve further accesses to them without a request to L2.
#[derive(Debug, Default)]
pub(super) struct LoadedLines(HashSet<u64>);

impl LoadedLines {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// `ld.global.nc` of 2 bytes.
pub fn load_u16(address: u64) -> u32 {
    let mut value = [0];
    load_halves(Instruction::LoadConstant, address, &mut value);
    value[0].into()
}

/// `ld.global.nc` of `N` words.
#[inline(never)]
pub fn load_constant<const N: usize>(address: u64) -> [u32; N] {
    let mut halves = [[0; 2]; N];
    load_halves(
        Instruction::LoadConstant,
        address,
        halves.as_flattened_mut(),
    );
    halves.map(word)
}

/// `ld.global` of `N` words.
#[inline(never)]
pub fn load<const N: usize>(address: u64) -> [u32; N] {
    let mut halves = [[0; 2]; N];
    load_halves(Instruction::LoadGlobal, address, halves.as_flattened_mut());
    halves.map(word)
}

/// `ld.global` of 2 bytes.
pub fn load_written_u16(address: u64) -> u32 {
    let mut value = [0];
    load_halves(Instruction::LoadGlobal, address, &mut value);
    value[0].into()
}

/// `ld.global` of a word of which a half may be anybody's. That half is undefined.
pub fn load_word_in_part(address: u64) -> u32 {
    let mut halves = [0; 2];
    load_halves_as(Instruction::LoadGlobal, address, &mut halves, Reads::InPart);
    word(halves)
}

fn word([low, high]: [u16; 2]) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

fn load_halves(instruction: Instruction, address: u64, into: &mut [u16]) {
    let reads = match instruction {
        Instruction::LoadConstant => Reads::NonCoherently,
        _ => Reads::Coherently,
    };
    load_halves_as(instruction, address, into, reads);
}

fn load_halves_as(instruction: Instruction, address: u64, into: &mut [u16], reads: Reads) {
    if let Some([address]) = issue(instruction, [address]) {
        checked(|cluster, thread| cluster.load_global(thread, address, into, reads));
    }
}

/// `st.global.u16`.
pub fn store_u16(address: u64, value: u16) {
    store_halves(address, &[value]);
}

/// `st.global` of `N` words.
#[inline(never)]
pub fn store<const N: usize>(address: u64, values: [u32; N]) {
    poison::check(&values);
    let halves = values.map(|value| [value as u16, (value >> 16) as u16]);
    store_halves(address, halves.as_flattened());
}

fn store_halves(address: u64, values: &[u16]) {
    if let Some([address]) = issue(Instruction::StoreGlobal, [address]) {
        checked(|cluster, thread| cluster.store_global(thread, address, values));
    }
}

impl Cluster<'_> {
    fn load_global(
        &mut self,
        thread: u32,
        address: u64,
        into: &mut [u16],
        reads: Reads,
    ) -> Result<(), Broken> {
        self.check_dependency(thread)?;
        let bytes = 2 * into.len() as u32;
        let actor = self.actor(thread);
        let memory = self.launch.memory;
        memory.load(address, bytes.into(), into, actor, reads)?;
        self.counts.global_read_bytes += u64::from(bytes);
        self.request_line(thread, address);
        Ok(())
    }

    pub(super) fn store_global(
        &mut self,
        thread: u32,
        address: u64,
        values: &[u16],
    ) -> Result<(), Broken> {
        self.check_dependency(thread)?;
        let bytes = 2 * values.len() as u64;
        let actor = self.actor(thread);
        self.launch.memory.store(address, bytes, values, actor)?;
        self.counts.global_written_bytes += bytes;
        Ok(())
    }

    /// Records a request to L2. Between two barriers a CTA requests each line once.
    pub(super) fn request_line(&mut self, thread: u32, address: u64) {
        if self.launch.options.trace {
            let cta = self.threads[thread as usize].cta;
            let line = address / LINE * LINE;
            if self.ctas[cta as usize].loaded_lines.0.insert(line) {
                self.request(cta, line, LINE as u32, false);
            }
        }
    }

    /// Whether global memory may be touched yet.
    pub(super) fn check_dependency(&self, thread: u32) -> Result<(), Broken> {
        if self.threads[thread as usize].dependency_awaited {
            return Ok(());
        }
        let detail = "an earlier grid may still be running";
        Err(Broken::new(Check::DependencyNotAwaited, detail))
    }
}
