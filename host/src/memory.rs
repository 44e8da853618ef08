//! [`Memory`]: the elements that a window looks at. A matrix of the library owns them, or
//! the caller does.

use std::ptr;

use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::Error;
use crate::gpu::buffer::DeviceBytes;
use crate::layout::Layout;

/// Memory of `len` elements on one device. It stays allocated for `'a`.
#[derive(Debug)]
pub(crate) struct Memory<'a, T> {
    device: &'a Device,
    len: usize,
    place: Place<'a, T>,
}

/// Where the elements are.
#[derive(Debug)]
pub(crate) enum Place<'a, T> {
    /// In the memory of the process, from this element on.
    Host(*mut T),
    /// In the memory of a GPU.
    Gpu(DeviceBytes<'a>),
}

// SAFETY: the pointer is only a place. Those who read or write there need a `T` that may
// cross threads, as every element type may, and the rights that views stand for.
unsafe impl<T: Send> Send for Place<'_, T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Place<'_, T> {}

impl<T> Clone for Memory<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Memory<'_, T> {}

impl<T> Clone for Place<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Place<'_, T> {}

impl<'a, T: Element> Memory<'a, T> {
    /// `len` elements at `place`, which is on `device`.
    pub(crate) fn new(device: &'a Device, len: usize, place: Place<'a, T>) -> Self {
        Memory { device, len, place }
    }

    /// The memory of a matrix of `layout` at `address`, which the caller owns.
    ///
    /// # Errors
    /// [`Error::SizeOverflow`] and [`Error::Address`].
    ///
    /// # Safety
    /// Unless `layout` is empty, the address is that of such memory on `device`, which stays
    /// allocated for `'a`.
    pub(crate) unsafe fn foreign(
        device: &'a Device,
        address: u64,
        layout: Layout,
    ) -> Result<Self, Error> {
        let len = layout
            .allocation(size_of::<T>())
            .ok_or(Error::SizeOverflow { layout })?;
        let bytes = len * size_of::<T>();
        let is_null = address == 0 && len > 0;
        let is_aligned = address.is_multiple_of(align_of::<T>() as u64);
        if is_null || !is_aligned || address.checked_add(bytes as u64).is_none() {
            return Err(Error::Address {
                address,
                layout,
                element_bytes: size_of::<T>(),
            });
        }
        let place = match device.kind() {
            Kind::Cpu => Place::Host(ptr::with_exposed_provenance_mut(address as usize)),
            // SAFETY: the caller ensures it.
            Kind::Gpu(gpu) => Place::Gpu(unsafe { DeviceBytes::new(gpu, address, bytes) }),
        };
        Ok(Memory::new(device, len, place))
    }

    pub(crate) fn device(self) -> &'a Device {
        self.device
    }

    /// Number of elements.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    pub(crate) fn place(self) -> Place<'a, T> {
        self.place
    }

    /// Address of the first element.
    pub(crate) fn address(self) -> u64 {
        match self.place {
            Place::Host(first) => first.addr() as u64,
            Place::Gpu(bytes) => bytes.address(),
        }
    }
}
