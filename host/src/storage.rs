//! The memory that a matrix owns, on the host or on a GPU.

use std::sync::Arc;

use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::Error;
use crate::gpu::backend::Streams;
use crate::gpu::buffer::DeviceBuffer;
use crate::gpu::opened::Gpu;
use crate::host_memory::HostBuffer;
use crate::layout::Layout;
use crate::memory::{Memory, Place};

/// An allocation of `len` elements on one device.
#[derive(Debug)]
pub(crate) struct Storage<T> {
    device: Device,
    len: usize,
    buffer: Buffer<T>,
}

/// The owner of the elements.
#[derive(Debug)]
enum Buffer<T> {
    /// In the memory of the process.
    Host(HostBuffer<T>),
    /// In the memory of the storage's GPU.
    Gpu(DeviceBuffer),
}

impl<T: Element> Storage<T> {
    /// Allocates zeros for a matrix of `layout`.
    pub(crate) fn zeroed(device: &Device, layout: Layout) -> Result<Self, Error> {
        Storage::allocate(device, layout, DeviceBuffer::zeroed)
    }

    /// Allocates memory for a matrix of `layout`: undefined on a GPU, zeros on the CPU.
    pub(crate) fn unwritten(device: &Device, layout: Layout) -> Result<Self, Error> {
        Storage::allocate(device, layout, |gpu, bytes| {
            DeviceBuffer::undefined(gpu, bytes, Streams::Own)
        })
    }

    /// Allocates memory for a matrix of `layout`, on a GPU by `on_gpu`.
    fn allocate(
        device: &Device,
        layout: Layout,
        on_gpu: impl FnOnce(&Arc<Gpu>, usize) -> Result<DeviceBuffer, Error>,
    ) -> Result<Self, Error> {
        let len = layout
            .allocation(size_of::<T>())
            .ok_or(Error::SizeOverflow { layout })?;
        let buffer = match device.kind() {
            Kind::Cpu => Buffer::Host(HostBuffer::zeroed(len)?),
            Kind::Gpu(gpu) => Buffer::Gpu(on_gpu(gpu, len * size_of::<T>())?),
        };
        Ok(Storage {
            device: device.clone(),
            len,
            buffer,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// The elements.
    pub(crate) fn memory(&self) -> Memory<'_, T> {
        let place = match &self.buffer {
            Buffer::Host(buffer) => Place::Host(buffer.pointer()),
            Buffer::Gpu(buffer) => Place::Gpu(buffer.all()),
        };
        Memory::new(&self.device, self.len, place)
    }
}
