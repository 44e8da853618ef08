//! Copies through registers, for GPUs without `cp.async`: the loads of a block, and later
//! its stores to shared memory.

use crate::dtype::Major;
use crate::isa::{global, shared};
use crate::unroll::unroll;

use super::{Chunk, Copier, Panel};

/// Chunks of a panel that a thread has in registers, at most.
pub const MAX_STAGED: usize = 4;

/// A thread's chunks of one block, between their loads and their stores.
pub type StagedChunks = [[u32; 4]; MAX_STAGED];

impl Copier {
    /// Whether each chunk of the block that starts at `k` exists whole or not at all, and is
    /// aligned. All threads of the CTA get the same answer.
    #[inline(always)]
    pub fn is_in_whole_chunks(&self, k: u32) -> bool {
        let (run, left) = match self.panel.major {
            Major::K => (self.panel.depth, self.k_size.saturating_sub(k)),
            Major::Mn => (self.panel.extent, self.mn_size.saturating_sub(self.mn)),
        };
        let is_cut = left < run && !left.is_multiple_of(self.panel.chunk_elements());
        self.source.aligned && !is_cut
    }

    /// Starts the loads of the next block, which starts at `k`, if the block
    /// [is in whole chunks](Copier::is_in_whole_chunks); chunks past the operand are zeros.
    /// Moves past all parts of the block in any case.
    ///
    /// # Safety
    /// The source describes a live allocation; `in_whole_chunks` is the block's.
    #[inline(always)]
    pub unsafe fn load_chunks(&mut self, in_whole_chunks: bool, k: u32) -> StagedChunks {
        let mut chunks = [[0; 4]; MAX_STAGED];
        let first = self.first_chunk(k);
        unroll!(PASS < 4, {
            let pass = PASS as u32;
            if pass < self.panel.passes(self.threads) {
                let line = first.line + pass * self.panel.pass_lines(self.threads);
                let chunk = Chunk { line, ..first };
                let exists = in_whole_chunks && chunk.elements() > 0;
                // SAFETY: the chunk lies inside the operand, and is aligned.
                chunks[PASS] = unsafe { global::load_u32x4_if(exists, self.address) };
                self.next_pass();
            }
        });
        chunks
    }

    /// Stores the chunks of a block in the panel at `panel`, if the block is in whole chunks.
    ///
    /// # Safety
    /// `panel` is the address of a panel in shared memory that no thread reads before the
    /// next barrier.
    #[inline(always)]
    pub unsafe fn store_chunks(&self, in_whole_chunks: bool, chunks: &StagedChunks, panel: u32) {
        unroll!(PASS < 4, {
            let pass = PASS as u32;
            if pass < self.panel.passes(self.threads) {
                let address = panel + self.offset + pass * Panel::pass_bytes(self.threads);
                // SAFETY: the chunk lies in the panel.
                unsafe { shared::store_u32x4_if(in_whole_chunks, address, chunks[PASS]) };
            }
        });
    }

    /// Copies the next block, which starts at `k`, element by element, if the block is not in
    /// whole chunks. Past the last block it copies nothing. The caller does this before it
    /// moves past the block's parts.
    ///
    /// # Safety
    /// See [`Copier::store_chunks`]; the source describes a live allocation.
    #[inline(always)]
    pub unsafe fn gather_block(&self, in_whole_chunks: bool, k: u32, panel: u32) {
        if in_whole_chunks || k >= self.k_size {
            return;
        }
        let mut chunk = self.first_chunk(k);
        while chunk.line < self.panel.lines() {
            // SAFETY: the first elements of a chunk lie inside the operand.
            chunk = unsafe { self.gather_chunks(panel, chunk) };
        }
    }
}
