//! [`Candidate`]: the program that the estimate chooses.

use std::time::Duration;

use tilewise::{Device, Element, Output};

use super::products::Products;
use crate::error::Error;
use crate::estimate;
use crate::operands::Operands;
use crate::options::Options;
use crate::program::{Buffer, Part, Program, Work};

/// The steps of a program with their products, before any memory is allocated.
pub(crate) struct Candidate<T, O> {
    pub program: Program,
    pub products: Products<T, O>,
    pub chunks: usize,
    /// The estimated time of a run, and without any copy and any waiting.
    pub estimate: Duration,
    pub without_transfers: Duration,
}

impl<T: Element, O: Output<T>> Candidate<T, O> {
    /// The program with the shortest estimate.
    /// Ranks multiply on the devices that `device_of` gives, by the programs that `program_of` gives
    /// for numbers of chunks.
    pub(crate) fn best<'d>(
        device_of: impl Fn(usize) -> Option<&'d Device>,
        program_of: impl Fn(usize) -> Program,
        options: &Options,
        operands: &Operands,
    ) -> Result<Self, Error> {
        let mut best: Option<Self> = None;
        let candidates = match &options.chunks {
            Some(chunks) => std::slice::from_ref(chunks),
            None => &estimate::CHUNKS,
        };
        for &chunks in candidates {
            let program = program_of(chunks);
            let products = Products::new(&device_of, options, &program, operands)?;
            let estimate =
                |with_transfers| Self::estimate(&program, &products, operands, with_transfers);
            let (with, without) = (estimate(true), estimate(false));
            if best
                .as_ref()
                .is_none_or(|best| estimate::is_better(with, best.estimate))
            {
                best = Some(Candidate {
                    estimate: with,
                    without_transfers: without,
                    program,
                    products,
                    chunks,
                });
            }
        }
        best.ok_or(Error::NoRanks)
    }

    /// The estimated time of the slowest rank, with or without the transfers.
    fn estimate(
        program: &Program,
        products: &Products<T, O>,
        operands: &Operands,
        with_transfers: bool,
    ) -> Duration {
        let row_bytes = |buffer| match buffer {
            Buffer::A { rank } | Buffer::Gathered { rank, .. } => {
                operands.layouts[0][rank].cols * size_of::<T>()
            }
            _ => operands.cols[0] * size_of::<O>(),
        };
        let transfer = |from: &Part, to: &Part| {
            let bytes = (from.rows.len() * row_bytes(from.buffer)) as u64;
            match with_transfers {
                true if from.buffer.rank() == to.buffer.rank() => estimate::local_copy(bytes),
                true => estimate::transfer(bytes),
                false => Duration::ZERO,
            }
        };
        let time = |step: usize| match &program.steps[step].work {
            Work::Start | Work::End => Duration::ZERO,
            Work::Copy { from, to } => transfer(from, to),
            Work::Product { .. } => products.estimate(step),
        };
        estimate::total(&estimate::timeline(program, time))
    }
}
