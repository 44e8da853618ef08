//! Products that need each other's results, launched without a pause. A short launch may
//! begin before the previous launch has ended. It must not read elements that the previous
//! launch still has to write, nor write elements that it still has to read.
//!
//! The result is compared, bit by bit, with the same chain when the host waits for each
//! launch.

use gpu_kernels::entry::{KERNELS, of_same_entry};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::{Device, Error, Family, Gemm, KernelInfo, Major, Matrix, f16};

use crate::errors::ErrorCase;
use crate::test::{is_built, is_emulated};

/// All tests of chains. They are not in the set for compute-sanitizer, which runs one
/// kernel at a time.
pub const CASES: [ErrorCase; 2] = [
    ("chain/chosen", chosen, false),
    ("chain/every-hopper-kernel", every_hopper_kernel, false),
];

/// The size of a chain.
struct Scale {
    /// Products in a chain, an even number.
    links: usize,
    /// Rows and columns: one tile, some tiles, ragged.
    sizes: &'static [usize],
}

impl Scale {
    /// Launches of a few microseconds on a GPU.
    fn of(device: &Device) -> Scale {
        match is_emulated(device) {
            // There and back: an emulated launch ends before the next one begins.
            true => Scale {
                links: 2,
                sizes: &[72],
            },
            false => Scale {
                links: 60,
                sizes: &[64, 328, 776],
            },
        }
    }
}

fn chosen(device: &Device) -> Result<(), String> {
    Scale::of(device)
        .sizes
        .iter()
        .try_for_each(|size| check(device, *size, "chosen", || Gemm::new(device)))
}

fn every_hopper_kernel(device: &Device) -> Result<(), String> {
    let runs = |kernel: &&KernelInfo| {
        let (major, minor) = device.gpu_info().map_or((0, 0), |i| i.compute_capability);
        kernel.family == Family::Hopper
            && kernel.input == tilewise::DType::F16
            && kernel.arch.runs_on(major, minor)
            && match is_emulated(device) {
                // Kernels of other layouts pack what they read, each by the same kernel.
                true => {
                    (kernel.a_major, kernel.b_major) == (Some(Major::K), Some(Major::Mn))
                        && of_same_entry(kernel).1 == 0
                }
                false => is_built(kernel),
            }
    };
    KERNELS.iter().filter(runs).try_for_each(|kernel| {
        let gemm = || Gemm::new(device).kernel(kernel.name);
        Scale::of(device)
            .sizes
            .iter()
            .try_for_each(|size| check(device, *size, kernel.name, gemm))
    })
}

/// Compares two chains of `size` by `gemm`: launched at once, and one by one.
fn check(device: &Device, size: usize, name: &str, gemm: impl Fn() -> Gemm) -> Result<(), String> {
    let ends = Chain::new(device, size).and_then(|mut chain| {
        let waited = chain.run(device, &gemm, true)?;
        Ok((waited, chain.run(device, &gemm, false)?))
    });
    let (waited, at_once) = ends.map_err(|error| format!("{name}, {size}: {error}"))?;
    let different = |(a, b): &(&f16, &f16)| a.to_bits() != b.to_bits();
    match waited.iter().zip(&at_once).filter(different).count() {
        0 => Ok(()),
        count => Err(format!(
            "{name}: {count} of {} elements differ after {} products of {size}³ at once",
            waited.len(),
            Scale::of(device).links
        )),
    }
}

/// Two square matrices that hold every other result, and the factors.
struct Chain {
    start: Vec<f16>,
    results: [Matrix<f16>; 2],
    factor: Matrix<f16>,
}

impl Chain {
    fn new(device: &Device, size: usize) -> Result<Chain, Error> {
        let mut random = StdRng::seed_from_u64(size as u64);
        // The spread of the factors keeps the results of all products about as large.
        let spread = (3.0 / size as f32).sqrt();
        let mut draw = |spread: f32| -> Vec<f16> {
            let value = |_| f16::from_f32(random.random_range(-spread..spread));
            (0..size * size).map(value).collect()
        };
        let (start, factor) = (draw(1.0), draw(spread));
        Ok(Chain {
            results: [
                device.from_slice(&start, size, size)?,
                device.zeros(size, size)?,
            ],
            factor: device.from_slice(&factor, size, size)?,
            start,
        })
    }

    /// The last result. If `waited`, the host waits for each launch.
    fn run(
        &mut self,
        device: &Device,
        gemm: impl Fn() -> Gemm,
        waited: bool,
    ) -> Result<Vec<f16>, Error> {
        let [even, odd] = &mut self.results;
        even.copy_from_slice(&self.start)?;
        let factor = self.factor.view();
        // Each direction has its own plan, so that no launch has to copy new tensor maps.
        let mut there = gemm().plan(even.view(), factor, odd.view_mut())?;
        let mut back = gemm().plan(odd.view(), factor, even.view_mut())?;
        let links = Scale::of(device).links;
        for link in 0..links {
            if link % 2 == 0 {
                there.run(even.view(), factor, odd.view_mut())?;
            } else {
                back.run(odd.view(), factor, even.view_mut())?;
            }
            if waited {
                device.synchronize()?;
            }
        }
        self.results[links % 2].to_vec()
    }
}
