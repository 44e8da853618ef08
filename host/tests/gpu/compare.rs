//! Compares buffers on the device, which takes microseconds; a hundred copies back to the
//! host would take seconds.

use std::ptr;

use tilewise::{Device, Element, Error, Matrix};

use crate::driver::{self, Module, sys};

/// Adds to `differences` how many of the 16-bit `words` of `x` and `y` differ.
/// The library's kernels multiply or copy, so this one is written out, for the
/// oldest target it supports.
const PTX: &str = "
.version 8.0
.target sm_75
.address_size 64

.visible .entry compare(
    .param .u64 x, .param .u64 y, .param .u64 words, .param .u64 differences)
{
    .reg .pred %done, %differ;
    .reg .b16 %word_x, %word_y;
    .reg .b32 %cta, %ctas, %threads, %thread;
    .reg .b64 %id, %step, %at_x, %at_y, %x, %y, %words, %differences;

    ld.param.u64 %x, [x];
    ld.param.u64 %y, [y];
    ld.param.u64 %words, [words];
    ld.param.u64 %differences, [differences];
    mov.u32 %cta, %ctaid.x;
    mov.u32 %ctas, %nctaid.x;
    mov.u32 %threads, %ntid.x;
    mov.u32 %thread, %tid.x;
    cvt.u64.u32 %id, %thread;
    mad.wide.u32 %id, %cta, %threads, %id;
    mul.wide.u32 %step, %ctas, %threads;
next:
    setp.ge.u64 %done, %id, %words;
    @%done bra end;
    shl.b64 %at_x, %id, 1;
    add.u64 %at_y, %y, %at_x;
    add.u64 %at_x, %x, %at_x;
    ld.global.b16 %word_x, [%at_x];
    ld.global.b16 %word_y, [%at_y];
    setp.ne.b16 %differ, %word_x, %word_y;
    @%differ red.global.add.u32 [%differences], 1;
    add.u64 %id, %id, %step;
    bra next;
end:
    ret;
}
";

/// CTAs and threads of each; every thread strides over the words.
const GRID: (u32, u32) = (512, 256);

/// Counts differences between buffers of one device.
pub struct Comparer {
    device: Device,
    module: Module,
    /// The count: the 32 bits of one `f32` matrix.
    differences: Matrix<f32>,
}

impl Comparer {
    /// For matrices on `device`, a GPU.
    pub fn new(device: &Device) -> Result<Self, Error> {
        Ok(Comparer {
            device: device.clone(),
            module: Module::load(device, PTX)?,
            differences: device.zeros(1, 1)?,
        })
    }

    /// Enqueues a comparison of two dense matrices of one shape, bit by bit.
    pub fn compare<T: Element>(&self, x: &Matrix<T>, y: &Matrix<T>) -> Result<(), Error> {
        assert_eq!((x.rows(), x.cols()), (y.rows(), y.cols()));
        let (x, y, bytes) = (address(x), address(y), bytes(x));
        let words = (bytes / size_of::<u16>()) as u64;
        let mut values = [x, y, words, address(&self.differences)];
        let mut params = values.each_mut().map(|value| ptr::from_mut(value).cast());
        // SAFETY: `compare` takes four 64-bit values and reads that many words
        // of each matrix; both are on this device, and freed behind the stream.
        unsafe { (self.module).launch(&self.device, "compare", GRID, &mut params) }
    }

    /// Words that differed in all comparisons so far. Waits for them.
    pub fn differences(&self) -> Result<u32, Error> {
        Ok(self.differences.to_vec()?[0].to_bits())
    }
}

/// Enqueues a copy of all of `from` to `to`: dense matrices of one shape, on one GPU.
pub fn copy<T: Element>(from: &Matrix<T>, to: &mut Matrix<T>) -> Result<(), Error> {
    assert_eq!((from.rows(), from.cols()), (to.rows(), to.cols()));
    let stream = driver::stream(from.device());
    from.device().make_current()?;
    // SAFETY: both have that many bytes, and are freed behind the stream.
    driver::check("cuMemcpyDtoDAsync", unsafe {
        sys::cuMemcpyDtoDAsync_v2(address(to), address(from), bytes(from), stream)
    })
}

fn address<T: Element>(matrix: &Matrix<T>) -> u64 {
    matrix.device_address().expect("the matrix is on a GPU")
}

fn bytes<T: Element>(matrix: &Matrix<T>) -> usize {
    matrix.rows() * matrix.cols() * size_of::<T>()
}
