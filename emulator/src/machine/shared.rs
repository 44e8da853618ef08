//! Shared memory: `ld.shared`, `st.shared`, and the accesses of other instructions.

use super::{Broken, Check, Cluster, checked, issue, own_access, poison};
use crate::instruction::Instruction;
use crate::shadow::{Access, Shadow};

/// Shared address of the first byte. It is not 0, because hardware of compute capability
/// 9.0 reserves the first KiB.
pub const BASE: u32 = 1024;

/// The shared memory of one CTA.
#[derive(Debug)]
pub(super) struct SharedMemory {
    data: Vec<u8>,
    /// `None` if accesses are not checked.
    shadow: Option<Shadow>,
}

impl SharedMemory {
    pub(super) fn new(bytes: u32, checks: bool) -> SharedMemory {
        SharedMemory {
            data: vec![0; bytes as usize],
            shadow: checks.then(|| Shadow::new(bytes)),
        }
    }
}

/// `ld.shared` of `N` words.
#[inline(never)]
pub fn load<const N: usize>(address: u32) -> [u32; N] {
    let Some([address]) = issue(Instruction::LoadShared, [address.into()]) else {
        return [0; N];
    };
    checked(|cluster, thread| {
        let address = address as u32;
        let mut words = [[0; 4]; N];
        let cta = cluster.threads[thread as usize].cta;
        cluster.count_access(thread, address, 4 * N as u32);
        cluster.load_shared(thread, (cta, address), words.as_flattened_mut())?;
        cluster.note_loaded(thread);
        Ok(words.map(u32::from_le_bytes))
    })
}

/// `st.shared` of `N` words.
#[inline(never)]
pub fn store<const N: usize>(address: u32, values: [u32; N]) {
    poison::check(&values);
    let words = values.map(u32::to_le_bytes);
    store_bytes(address, words.as_flattened());
}

/// `st.shared` of 2 bytes.
pub fn store_u16(address: u32, value: u16) {
    store_bytes(address, &value.to_le_bytes());
}

fn store_bytes(address: u32, bytes: &[u8]) {
    if let Some([address]) = issue(Instruction::StoreShared, [address.into()]) {
        checked(|cluster, thread| {
            let cta = cluster.threads[thread as usize].cta;
            cluster.count_access(thread, address as u32, bytes.len() as u32);
            cluster.store_shared(thread, (cta, address as u32), bytes)
        });
    }
}

impl Cluster<'_> {
    /// Offset of `bytes` at a shared address of a CTA of the cluster.
    pub(super) fn locate(
        &self,
        (cta, address): (u32, u32),
        bytes: u32,
        aligned_to: u32,
    ) -> Result<u32, Broken> {
        let broken = |check, detail: String| {
            Err(Broken::new(check, detail).at(self.shared_address(cta, address)))
        };
        if !address.is_multiple_of(aligned_to) {
            return broken(Check::Misaligned, format!("not a multiple of {aligned_to}"));
        }
        let size = self.launch.shared_bytes;
        match address.checked_sub(BASE) {
            Some(offset) if offset.checked_add(bytes).is_some_and(|end| end <= size) => Ok(offset),
            _ => {
                let last = u64::from(BASE) + u64::from(size);
                broken(
                    Check::OutOfBounds,
                    format!("{bytes} bytes there; the CTA has {BASE:#x} to {last:#x}"),
                )
            }
        }
    }

    /// A thread's ordinary load, aligned to its size.
    pub(super) fn load_shared(
        &mut self,
        thread: u32,
        place: (u32, u32),
        into: &mut [u8],
    ) -> Result<(), Broken> {
        let bytes = into.len() as u32;
        let offset = self.locate(place, bytes, bytes)?;
        let epoch = self.epoch(thread);
        let access = own_access(epoch, &self.threads[thread as usize].knowledge);
        let shared = &mut self.ctas[place.0 as usize].shared;
        into.copy_from_slice(&shared.data[offset as usize..][..into.len()]);
        let Some(shadow) = &mut shared.shadow else {
            return Ok(());
        };
        match shadow.read((offset, bytes), access, &self.agents) {
            Ok(true) => Ok(()),
            Ok(false) => {
                for (index, word) in into.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                    if !shadow.is_written(offset + 4 * index as u32, 4) {
                        *word = poison::WORD.to_le_bytes();
                    }
                }
                Ok(())
            }
            Err(conflict) => Err(self.broken(place.0, conflict)),
        }
    }

    /// A thread's ordinary store, aligned to its size.
    pub(super) fn store_shared(
        &mut self,
        thread: u32,
        place: (u32, u32),
        bytes: &[u8],
    ) -> Result<(), Broken> {
        let count = bytes.len() as u32;
        let offset = self.locate(place, count, count)?;
        let epoch = self.epoch(thread);
        let access = own_access(epoch, &self.threads[thread as usize].knowledge);
        let shared = &mut self.ctas[place.0 as usize].shared;
        let found = match &mut shared.shadow {
            Some(shadow) => shadow.write((offset, count), access, &self.agents),
            None => Ok(()),
        };
        shared.data[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        found.map_err(|conflict| self.broken(place.0, conflict))
    }

    /// A write of an engine, at an offset from [`Cluster::locate`].
    pub(super) fn engine_write(
        &mut self,
        cta: u32,
        offset: u32,
        bytes: &[u8],
        access: Access<'_>,
    ) -> Result<(), Broken> {
        let shared = &mut self.ctas[cta as usize].shared;
        let range = (offset, bytes.len() as u32);
        let found = match &mut shared.shadow {
            Some(shadow) => shadow.write(range, access, &self.agents),
            None => Ok(()),
        };
        shared.data[offset as usize..][..bytes.len()].copy_from_slice(bytes);
        found.map_err(|conflict| self.broken(cta, conflict))
    }

    /// Records that an engine reads 16 bytes, at an offset from [`Cluster::locate`].
    pub(super) fn engine_reads(
        &mut self,
        cta: u32,
        offset: u32,
        access: Access<'_>,
    ) -> Result<(), Broken> {
        let found = match &mut self.ctas[cta as usize].shared.shadow {
            Some(shadow) => shadow.read((offset, 16), access, &self.agents),
            None => Ok(true),
        };
        found
            .map(|_| ())
            .map_err(|conflict| self.broken(cta, conflict))
    }

    /// The 16 bytes at `offset`; `None` if nothing wrote them.
    pub(super) fn engine_data(&self, cta: u32, offset: u32) -> Option<[u8; 16]> {
        let shared = &self.ctas[cta as usize].shared;
        if let Some(shadow) = &shared.shadow
            && !shadow.is_written(offset, 16)
        {
            return None;
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&shared.data[offset as usize..][..16]);
        Some(bytes)
    }
}
