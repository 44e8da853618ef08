//! Runs a case on an emulated GPU, through the library, and compares with f64.

use gpu_kernels::{DType, Family};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::emulator::{self, Counts, EmulatedGpu};
use tilewise::{Device, Element, Gemm, Output, bf16, f16, oracle};

use crate::case::{Case, Values};
use crate::operand::Placed;

/// The outcome of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The counts of the launch.
    pub counts: Counts,
    /// Largest difference to f64 of an element of C.
    pub largest_error: f64,
    /// C, row by row, as stored.
    pub c: Vec<u8>,
}

/// Why a case failed, or could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library refused it, or the kernel broke a rule.
    #[error(transparent)]
    Library(#[from] tilewise::Error),
    /// An element of C is wrong.
    #[error("C({row}, {col}) is {found}, and should be {expected}: {excess:.3} times the bound")]
    Wrong {
        /// Row of the element.
        row: usize,
        /// Column of the element.
        col: usize,
        /// The value that the kernel computed.
        found: f64,
        /// The product in f64.
        expected: f64,
        /// Error divided by the bound on rounding errors.
        excess: f64,
    },
    /// The kernel overwrote a byte between the elements of C.
    #[error("byte {offset} of C's allocation is between its elements, and was overwritten")]
    Stray {
        /// Bytes from the start of the allocation.
        offset: u64,
    },
}

/// Runs `case` on `gpu`.
///
/// # Errors
/// [`Error`].
pub fn run(case: &Case, gpu: &EmulatedGpu) -> Result<Outcome, Error> {
    let input = case.kernel().input;
    match (input, case.output.dtype(input)) {
        (DType::F16, DType::F16) => run_as::<f16, f16>(case, gpu),
        (DType::F16, DType::Bf16) => run_as::<f16, bf16>(case, gpu),
        (DType::F16, _) => run_as::<f16, f32>(case, gpu),
        (DType::Bf16, DType::F16) => run_as::<bf16, f16>(case, gpu),
        (DType::Bf16, DType::Bf16) => run_as::<bf16, bf16>(case, gpu),
        (DType::Bf16, _) => run_as::<bf16, f32>(case, gpu),
        (_, DType::F16) => run_as::<f32, f16>(case, gpu),
        (_, DType::Bf16) => run_as::<f32, bf16>(case, gpu),
        (_, _) => run_as::<f32, f32>(case, gpu),
    }
}

fn run_as<T: Element, O: Output<T>>(case: &Case, gpu: &EmulatedGpu) -> Result<Outcome, Error> {
    if case.kernel().family == Family::Pack {
        return run_copy::<T>(case, gpu);
    }
    let device = Device::emulated(gpu.clone())?;
    let [a_shape, b_shape] = shapes(case);
    let [a_values, b_values] = operands::<T>(case);
    let a = Placed::holding(&device, case.a, a_shape, &a_values)?;
    let b = Placed::holding(&device, case.b, b_shape, &b_values)?;
    let mut c = Placed::<O>::of_sentinels(&device, case.c, (case.m, case.n))?;
    let gemm = Gemm::new(&device).precision(case.kernel().input.into());
    let (a, b) = (a.view()?, b.view()?);
    let mut plan = emulator::plan(&gemm, &device, &case.choice, a, b, c.view_mut()?)?;
    plan.run(a, b, c.view_mut()?)?;
    let found = outcome(&device, &c)?;

    let cpu = Device::cpu();
    let (m, n, k) = (case.m as usize, case.n as usize, case.k as usize);
    let (a, b) = (
        cpu.from_slice(&a_values, m, k)?,
        cpu.from_slice(&b_values, k, n)?,
    );
    let product = oracle::product(a.view(), b.view())?;
    let found_values: &[O] = bytemuck::cast_slice(&found.c);
    Ok(Outcome {
        largest_error: compare(&product, found_values, case.kernel().input, n)?,
        ..found
    })
}

/// A kernel that packs copies A to C.
fn run_copy<T: Element>(case: &Case, gpu: &EmulatedGpu) -> Result<Outcome, Error> {
    let device = Device::emulated(gpu.clone())?;
    let [shape, _] = shapes(case);
    let [values, _] = operands::<T>(case);
    let a = Placed::holding(&device, case.a, shape, &values)?;
    let mut c = Placed::<T>::of_sentinels(&device, case.c, shape)?;
    emulator::copy(case.kernel(), a.view()?, c.view_mut()?)?;
    let found = outcome(&device, &c)?;
    let found_values: &[T] = bytemuck::cast_slice(&found.c);
    let cols = case.n as usize;
    Ok(Outcome {
        largest_error: compare_copies(&values, found_values, cols)?,
        ..found
    })
}

/// The counts of the last launch on `device`, and the contents of C.
fn outcome<O: Element>(device: &Device, c: &Placed<O>) -> Result<Outcome, Error> {
    if let Some(offset) = c.stray()? {
        return Err(Error::Stray { offset });
    }
    Ok(Outcome {
        counts: emulator::counts(device).unwrap_or_default(),
        largest_error: 0.0,
        c: bytemuck::cast_slice(&c.view()?.to_vec()?).to_vec(),
    })
}

/// Rows and columns of A and of B.
fn shapes(case: &Case) -> [(u32, u32); 2] {
    // A kernel that packs copies A to C, and has neither B nor K.
    let b = match case.kernel().family {
        Family::Pack => (0, 0),
        _ => (case.k, case.n),
    };
    [(case.m, case.a_columns()), b]
}

/// The elements of A and B of `case`, row by row. `T` is the type that its kernel reads.
pub fn operands<T: Element>(case: &Case) -> [Vec<T>; 2] {
    let mut random = StdRng::seed_from_u64(case.seed);
    shapes(case).map(|(rows, cols)| {
        (0..u64::from(rows) * u64::from(cols))
            .map(|_| {
                let value = match case.values {
                    Values::Uniform => random.random_range(-1.0..1.0),
                    Values::Integers => f64::from(random.random_range(-4..=4)),
                };
                T::from_f64(value)
            })
            .collect()
    })
}

/// The largest error, if every element is within its bound.
fn compare<O: Element>(
    product: &oracle::Product,
    found: &[O],
    input: DType,
    n: usize,
) -> Result<f64, Error> {
    if let Some((index, excess)) = product.worst(found, input) {
        return Err(Error::Wrong {
            row: index / n,
            col: index % n,
            found: found[index].to_f64(),
            expected: product.values[index],
            excess,
        });
    }
    let errors = found.iter().zip(&product.values);
    Ok(errors.fold(0.0, |largest, (found, expected)| {
        f64::max(largest, (found.to_f64() - expected).abs())
    }))
}

/// [`compare`] for copies, which are exact.
fn compare_copies<T: Element>(values: &[T], found: &[T], n: usize) -> Result<f64, Error> {
    for (index, (value, found)) in values.iter().zip(found).enumerate() {
        let (expected, found) = (value.to_f64(), found.to_f64());
        if found != expected {
            return Err(Error::Wrong {
                row: index / n,
                col: index % n,
                found,
                expected,
                excess: f64::INFINITY,
            });
        }
    }
    Ok(0.0)
}
