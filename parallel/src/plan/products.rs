//! The products of a program, each a plan of the library.

use std::time::Duration;

use tilewise::{
    CudaStream, Device, Element, Inputs, Layout, MatrixView, MatrixViewMut, Output, PlanInfo,
};

use super::memory::{buffers, layout_of};
use crate::error::Error;
use crate::operands::Operands;
use crate::options::Options;
use crate::program::{Buffer, Part, Program, Work};

/// The plans of the steps that multiply.
#[derive(Debug)]
pub(crate) struct Products<T, O> {
    plans: Vec<Option<tilewise::Plan<T, O>>>,
}

impl<T: Element, O: Output<T>> Products<T, O> {
    /// Plans the products of `program`, on the device of each rank. Ranks without a device are
    /// left out.
    pub(crate) fn new<'d>(
        device_of: impl Fn(usize) -> Option<&'d Device>,
        options: &Options,
        program: &Program,
        operands: &Operands,
    ) -> Result<Self, Error> {
        let buffers = buffers(program);
        // The layout of some rows, and a power of two that divides their address.
        let place = |part: &Part, size: usize| {
            let of_caller = |index: usize, rank: usize| {
                (
                    operands.layouts[index][rank],
                    operands.alignments[index][rank],
                )
            };
            let (whole, alignment) = match part.buffer {
                Buffer::A { rank } => of_caller(0, rank),
                Buffer::B { rank } => of_caller(1, rank),
                Buffer::C { rank } => of_caller(2, rank),
                Buffer::Gathered { .. }
                | Buffer::Made { .. }
                | Buffer::Received { .. }
                | Buffer::Finished { .. } => {
                    let rows = buffers.get(&part.buffer).copied().unwrap_or(0);
                    let layout = layout_of(operands, part.buffer, rows, size);
                    (layout, Operands::ALIGNMENT)
                }
            };
            let rows = part.rows.len();
            let first = part.rows.start * whole.row_stride * size;
            (Layout { rows, ..whole }, alignment | first as u64)
        };
        let mut plans = Vec::new();
        for step in &program.steps {
            let (
                Some(device),
                Work::Product {
                    a: of_a,
                    source,
                    c: of_c,
                    is_last,
                },
            ) = (device_of(step.rank), &step.work)
            else {
                plans.push(None);
                continue;
            };
            let of_b = Part::new(
                Buffer::B { rank: step.rank },
                0..operands.layouts[1][step.rank].rows,
            );
            let (a, a_bits) = place(of_a, size_of::<T>());
            let (b, b_bits) = place(&of_b, size_of::<T>());
            let (c, c_bits) = place(of_c, size_of::<O>());
            let alignment = 1 << (a_bits | b_bits | c_bits).trailing_zeros();
            let gemm = options
                .gemm(device, source.is_some(), *is_last)
                .alignment(alignment);
            plans.push(Some(gemm.plan_for(a, b, c)?));
        }
        Ok(Products { plans })
    }

    /// The estimated time of the product of `step`.
    pub(crate) fn estimate(&self, step: usize) -> Duration {
        match self.plans[step].as_ref().map(tilewise::Plan::info) {
            Some(PlanInfo::Gpu(info)) => info.estimate,
            _ => Duration::ZERO,
        }
    }

    /// Computes the product of `step`.
    pub(crate) fn run(
        &mut self,
        step: usize,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        if let Some(plan) = &mut self.plans[step] {
            plan.run_with(a, b, c, inputs)?;
        }
        Ok(())
    }

    /// Enqueues the product of `step` on `stream`, or on the library's own.
    ///
    /// # Safety
    /// Those of [`tilewise::Plan::run_on`].
    pub(crate) unsafe fn run_on(
        &mut self,
        stream: Option<CudaStream>,
        step: usize,
        a: MatrixView<T>,
        b: MatrixView<T>,
        c: MatrixViewMut<O>,
        inputs: &Inputs<O>,
    ) -> Result<(), Error> {
        match (&mut self.plans[step], stream) {
            // SAFETY: the caller's duty.
            (Some(plan), Some(stream)) => unsafe { plan.run_on(stream, a, b, c, inputs)? },
            _ => self.run(step, a, b, c, inputs)?,
        }
        Ok(())
    }
}
