//! Global to shared memory: one thread's share of copying one operand.

mod staged;

use crate::dtype::Major;
use crate::tensor_ref::TensorRef;

pub use staged::MAX_STAGED;

use super::layout::Panel;
use crate::isa::{
    cp_async, global,
    hint::{compute_here, compute_here_u64},
    shared,
};
use crate::unroll::unroll;

/// An operand described as its panel lays it out: lines, and elements along a line.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    address: u64,
    /// Bytes between lines.
    line_stride: u64,
    /// Stride between elements of a line, in elements rather than bytes: this
    /// is the kernel parameter itself, so its rare use takes no register.
    run_stride: u64,
    /// Whether chunks can be copied whole: the operand is contiguous, and its
    /// address and pitch are multiples of 16 bytes. Elements in parts are always packed so.
    aligned: bool,
}

impl Source {
    /// An operand whose elements lie `mn_stride` elements apart along M or N
    /// and `k_stride` along K.
    #[inline(always)]
    pub fn new(panel: Panel, operand: &TensorRef, mn_stride: u64, k_stride: u64) -> Self {
        let (line, run) = match panel.major {
            Major::K => (mn_stride, k_stride),
            Major::Mn => (k_stride, mn_stride),
        };
        let bytes = panel.element_bytes as u64;
        Source {
            address: operand.address,
            line_stride: line * bytes,
            run_stride: run,
            aligned: panel.parts > 1
                || run == 1 && (operand.address | (line * bytes)).is_multiple_of(16),
        }
    }
}

/// One of a thread's chunks of a block that may reach past the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Global address of the chunk's first element.
    pub address: u64,
    /// Byte offset of the chunk in the panel.
    pub offset: u32,
    /// Line of the panel.
    pub line: u32,
    /// Lines of the panel that exist in the operand.
    lines: u32,
    /// Elements of the chunk that exist in such a line, counted from the chunk's first.
    run: u32,
}

impl Chunk {
    /// Elements of the chunk that exist, counted from the first; the others are zeros.
    #[inline(always)]
    pub fn elements(&self) -> u32 {
        if self.line < self.lines { self.run } else { 0 }
    }
}

/// Copies the blocks of one tile, one after the other along K.
#[derive(Clone, Debug)]
pub struct Copier {
    panel: Panel,
    threads: u32,
    source: Source,
    /// Bytes from the low parts of the operand to the high parts, if it has parts.
    plane: u64,
    /// Address of this thread's chunk of the next pass over the next block.
    address: u64,
    /// Byte offset of this thread's first chunk in the panel.
    offset: u32,
    thread: u32,
    /// First index of the tile along M or N.
    mn: u32,
    /// Elements of the operand along M or N, and along K.
    mn_size: u32,
    k_size: u32,
    /// Whether blocks are aligned and whole along M or N.
    whole: bool,
    /// Chunks that are copied element by element at once, up to 4: as many as registers allow.
    gathered_at_once: u32,
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
        let bytes = panel.element_bytes as u64;
        let origin = match panel.major {
            Major::K => source.line_stride,
            Major::Mn => source.run_stride * bytes,
        };
        Copier {
            panel,
            threads,
            source,
            plane: source.line_stride * mn_size as u64,
            address: source.address
                + origin * mn as u64
                + source.line_stride * line as u64
                + source.run_stride * bytes * element as u64,
            offset: panel.offset(line, chunk),
            thread,
            mn,
            mn_size,
            k_size,
            whole: source.aligned && mn + panel.extent <= mn_size,
            gathered_at_once: 2,
        }
    }

    /// The same copier, for a kernel whose threads hold `accumulators`.
    #[inline(always)]
    pub fn beside(self, accumulators: u32) -> Self {
        Copier {
            gathered_at_once: if accumulators <= 32 { 4 } else { 2 },
            ..self
        }
    }

    /// Whether the next block, which starts at `k`, lies inside the operand and
    /// can be copied in aligned chunks. All threads of the CTA get the same answer.
    #[inline(always)]
    pub fn is_whole(&self, k: u32) -> bool {
        self.whole && k + self.panel.depth <= self.k_size
    }

    /// Moves on to the next block, after all parts of this one.
    #[inline(always)]
    pub fn advance(&mut self) {
        // The passes have moved the address over all lines. Where lines are counted
        // along K, it is now at the next block.
        if let Major::K = self.panel.major {
            self.address +=
                self.source.run_stride * (self.panel.depth * self.panel.element_bytes) as u64;
            self.address -= self.source.line_stride * self.panel.lines() as u64;
        }
    }

    /// Moves on to the next pass over the block.
    #[inline(always)]
    pub fn next_pass(&mut self) {
        self.address += self.source.line_stride * self.panel.pass_lines(self.threads) as u64;
    }

    /// This thread's first chunk of the next block, which starts at `k`, before
    /// any [`Copier::next_pass`]. Everything is computed anew each time, because
    /// edges are rare and must not hold registers.
    #[inline(always)]
    pub fn first_chunk(&self, k: u32) -> Chunk {
        let (line, chunk) = self.panel.first_chunk(compute_here(self.thread));
        let mn_left = self.mn_size.saturating_sub(compute_here(self.mn));
        let k_left = self.k_size.saturating_sub(k);
        let (lines, run) = match self.panel.major {
            Major::K => (mn_left, k_left),
            Major::Mn => (k_left, mn_left),
        };
        Chunk {
            address: self.address,
            offset: self.offset,
            line,
            lines,
            run: run
                .saturating_sub(chunk * self.panel.chunk_elements())
                .min(self.panel.chunk_elements()),
        }
    }

    /// This thread's chunk of the pass after the pass of `chunk`.
    #[inline(always)]
    pub fn next_chunk(&self, chunk: Chunk) -> Chunk {
        let lines = self.panel.pass_lines(self.threads);
        Chunk {
            address: chunk.address + self.source.line_stride * lines as u64,
            offset: chunk.offset + Panel::pass_bytes(self.threads),
            line: chunk.line + lines,
            ..chunk
        }
    }
}

impl Copier {
    /// Starts part `part` of `parts` of the next block, if the block is whole, and
    /// moves past the part in any case. The caller takes parts in order.
    ///
    /// # Safety
    /// `panel` is the address of a panel in shared memory that no thread
    /// reads until the copies are waited for; the source describes a live allocation.
    #[inline(always)]
    pub unsafe fn start_whole(&mut self, whole: bool, panel: u32, part: u32, parts: u32) {
        let passes = self.panel.passes(self.threads);
        unroll!(INDEX < 16, {
            let pass = INDEX as u32;
            if pass < passes && pass * parts / passes == part {
                // SAFETY: a whole block exists in the operand; the rest is the caller's duty.
                unsafe {
                    let destination = panel + self.offset + pass * Panel::pass_bytes(self.threads);
                    cp_async::copy_16_if(whole, destination, self.address);
                    if self.panel.parts > 1 {
                        let destination = destination + self.panel.bytes();
                        cp_async::copy_16_if(whole, destination, self.address + self.plane);
                    }
                }
                self.next_pass();
            }
        });
    }

    /// Copies the next block, which starts at `k`, if it is not whole: clipped to
    /// the operand, with zeros elsewhere, and element by element where the operand
    /// is not aligned. Past the last block it copies nothing. The caller does this
    /// before it moves past the block's parts.
    ///
    /// # Safety
    /// See [`Copier::start_whole`].
    #[inline(always)]
    pub unsafe fn copy_edge(&self, whole: bool, k: u32, panel: u32) {
        if whole || k >= self.k_size {
            return;
        }
        let lines = self.panel.lines();
        let mut chunk = self.first_chunk(k);
        while chunk.line < lines {
            // SAFETY: the first elements of a chunk lie inside the operand.
            unsafe {
                if self.source.aligned {
                    let bytes = chunk.elements() * self.panel.element_bytes;
                    let destination = panel + chunk.offset;
                    cp_async::copy_16_clipped(destination, chunk.address, bytes);
                    if self.panel.parts > 1 {
                        let destination = destination + self.panel.bytes();
                        let address = chunk.address + self.plane;
                        cp_async::copy_16_clipped(destination, address, bytes);
                    }
                    chunk = self.next_chunk(chunk);
                } else {
                    chunk = self.gather_chunks(panel, chunk);
                }
            }
        }
    }

    /// Copies `gathered_at_once` chunks from `first` on element by element, and returns the
    /// chunk after them. All loads are on their way before the first value is needed: one by
    /// one, they would each take as long as the trip to memory.
    ///
    /// # Safety
    /// See [`Copier::start_whole`].
    #[inline(always)]
    unsafe fn gather_chunks(&self, panel: u32, first: Chunk) -> Chunk {
        let (mut chunks, mut values) = ([first; 5], [[0; 4]; 4]);
        unroll!(INDEX < 4, {
            let chunk = chunks[INDEX];
            if (INDEX as u32) < self.gathered_at_once {
                let is_in_panel = chunk.line < self.panel.lines();
                let elements = if is_in_panel { chunk.elements() } else { 0 };
                // SAFETY: the first `elements` elements of the chunk lie inside the operand.
                values[INDEX] = unsafe { self.gather(chunk.address, elements) };
            }
            chunks[INDEX + 1] = self.next_chunk(chunk);
        });
        unroll!(INDEX < 4, {
            let chunk = chunks[INDEX];
            if (INDEX as u32) < self.gathered_at_once && chunk.line < self.panel.lines() {
                // SAFETY: the chunk lies in the panel.
                unsafe { shared::store_u32x4(panel + chunk.offset, values[INDEX]) };
            }
        });
        chunks[self.gathered_at_once as usize]
    }

    /// The 16 bytes of a chunk, read element by element: `elements` of the operand, then
    /// zeros.
    ///
    /// # Safety
    /// `elements` elements exist from `address` on, `run_stride` apart.
    #[inline(always)]
    unsafe fn gather(&self, address: u64, elements: u32) -> [u32; 4] {
        let stride = compute_here_u64(self.source.run_stride) * self.panel.element_bytes as u64;
        let mut words = [0; 4];
        unroll!(WORD < 4, {
            let (word, halves) = (WORD as u32, 2 * WORD as u32);
            // SAFETY: an element is read only while elements are left.
            unsafe {
                words[WORD] = if self.panel.element_bytes == 4 {
                    global::load_u32_if(word < elements, address + word as u64 * stride)
                } else {
                    let at = address + halves as u64 * stride;
                    global::load_u16_if(halves < elements, at)
                        | global::load_u16_if(halves + 1 < elements, at + stride) << 16
                };
            }
        });
        words
    }
}
