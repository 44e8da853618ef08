//! Global memory: allocations, their contents, and their shadow.
//!
//! Simulated SMs run on several host threads, so contents and shadow are atomics.

mod cell;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU16, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytemuck::allocation::try_zeroed_slice_box;

use super::clock::Message;
use super::report::Check;
use crate::machine::poison;
use cell::Cell;
pub(super) use cell::{Actor, Reads};

/// Below all allocations.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;

/// Bytes that one shadow cell stands for.
const GRANULE: u64 = 2;

/// What a load gets in place of a granule that it may not read and does not use: the half of an
/// undefined word of shared memory.
const UNDEFINED: u16 = poison::WORD as u16;

/// Global memory of the emulated GPU.
#[derive(Debug, Default)]
pub struct Memory {
    /// Ordered by address.
    buffers: Vec<Buffer>,
    /// End of the last allocation.
    end: u64,
    /// The message that a thread acquires when it sees a raised flag, by the flag's address.
    messages: Mutex<HashMap<u64, Message>>,
}

#[derive(Debug)]
struct Buffer {
    start: u64,
    bytes: u64,
    data: Box<[AtomicU16]>,
    shadow: Box<[Cell]>,
}

/// A broken rule, for a report.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) check: Check,
    pub(super) address: u64,
    pub(super) detail: String,
}

/// The host reads or writes memory that is not allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes at {address:#x} are not inside one allocation at an even address")]
pub struct NoSuchMemory {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Memory {
    /// A memory without allocations.
    pub fn new() -> Memory {
        Memory::default()
    }

    /// Allocates `bytes` unwritten bytes, at a multiple of 256. There is a gap of at least
    /// 1 MiB to every other allocation, so that a wrong address hits no allocation.
    ///
    /// # Panics
    /// The host has not enough memory.
    pub fn allocate(&mut self, bytes: u64) -> u64 {
        let address = self.try_allocate(bytes);
        address.unwrap_or_else(|| panic!("no memory for {bytes} bytes and their shadow"))
    }

    /// [`Memory::allocate`], or `None` if the host has not enough memory.
    pub fn try_allocate(&mut self, bytes: u64) -> Option<u64> {
        let start = (self.end.max(FIRST_ADDRESS) + (1 << 20)).next_multiple_of(256);
        let granules = usize::try_from(bytes.div_ceil(GRANULE)).ok()?;
        self.buffers.push(Buffer {
            start,
            bytes,
            data: try_zeroed_slice_box(granules).ok()?,
            shadow: try_zeroed_slice_box(granules).ok()?,
        });
        self.end = start + bytes;
        Some(start)
    }

    /// Frees the allocation that starts at `address`. No later allocation gets the address.
    pub fn free(&mut self, address: u64) {
        self.buffers.retain(|buffer| buffer.start != address);
    }

    /// Bytes in all allocations.
    pub fn allocated_bytes(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.bytes).sum()
    }

    /// Writes `byte` to `bytes` (a multiple of 2) at `address`, which is even.
    ///
    /// # Errors
    /// [`NoSuchMemory`].
    pub fn fill(&self, address: u64, bytes: u64, byte: u8) -> Result<(), NoSuchMemory> {
        let (buffer, granules) = self.host_range(address, bytes)?;
        for index in granules {
            buffer.data[index].store(u16::from_le_bytes([byte, byte]), Relaxed);
            buffer.shadow[index].write_by_host();
        }
        Ok(())
    }

    /// Marks `bytes` from `address` on as unwritten; bytes outside of allocations are
    /// ignored.
    pub fn leave_undefined(&self, address: u64, bytes: u64) {
        if let Ok((buffer, granules)) = self.host_range(address, bytes) {
            for cell in &buffer.shadow[granules] {
                cell.undefine();
            }
        }
    }

    /// Copies `bytes` (a multiple of 2) to `address`, which is even.
    ///
    /// # Errors
    /// [`NoSuchMemory`].
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<(), NoSuchMemory> {
        let (buffer, granules) = self.host_range(address, bytes.len() as u64)?;
        for (index, pair) in granules.zip(bytes.chunks_exact(2)) {
            buffer.data[index].store(u16::from_le_bytes([pair[0], pair[1]]), Relaxed);
            buffer.shadow[index].write_by_host();
        }
        Ok(())
    }

    /// `bytes` (a multiple of 2) from `address`, which is even.
    ///
    /// # Errors
    /// [`NoSuchMemory`].
    pub fn read(&self, address: u64, bytes: u64) -> Result<Vec<u8>, NoSuchMemory> {
        let (buffer, granules) = self.host_range(address, bytes)?;
        Ok(buffer.data[granules]
            .iter()
            .flat_map(|granule| granule.load(Relaxed).to_le_bytes())
            .collect())
    }

    /// Whether the host or a kernel has written all of `bytes` from `address` on.
    ///
    /// # Errors
    /// [`NoSuchMemory`].
    pub fn is_written(&self, address: u64, bytes: u64) -> Result<bool, NoSuchMemory> {
        let (buffer, granules) = self.host_range(address, bytes)?;
        Ok(buffer.shadow[granules].iter().all(Cell::is_written))
    }

    fn host_range(
        &self,
        address: u64,
        bytes: u64,
    ) -> Result<(&Buffer, std::ops::Range<usize>), NoSuchMemory> {
        self.find(address, bytes)
            .filter(|_| address.is_multiple_of(GRANULE) && bytes.is_multiple_of(GRANULE))
            .map(|buffer| (buffer, buffer.granules(address, bytes)))
            .ok_or(NoSuchMemory { address, bytes })
    }

    /// The allocation that holds all of these bytes.
    fn find(&self, address: u64, bytes: u64) -> Option<&Buffer> {
        let after = self
            .buffers
            .partition_point(|buffer| buffer.start <= address);
        let buffer = self.buffers.get(after.checked_sub(1)?)?;
        let inside = address - buffer.start + bytes <= buffer.bytes;
        inside.then_some(buffer)
    }

    /// [`Memory::find`] for a kernel.
    fn locate(
        &self,
        address: u64,
        bytes: u64,
        aligned_to: u64,
    ) -> Result<(&Buffer, std::ops::Range<usize>), Violation> {
        let violation = |check, detail| Violation {
            check,
            address,
            detail,
        };
        if !address.is_multiple_of(aligned_to) {
            let detail = format!("not a multiple of {aligned_to}");
            return Err(violation(Check::Misaligned, detail));
        }
        match self.find(address, bytes) {
            Some(buffer) => Ok((buffer, buffer.granules(address, bytes))),
            None => {
                let detail = format!("{bytes} bytes there are not inside one allocation");
                Err(violation(Check::OutOfBounds, detail))
            }
        }
    }

    /// Loads `into.len()` pairs of bytes; those that [`Reads::InPart`] may not read become
    /// [`UNDEFINED`]. `actor` is `None` if accesses are not checked.
    pub(super) fn load(
        &self,
        address: u64,
        aligned_to: u64,
        into: &mut [u16],
        actor: Option<Actor<'_>>,
        reads: Reads,
    ) -> Result<(), Violation> {
        let bytes = into.len() as u64 * GRANULE;
        let (buffer, granules) = self.locate(address, bytes, aligned_to)?;
        let mut reason = None;
        let cells = &buffer.shadow[granules.clone()];
        let mut readable = 0;
        for ((value, granule), cell) in into.iter_mut().zip(&buffer.data[granules]).zip(cells) {
            match actor.map_or(Ok(()), |actor| cell.read(actor, reads)) {
                Ok(()) => {
                    *value = granule.load(Relaxed);
                    readable += 1;
                }
                Err(why) => {
                    *value = UNDEFINED;
                    reason = Some(why);
                }
            }
        }
        match reason {
            Some((check, detail)) if readable == 0 || reads != Reads::InPart => Err(Violation {
                check,
                address,
                detail,
            }),
            _ => Ok(()),
        }
    }

    /// Stores pairs of bytes.
    pub(super) fn store(
        &self,
        address: u64,
        aligned_to: u64,
        values: &[u16],
        actor: Option<Actor<'_>>,
    ) -> Result<(), Violation> {
        let bytes = values.len() as u64 * GRANULE;
        let (buffer, granules) = self.locate(address, bytes, aligned_to)?;
        for (value, granule) in values.iter().zip(&buffer.data[granules.clone()]) {
            granule.store(*value, Relaxed);
        }
        for cell in &buffer.shadow[granules] {
            match actor {
                Some(actor) => cell.write(actor).map_err(|(check, detail)| Violation {
                    check,
                    address,
                    detail,
                })?,
                None => cell.write_by_host(),
            }
        }
        Ok(())
    }

    /// Loads a word by an acquire load. The flag itself gives the order, so the check for
    /// races accepts any writer.
    pub(super) fn load_flag(&self, address: u64) -> Result<u32, Violation> {
        let (buffer, granules) = self.locate(address, 4, 4)?;
        let mut word = 0;
        for (index, granule) in buffer.data[granules.clone()].iter().enumerate() {
            word |= u32::from(granule.load(Relaxed)) << (16 * index);
        }
        if !buffer.shadow[granules].iter().all(Cell::is_written) {
            return Err(Violation {
                check: Check::Uninitialized,
                address,
                detail: "nothing wrote this flag".into(),
            });
        }
        Ok(word)
    }

    /// The messages of flags, by the flag's address.
    pub(super) fn messages(&self) -> MutexGuard<'_, HashMap<u64, Message>> {
        self.messages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Called at the end of a launch: later launches may read all of its writes.
    pub(super) fn end_launch(&mut self) {
        for cell in self
            .buffers
            .iter_mut()
            .flat_map(|buffer| &mut buffer.shadow)
        {
            cell.end_launch();
        }
        self.messages().clear();
    }
}

impl Buffer {
    fn granules(&self, address: u64, bytes: u64) -> std::ops::Range<usize> {
        let first = (address - self.start) / GRANULE;
        first as usize..(first + bytes.div_ceil(GRANULE)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_holds_what_was_written_and_nothing_else_exists() {
        let mut memory = Memory::new();
        let (a, b) = (memory.allocate(6), memory.allocate(4));
        assert_eq!((a % 256, b % 256), (0, 0));
        memory.write(a + 2, &[1, 2, 3, 4]).unwrap();
        assert_eq!(memory.read(a, 6).unwrap(), [0, 0, 1, 2, 3, 4]);
        assert!(memory.is_written(a + 2, 4).unwrap());
        assert!(!memory.is_written(a, 4).unwrap());
        for (address, bytes) in [
            (a, 8),
            (a + 6, 2),
            (a - 2, 2),
            (b + 4, 2),
            (0, 2),
            (a + 1, 2),
        ] {
            assert!(memory.read(address, bytes).is_err(), "{address:#x}");
        }
    }
}
