//! Global to shared memory: one operand's share of one thread.

use crate::isa::{arithmetic::opaque, cp_async, global, shared};
use crate::kernel::Major;
use crate::kernels::tensor_core::layout::Panel;
use crate::kernels::tensor_core::unroll;
use crate::problem::Operand;

/// An operand as its panel sees it: lines, and the direction along a line.
#[derive(Clone, Copy)]
pub struct Source {
    address: u64,
    /// Bytes between lines.
    line_stride: u64,
    /// Bytes between elements of a line.
    run_stride: u64,
    /// Whether chunks can be copied whole: contiguous, and 16-byte aligned in
    /// address and pitch.
    aligned: bool,
}

impl Source {
    /// An operand whose elements stand `mn_stride` elements apart along M or N
    /// and `k_stride` along K.
    #[inline(always)]
    pub fn new(panel: Panel, operand: &Operand, mn_stride: u64, k_stride: u64) -> Self {
        let (line, run) = match panel.major {
            Major::K => (mn_stride, k_stride),
            Major::Mn => (k_stride, mn_stride),
        };
        let bytes = panel.element_bytes as u64;
        Source {
            address: operand.address,
            line_stride: line * bytes,
            run_stride: run * bytes,
            aligned: run == 1 && (operand.address | (line * bytes)).is_multiple_of(16),
        }
    }
}

/// Copies the blocks of one tile, one after the other along K.
pub struct Copier {
    panel: Panel,
    threads: u32,
    source: Source,
    /// Address of this thread's chunk of the next pass over the next block.
    address: u64,
    /// Offset of its first chunk in the panel.
    offset: u32,
    /// Line and first element of that chunk, in the panel.
    line: u32,
    element: u32,
    /// Elements of the operand from the tile's origin on, along M or N.
    mn_left: u32,
    /// Elements of the operand along K.
    k_size: u32,
}

impl Copier {
    /// The copier of `thread` for the tile that starts at `mn`; the operand
    /// has `mn_size` elements along M or N and `k_size` along K.
    #[inline(always)]
    pub fn new(
        panel: Panel,
        threads: u32,
        thread: u32,
        source: Source,
        mn: u32,
        mn_size: u32,
        k_size: u32,
    ) -> Self {
        let (line, chunk) = panel.first_chunk(thread);
        let element = chunk * panel.chunk_elements();
        let origin = match panel.major {
            Major::K => source.line_stride,
            Major::Mn => source.run_stride,
        };
        Copier {
            panel,
            threads,
            source,
            address: source.address
                + origin * mn as u64
                + source.line_stride * line as u64
                + source.run_stride * element as u64,
            offset: panel.offset(line, chunk),
            line,
            element,
            mn_left: mn_size.saturating_sub(mn),
            k_size,
        }
    }

    /// Whether the next block, which starts at `k`, lies inside the operand and
    /// can be copied in aligned chunks. The same for all threads of the CTA.
    #[inline(always)]
    pub fn is_whole(&self, k: u32) -> bool {
        self.source.aligned
            && self.mn_left >= self.panel.extent
            && k + self.panel.depth <= self.k_size
    }

    /// Moves on to the next block, after all parts of this one.
    #[inline(always)]
    pub fn advance(&mut self) {
        // The passes have moved the address over all lines. That is the next
        // block if lines are counted along K.
        if let Major::K = self.panel.major {
            self.address += self.source.run_stride * self.panel.depth as u64;
            self.address -= self.source.line_stride * self.panel.lines() as u64;
        }
    }

    /// Starts part `part` of `parts` of the next block, if it is whole, and
    /// passes over it in any case. Parts come in order.
    ///
    /// # Safety
    /// `panel` is the address of a panel in shared memory that no thread
    /// reads until it is waited for; the source describes a live allocation.
    #[inline(always)]
    pub unsafe fn start_whole(&mut self, whole: bool, panel: u32, part: u32, parts: u32) {
        let pass_stride = self.source.line_stride * self.panel.pass_lines(self.threads) as u64;
        let passes = self.panel.passes(self.threads);
        unroll!(PASS in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] {
            if PASS < passes && PASS * parts / passes == part {
                // SAFETY: a whole block exists in the operand; the rest is the caller's duty.
                unsafe {
                    let destination = panel + self.offset + PASS * Panel::pass_bytes(self.threads);
                    cp_async::copy_16_if(whole, destination, self.address);
                }
                self.address += pass_stride;
            }
        });
    }

    /// Copies the next block, which starts at `k`, if it is not whole, before
    /// its parts are passed over: clipped to the operand, zeros elsewhere,
    /// element by element where it is not aligned. Nothing past the last block.
    ///
    /// # Safety
    /// As [`Copier::start_whole`].
    #[inline(always)]
    pub unsafe fn copy_edge(&self, whole: bool, k: u32, panel: u32) {
        if whole || k >= self.k_size {
            return;
        }
        let k_left = self.k_size - k;
        let (lines, run) = match self.panel.major {
            Major::K => (self.mn_left, k_left),
            Major::Mn => (k_left, self.mn_left),
        };
        let run = run
            .saturating_sub(self.element)
            .min(self.panel.chunk_elements());
        let (mut line, mut address, mut destination) =
            (self.line, self.address, panel + self.offset);
        while line < self.panel.lines() {
            let elements = if line < lines { run } else { 0 };
            // SAFETY: the first `elements` elements of the chunk lie inside the operand.
            unsafe {
                if self.source.aligned {
                    cp_async::copy_16_clipped(
                        destination,
                        address,
                        elements * self.panel.element_bytes,
                    );
                } else {
                    self.gather(destination, address, elements);
                }
            }
            line += self.panel.pass_lines(self.threads);
            address += self.source.line_stride * self.panel.pass_lines(self.threads) as u64;
            destination += Panel::pass_bytes(self.threads);
        }
    }

    /// One chunk, element by element: `elements` of the operand, then zeros.
    ///
    /// # Safety
    /// `elements` elements exist from `address` on, `run_stride` apart; the
    /// rest as [`Copier::start_whole`].
    #[inline(always)]
    unsafe fn gather(&self, destination: u32, address: u64, elements: u32) {
        let stride = opaque(self.source.run_stride);
        let (mut word, mut address, mut left) = (0, address, elements);
        while word < 4 {
            let mut bits = 0;
            // SAFETY: an element is read only while some are left.
            unsafe {
                if self.panel.element_bytes == 4 {
                    if left > 0 {
                        bits = global::load_u32(address);
                    }
                    left = left.saturating_sub(1);
                    address += stride;
                } else {
                    if left > 0 {
                        bits = global::load_u16(address);
                    }
                    if left > 1 {
                        bits |= global::load_u16(address + stride) << 16;
                    }
                    left = left.saturating_sub(2);
                    address += 2 * stride;
                }
                shared::store_u32(destination + 4 * word, bits);
            }
            word += 1;
        }
    }
}
