//! [`Segment`]: memory that the processes of one host share.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64};

use memmap2::{MmapOptions, MmapRaw};

use crate::error::Error;

/// The largest pages of Linux that a mapping of a file is made of, so that GPUs can register whole
/// pages.
const PAGE: usize = 64 << 10;

/// Memory in a file that several processes have mapped. All of it begins as zeros.
#[derive(Debug)]
pub(super) struct Segment {
    map: MmapRaw,
    bytes: usize,
}

/// The name of a segment until all have opened it. Without its name, the memory ends with the last
/// process that has it.
#[derive(Debug)]
pub(super) struct Name(PathBuf);

impl Name {
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        // If it is gone already, that is what was wanted.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Segment {
    /// Creates a segment of at least `bytes` under a new name: in memory where the system lets
    /// it, else among the temporary files.
    pub fn create(bytes: usize) -> Result<(Self, Name), Error> {
        let in_memory = Segment::create_in(Path::new("/dev/shm"), bytes);
        in_memory.or_else(|_| Segment::create_in(&std::env::temp_dir(), bytes))
    }

    fn create_in(folder: &Path, bytes: usize) -> Result<(Self, Name), Error> {
        let name = format!("tilewise-{:032x}", rand::random::<u128>());
        let path = folder.join(name);
        let failed = |error: io::Error| {
            let what = format!(
                "creating {bytes} bytes of shared memory, {}",
                path.display()
            );
            Error::system(what, &error)
        };
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let mut file = options.open(&path).map_err(failed)?;
        let name = Name(path.clone());
        let whole = whole(bytes).map_err(failed)?;
        // Written, not only made longer: memory that the system does not have would otherwise end
        // the process at the first access.
        let zeros = vec![0; PAGE];
        for _ in 0..whole / PAGE {
            file.write_all(&zeros).map_err(failed)?;
        }
        Ok((Segment::map(&file, whole).map_err(failed)?, name))
    }

    /// Opens a segment that was created with as many bytes.
    pub fn open(path: &Path, bytes: usize) -> Result<Self, Error> {
        let failed = |error: io::Error| {
            let what = format!("opening shared memory of rank 0, {}", path.display());
            Error::system(what, &error)
        };
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).open(path).map_err(failed)?;
        let whole = whole(bytes).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() != whole as u64 {
            return Err(failed(io::Error::other("it has another length")));
        }
        Segment::map(&file, whole).map_err(failed)
    }

    fn map(file: &File, bytes: usize) -> io::Result<Self> {
        let map = MmapOptions::new().len(bytes).map_raw(file)?;
        Ok(Segment { map, bytes })
    }

    /// The address of its first byte, and its length.
    pub fn memory(&self) -> (*mut u8, usize) {
        (self.map.as_mut_ptr(), self.bytes)
    }

    /// The 32 bits at `byte`, a multiple of 4.
    pub fn word(&self, byte: usize) -> &AtomicU32 {
        assert!(byte.is_multiple_of(4) && byte + 4 <= self.bytes, "{byte}");
        // SAFETY: the mapping holds the word as long as `self`, aligned, and every process accesses
        // it as an atomic alone, or by a GPU's writes of 32 bits.
        unsafe { AtomicU32::from_ptr(self.map.as_mut_ptr().add(byte).cast()) }
    }

    /// The 64 bits at `byte`, a multiple of 8.
    pub fn long_word(&self, byte: usize) -> &AtomicU64 {
        assert!(byte.is_multiple_of(8) && byte + 8 <= self.bytes, "{byte}");
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(byte).cast()) }
    }

    /// Copies `elements` to `byte` and behind.
    ///
    /// # Safety
    /// No other thread or process accesses these bytes meanwhile.
    pub unsafe fn write<E: Copy>(&self, byte: usize, elements: &[E]) {
        let length = size_of_val(elements);
        assert!(byte <= self.bytes && length <= self.bytes - byte, "{byte}");
        let from = elements.as_ptr().cast::<u8>();
        // SAFETY: the bytes lie in the mapping, and nobody else accesses them.
        unsafe { from.copy_to_nonoverlapping(self.map.as_mut_ptr().add(byte), length) }
    }

    /// The `count` elements at `byte` and behind.
    ///
    /// # Safety
    /// No other thread or process writes to these bytes meanwhile. They are valid as `E`.
    pub unsafe fn read<E: Copy>(&self, byte: usize, count: usize) -> Vec<E> {
        let length = count * size_of::<E>();
        assert!(byte <= self.bytes && length <= self.bytes - byte, "{byte}");
        let mut elements: Vec<E> = Vec::with_capacity(count);
        let to: *mut u8 = elements.as_mut_ptr().cast();
        // SAFETY: the bytes lie in the mapping, nobody writes to them, and the vector has room for
        // the elements, which are valid.
        unsafe {
            to.copy_from_nonoverlapping(self.map.as_mut_ptr().add(byte), length);
            elements.set_len(count);
        }
        elements
    }
}

/// Bytes of whole pages.
fn whole(bytes: usize) -> io::Result<usize> {
    let whole = bytes.max(1).checked_next_multiple_of(PAGE);
    whole.ok_or_else(|| io::Error::other("no memory is so large"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    #[test]
    fn two_mappings_are_one_memory() {
        let (first, name) = Segment::create(100_000).expect("shared memory");
        let second = Segment::open(name.path(), 100_000).expect("the same");
        assert!(Segment::open(name.path(), 200_000).is_err());
        let path = name.path().to_owned();
        drop(name);
        assert!(!path.exists());
        first.word(64).store(7, Ordering::Release);
        assert_eq!(second.word(64).load(Ordering::Acquire), 7);
        // SAFETY: no other thread has the segment.
        let read: Vec<u16> = unsafe {
            second.write(99_990, &[1_u16, 2, 3]);
            first.read(99_990, 3)
        };
        assert_eq!(read, [1, 2, 3]);
    }
}
