//! Memsets by the driver, to empty L2 and to poison C.

use crate::error::Error;
use cust::memory::{DeviceCopy, DevicePointer, DeviceSlice};
use cust::stream::Stream;
use tilewise::{Device, Element, Matrix};

/// Sets every byte of a matrix on a GPU, in stream order.
///
/// # Errors
/// The driver refuses.
pub fn set_bytes<T: Element>(
    matrix: &mut Matrix<T>,
    value: u8,
    stream: &Stream,
) -> Result<(), Error> {
    let Some(address) = matrix.device_address() else {
        return Err(Error::Usage(
            "a driver memset needs a matrix on a GPU".to_owned(),
        ));
    };
    let bytes = matrix.rows() * matrix.cols() * size_of::<T>();
    fn pointer<T: DeviceCopy>(address: u64) -> DevicePointer<T> {
        DevicePointer::from_raw(address)
    }
    // SAFETY: the matrix is dense and row-major, so these bytes are its own;
    // the unique borrow and the stream order keep others away from them.
    unsafe {
        DeviceSlice::<u8>::from_raw_parts_mut(pointer(address), bytes)
            .set_8_async(value, stream)?;
    }
    Ok(())
}

/// A buffer that, once written, has pushed everything else out of L2.
pub struct L2Flush {
    buffer: Matrix<f32>,
}

impl L2Flush {
    /// A buffer of twice L2, and at least 256 MiB: its memset then runs long
    /// enough for the host to enqueue the launch behind it, so the time between
    /// the events holds no gap.
    ///
    /// # Errors
    /// No memory for it.
    pub fn new(device: &Device, l2_bytes: usize) -> Result<Self, Error> {
        let bytes = (2 * l2_bytes).max(256 << 20);
        Ok(L2Flush {
            buffer: device.zeros(bytes / 4096, 1024)?,
        })
    }

    /// Writes the buffer, in stream order.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn enqueue(&mut self, stream: &Stream) -> Result<(), Error> {
        set_bytes(&mut self.buffer, 0, stream)
    }
}
