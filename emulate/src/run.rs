//! Runs a case, as the library would on a GPU, and compares with f64.

use gpu_kernels::{DType, Family, GemmParams, OutputType};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise::select::{self, Problem};
use tilewise::tma::{self, GlobalTensor};
use tilewise::{Device, Element, bf16, f16, oracle};
use tilewise_emulator::semantics::convert::tf32_from_f32;
use tilewise_emulator::semantics::swizzle::Swizzle;
use tilewise_emulator::semantics::tensor_map::{MapError, TensorMap};
use tilewise_emulator::{Counts, Grid, Memory, NoSuchMemory, Options};

use crate::case::{self, Case, Values};
use crate::operand::Placed;

/// What came of a case.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What the launch did.
    pub counts: Counts,
    /// CTAs launched.
    pub ctas: u32,
    /// Largest difference to f64 of an element of C.
    pub largest_error: f64,
    /// C, row by row, as stored.
    pub c: Vec<u8>,
}

/// Why a case failed, or could not be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel cannot run the problem.
    #[error("{kernel} cannot run {operand}: {reason}")]
    Operand {
        /// The kernel.
        kernel: &'static str,
        /// `A`, `B` or `C`.
        operand: &'static str,
        /// Why.
        reason: String,
    },
    /// The kernel broke a rule.
    #[error(transparent)]
    Emulator(#[from] tilewise_emulator::Error),
    /// An element of C is wrong.
    #[error("C({row}, {col}) is {found}, and should be {expected}: {excess:.3} times the bound")]
    Wrong {
        /// Its row.
        row: usize,
        /// Its column.
        col: usize,
        /// What the kernel computed.
        found: f64,
        /// The product in f64.
        expected: f64,
        /// Error over what rounding may do.
        excess: f64,
    },
    /// Something between the elements of C was overwritten.
    #[error("byte {offset} of C's allocation is between its elements, and was overwritten")]
    Stray {
        /// Bytes from the start of the allocation.
        offset: u64,
    },
    /// A tensor map cannot be made.
    #[error(transparent)]
    Map(#[from] MapError),
    /// The oracle failed.
    #[error(transparent)]
    Library(#[from] tilewise::Error),
    /// Emulated memory is not where it should be.
    #[error(transparent)]
    Memory(#[from] NoSuchMemory),
}

/// Runs `case`.
///
/// # Errors
/// [`Error`].
pub fn run(case: &Case, options: &Options) -> Result<Outcome, Error> {
    run_watched(case, options, &|_| {})
}

/// As [`run`]; `ended` is told of CTAs that have ended, as
/// [`tilewise_emulator::launch_watched`] does.
///
/// # Errors
/// [`Error`].
pub fn run_watched(
    case: &Case,
    options: &Options,
    ended: &(dyn Fn(u32) + Sync),
) -> Result<Outcome, Error> {
    match case.kernel.input {
        DType::F16 => run_as::<f16>(case, options, ended),
        DType::Bf16 => run_as::<bf16>(case, options, ended),
        DType::F32 | DType::Tf32 => run_as::<f32>(case, options, ended),
    }
}

fn run_as<T: Element>(
    case: &Case,
    options: &Options,
    ended: &(dyn Fn(u32) + Sync),
) -> Result<Outcome, Error> {
    let Case {
        kernel, m, n, k, ..
    } = *case;
    let [a_shape, b_shape] = shapes(case);
    let [a_values, b_values] = operands::<T>(case);

    let mut memory = Memory::new();
    let input_bytes = kernel.input.bytes();
    let output = match case.output {
        OutputType::Input => T::DTYPE,
        OutputType::F32 => DType::F32,
    };
    let a = Placed::allocate(&mut memory, case.a, a_shape, input_bytes);
    let b = Placed::allocate(&mut memory, case.b, b_shape, input_bytes);
    let c = Placed::allocate(&mut memory, case.c, (m, n), output.bytes());
    a.upload(&memory, bytemuck::cast_slice(&a_values))?;
    b.upload(&memory, bytemuck::cast_slice(&b_values))?;
    c.fill(&memory)?;

    let problem = Problem {
        m,
        n,
        k,
        input: kernel.input,
        output: case.output,
        a: a.strides(),
        b: b.strides(),
        c: c.strides(),
    };
    let [a_operand, b_operand, c_operand] = [&a, &b, &c].map(Placed::operand);
    let ctas = select::ctas(&case.choice(), case.resident);
    let maps = match kernel.family {
        Family::Hopper => Some(tensor_maps(
            case,
            &problem,
            [a_operand, b_operand, c_operand].map(|operand| operand.address),
        )?),
        _ => None,
    };
    let mut params = GemmParams {
        a: a_operand,
        b: b_operand,
        c: c_operand,
        tensor_maps: 0,
        workspace: 0,
        m,
        n,
        k,
        output: case.output,
        order: case.order,
        schedule: case.schedule,
        store_by_tma: 0,
        sharers: case.sharers,
    };
    if let Some(maps) = maps {
        params.store_by_tma = maps[2].is_some().into();
        params.tensor_maps = memory.allocate(3 * 128);
        for (index, map) in maps.into_iter().enumerate() {
            if let Some(map) = map {
                let place = params.tensor_maps + 128 * index as u64;
                memory.write(place, &map.encode()?)?;
            }
        }
    }
    if kernel.stream_k_bytes > 0 {
        let slot = u64::from(kernel.stream_k_bytes);
        let bytes = u64::from(case.sharers) * slot;
        params.workspace = memory.allocate(bytes);
        // All of it is zero on a GPU; the kernel may count on the flags alone.
        for sharer in 1..=u64::from(case.sharers) {
            memory.write(params.workspace + sharer * slot - 128, &[0; 128])?;
        }
    }

    let function = case::function(&kernel).ok_or_else(|| Error::Operand {
        kernel: kernel.name,
        operand: "anything",
        reason: "no such entry point".into(),
    })?;
    // SAFETY: launched as `INFO` says, with parameters that describe emulated
    // allocations, which every access is looked up in.
    let body = || unsafe { function(&params) };
    let grid = Grid {
        kernel: kernel.name,
        ctas,
        threads: kernel.threads,
        ctas_per_cluster: kernel.cluster.ctas(),
        shared_bytes: kernel.shared_bytes,
        body: &body,
    };
    let counts = tilewise_emulator::launch_watched(&mut memory, &grid, options, ended)?;

    if let Some(offset) = c.strays(&memory)? {
        return Err(Error::Stray { offset });
    }
    let found = c.download(&memory)?;
    let n = n as usize;
    let largest_error = if kernel.family == Family::Pack {
        compare_copies(&a_values, &found, kernel.input, n)?
    } else {
        let device = Device::cpu();
        let (m, k) = (m as usize, k as usize);
        let a = device.from_slice(&a_values, m, k)?;
        let b = device.from_slice(&b_values, k, n)?;
        let product = oracle::product(a.view(), b.view())?;
        match case.output {
            OutputType::Input => compare::<T>(&product, &found, kernel.input, n)?,
            OutputType::F32 => compare::<f32>(&product, &found, kernel.input, n)?,
        }
    };
    Ok(Outcome {
        counts,
        ctas: ctas.0 * ctas.1,
        largest_error,
        c: found,
    })
}

/// Rows and columns of A and of B.
fn shapes(case: &Case) -> [(u32, u32); 2] {
    // A kernel that packs copies A to C, and has neither B nor K.
    let b = match case.kernel.family {
        Family::Pack => (0, 0),
        _ => (case.k, case.n),
    };
    [(case.m, case.a_columns()), b]
}

/// What A and B of `case` hold, row by row. `T` is the type that its kernel reads.
pub fn operands<T: Element>(case: &Case) -> [Vec<T>; 2] {
    let kernel = &case.kernel;
    let mut random = StdRng::seed_from_u64(case.seed);
    shapes(case).map(|(rows, cols)| {
        (0..u64::from(rows) * u64::from(cols))
            .map(|_| {
                let value = match case.values {
                    Values::Uniform => random.random_range(-1.0..1.0),
                    Values::Integers => f64::from(random.random_range(-4..=4)),
                };
                // TMA moves f32 as it is; the library packs, and rounds, before.
                if kernel.family == Family::Hopper && kernel.input == DType::Tf32 {
                    T::from_f64(f32::from_bits(tf32_from_f32(value as f32)).into())
                } else {
                    T::from_f64(value)
                }
            })
            .collect()
    })
}

/// The largest error, if every element is within its bound.
fn compare<O: Element>(
    product: &oracle::Product,
    found: &[u8],
    input: DType,
    n: usize,
) -> Result<f64, Error> {
    let found: Vec<O> = bytemuck::pod_collect_to_vec(found);
    if let Some((index, excess)) = product.worst(&found, input) {
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

/// As [`compare`], for copies, which are exact but for the rounding to TF32.
fn compare_copies<T: Element>(
    values: &[T],
    found: &[u8],
    input: DType,
    n: usize,
) -> Result<f64, Error> {
    let found: Vec<T> = bytemuck::pod_collect_to_vec(found);
    let mut largest = 0.0;
    for (index, (value, found)) in values.iter().zip(&found).enumerate() {
        let (value, found) = (value.to_f64(), found.to_f64());
        let expected = match input {
            DType::Tf32 => f32::from_bits(tf32_from_f32(value as f32)).into(),
            _ => value,
        };
        if found != expected {
            return Err(Error::Wrong {
                row: index / n,
                col: index % n,
                found,
                expected,
                excess: f64::INFINITY,
            });
        }
        largest = f64::max(largest, (found - value).abs());
    }
    Ok(largest)
}

/// The maps of A, B and, where TMA can write it, C.
fn tensor_maps(
    case: &Case,
    problem: &Problem,
    addresses: [u64; 3],
) -> Result<[Option<TensorMap>; 3], Error> {
    let kernel = &case.kernel;
    let refused = |operand| {
        move |reason: tma::Unreadable| Error::Operand {
            kernel: kernel.name,
            operand,
            reason: reason.to_string(),
        }
    };
    let a_major = kernel.a_major.unwrap_or(problem.a_major());
    let b_major = kernel.b_major.unwrap_or(problem.b_major());
    let a = GlobalTensor::of_a(problem, a_major).map_err(refused("A"))?;
    let b = GlobalTensor::of_b(problem, b_major).map_err(refused("B"))?;
    let c = GlobalTensor::of_c(problem);
    if c.is_none() && kernel.c_by_tma_only {
        return Err(Error::Operand {
            kernel: kernel.name,
            operand: "C",
            reason: "TMA cannot write it".into(),
        });
    }
    let map = |address, dtype: DType, tensor: GlobalTensor, box_dims| TensorMap {
        address,
        dtype: dtype.into(),
        dims: tensor.dims,
        pitch_bytes: tensor.pitch_bytes,
        box_dims,
        swizzle: Swizzle::Bytes128,
    };
    let output = tma::output_dtype(problem);
    Ok([
        Some(map(
            addresses[0],
            kernel.input,
            a,
            tma::a_box(kernel, a_major, problem.m),
        )),
        Some(map(
            addresses[1],
            kernel.input,
            b,
            tma::b_box(kernel, b_major, problem.n),
        )),
        c.map(|tensor| map(addresses[2], output, tensor, tma::c_box(kernel, output))),
    ])
}
