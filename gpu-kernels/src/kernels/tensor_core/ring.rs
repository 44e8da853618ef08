//! The ring of stages in shared memory that `cp.async` fills.

use core::marker::PhantomData;

use crate::isa::{cp_async, thread};

use super::copy::Copier;
use super::main_loop::Blocking;

/// One tile's copies of both operands, STAGES − 1 blocks ahead of the block that is multiplied.
pub struct Ring<S, const STAGES: u32> {
    a: Copier,
    b: Copier,
    base: u32,
    /// The stage that is filled next.
    write: u32,
    /// The stage that is read.
    read: u32,
    blocking: PhantomData<S>,
}

/// Whether the next block is whole, in A and in B.
pub type Whole = [bool; 2];

impl<S: Blocking, const STAGES: u32> Ring<S, STAGES> {
    /// Starts the copies of all stages but one, and waits for the first.
    ///
    /// # Safety
    /// All threads of the CTA execute it; `base` is the address of `STAGES` stages of shared
    /// memory that no thread reads; the copiers describe live operands.
    #[inline(always)]
    pub unsafe fn fill(a: Copier, b: Copier, base: u32) -> Self {
        let mut ring = Ring {
            a,
            b,
            base,
            write: base,
            read: base,
            blocking: PhantomData,
        };
        let block_k = S::A_PANEL.depth;
        let mut copied = 0;
        // SAFETY: the stages are free; the rest is the caller's duty.
        unsafe {
            while copied < (STAGES - 1) * block_k {
                let whole = ring.copy_edges(copied);
                ring.start_whole(whole, 0, 1);
                cp_async::commit_group();
                ring.a.advance();
                ring.b.advance();
                ring.write += S::STAGE_BYTES;
                copied += block_k;
            }
            cp_async::wait_for_oldest::<STAGES>();
            thread::sync_cta();
        }
        ring
    }

    /// Addresses of the panels of A and of B that are read.
    #[inline(always)]
    pub fn panels(&self) -> [u32; 2] {
        [self.read, self.read + S::A_PANEL.bytes_of_parts()]
    }

    /// Copies the next block, which starts at `k`, where it is not whole.
    ///
    /// # Safety
    /// No thread reads the stage that is filled next; the operands are live.
    #[inline(always)]
    pub unsafe fn copy_edges(&self, k: u32) -> Whole {
        let whole = [self.a.is_whole(k), self.b.is_whole(k)];
        // SAFETY: the caller's duty.
        unsafe {
            self.a.copy_edge(whole[0], k, self.write);
            let b_panel = self.write + S::A_PANEL.bytes_of_parts();
            self.b.copy_edge(whole[1], k, b_panel);
        }
        whole
    }

    /// Starts part `part` of `parts` of the next block where it is whole. The caller takes the
    /// parts in order, after [`Ring::copy_edges`].
    ///
    /// # Safety
    /// See [`Ring::copy_edges`].
    #[inline(always)]
    pub unsafe fn start_whole(&mut self, whole: Whole, part: u32, parts: u32) {
        // SAFETY: the caller's duty.
        unsafe {
            self.a.start_whole(whole[0], self.write, part, parts);
            let b_panel = self.write + S::A_PANEL.bytes_of_parts();
            self.b.start_whole(whole[1], b_panel, part, parts);
        }
    }

    /// Waits for the stage after the one that is read, which is then the one that is read.
    ///
    /// # Safety
    /// All threads of the CTA execute it, after all parts of the next block.
    #[inline(always)]
    pub unsafe fn wait_for_next(&mut self) {
        cp_async::commit_group();
        cp_async::wait_for_oldest::<STAGES>();
        // SAFETY: the caller's duty.
        unsafe { thread::sync_cta() };
        self.read = self.after(self.read);
    }

    /// Moves on to the block after the next one, and to its stage.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.a.advance();
        self.b.advance();
        self.write = self.after(self.write);
    }

    /// Waits for all copies and all threads, so that the memory can be used for something else.
    ///
    /// # Safety
    /// All threads of the CTA execute it.
    #[inline(always)]
    pub unsafe fn finish(&self) {
        cp_async::wait_all();
        // SAFETY: the caller's duty.
        unsafe { thread::sync_cta() };
    }

    #[inline(always)]
    fn after(&self, stage: u32) -> u32 {
        if stage + S::STAGE_BYTES < self.base + STAGES * S::STAGE_BYTES {
            stage + S::STAGE_BYTES
        } else {
            self.base
        }
    }
}
