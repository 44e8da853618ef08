//! The memory behind a matrix, on the host or on a GPU.

use crate::device::{Device, Kind};
use crate::element::Element;
use crate::error::Error;
use crate::gpu::buffer::DeviceBuffer;
use crate::host_memory::HostBuffer;
use crate::layout::Layout;

/// An allocation of `len` elements on one device.
#[derive(Debug)]
pub(crate) struct Storage<T> {
    device: Device,
    len: usize,
    memory: Memory<T>,
}

/// Where the elements are.
#[derive(Debug)]
pub(crate) enum Memory<T> {
    /// In the memory of the process.
    Host(HostBuffer<T>),
    /// In the memory of the storage's GPU.
    Gpu(DeviceBuffer),
}

impl<T: Element> Storage<T> {
    /// Allocates zeros for a matrix of `layout`.
    pub(crate) fn zeroed(device: &Device, layout: Layout) -> Result<Self, Error> {
        let len = layout
            .allocation(size_of::<T>())
            .ok_or(Error::SizeOverflow { layout })?;
        let memory = match device.kind() {
            Kind::Cpu => Memory::Host(HostBuffer::zeroed(len)?),
            Kind::Gpu(gpu) => Memory::Gpu(DeviceBuffer::zeroed(gpu, len * size_of::<T>())?),
        };
        Ok(Storage {
            device: device.clone(),
            len,
            memory,
        })
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    /// Number of elements.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn memory(&self) -> &Memory<T> {
        &self.memory
    }

    /// Address of the first element.
    pub(crate) fn address(&self) -> u64 {
        match &self.memory {
            Memory::Host(buffer) => buffer.pointer().addr() as u64,
            Memory::Gpu(buffer) => buffer.address(),
        }
    }
}
