//! [`Group`]: the devices of the ranks.

use tilewise::{Device, Element, MatrixView, MatrixViewMut, Output};

use crate::error::Error;
use crate::operands::Operands;
use crate::options::Options;
use crate::plan::Plan;
use crate::program::Operation;
use crate::ranks::Ranks;

/// The devices that work together, one for each rank: GPUs of one host, with access to each
/// other's memory; or CPUs or emulated GPUs, for tests. A device may be several ranks.
///
/// This is a cheap handle. All methods plan an operation of the operands' layouts; the plan then
/// runs on any operands of these layouts. Operands are lists with one matrix for each rank, in
/// that rank's memory. The matrices that ranks copy (A in [`Group::all_gather_matmul`], C in
/// [`Group::matmul_all_reduce`]) have contiguous rows or contiguous columns, and are matrices of
/// the library or memory that the driver allocated with `cuMemAlloc` (as PyTorch does), or that
/// the other GPUs have been given access to.
#[derive(Clone, Debug)]
pub struct Group(Ranks);

impl Group {
    /// A group of `devices`; rank r is `devices[r]`.
    ///
    /// # Errors
    /// [`Error::NoRanks`], [`Error::MixedDevices`], [`Error::NoPeerAccess`] and
    /// [`Error::Driver`].
    pub fn new(devices: &[Device]) -> Result<Self, Error> {
        Ranks::open(devices).map(Group)
    }

    /// The device of each rank.
    pub fn devices(&self) -> &[Device] {
        self.0.devices()
    }

    /// C = A·B with A split along M and B along N: A is `a[0]` above `a[1]` and so on, each
    /// Mᵣ×K; `b[r]` is K×Nᵣ; `c[r]` becomes M×Nᵣ, all rows of the columns of rank r. (A
    /// column-parallel layer: all-gather, then GEMM.)
    ///
    /// # Errors
    /// [`Error::Count`] and [`Error::Operand`] for operands that do not fit; [`Error::Capturing`];
    /// errors of the library.
    pub fn all_gather_matmul<T: Element, O: Output<T>>(
        &self,
        options: &Options,
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &mut [MatrixViewMut<O>],
    ) -> Result<Plan<T, O>, Error> {
        self.plan(Operation::AllGather, options, a, b, c)
    }

    /// C = Σ `a[r]`·`b[r]`, with the sum over the ranks and its rows split among them: `a[r]` is
    /// M×Kᵣ, `b[r]` Kᵣ×N, and `c[r]` becomes the Mᵣ×N rows of C that belong to rank r. (A
    /// row-parallel layer: GEMM, then reduce-scatter.)
    ///
    /// # Errors
    /// Those of [`Group::all_gather_matmul`].
    pub fn matmul_reduce_scatter<T: Element, O: Output<T>>(
        &self,
        options: &Options,
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &mut [MatrixViewMut<O>],
    ) -> Result<Plan<T, O>, Error> {
        self.plan(Operation::ReduceScatter, options, a, b, c)
    }

    /// C = Σ `a[r]`·`b[r]` as in [`Group::matmul_reduce_scatter`], but every `c[r]` becomes all
    /// M×N of C. (GEMM, then all-reduce.)
    ///
    /// # Errors
    /// Those of [`Group::all_gather_matmul`].
    pub fn matmul_all_reduce<T: Element, O: Output<T>>(
        &self,
        options: &Options,
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &mut [MatrixViewMut<O>],
    ) -> Result<Plan<T, O>, Error> {
        self.plan(Operation::AllReduce, options, a, b, c)
    }

    /// The operation of this name: for programs that choose it when they run.
    ///
    /// # Errors
    /// Those of [`Group::all_gather_matmul`].
    pub fn plan<T: Element, O: Output<T>>(
        &self,
        operation: Operation,
        options: &Options,
        a: &[MatrixView<T>],
        b: &[MatrixView<T>],
        c: &mut [MatrixViewMut<O>],
    ) -> Result<Plan<T, O>, Error> {
        let operands = Operands::new(operation, self.devices(), a, b, c)?;
        self.0.refuse_capture()?;
        Plan::new(&self.0, options, operands)
    }
}
