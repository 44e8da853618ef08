//! The promises of [`Precision::F16x3`]: infinities and NaNs where an f32 sum has them, every
//! exponent that f32 has, exact integers, the same bits from every tile, and its bound on errors.

use std::collections::HashMap;

use gpu_kernels::entry::KERNELS;
use gpu_kernels::f16x3;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::{DType, Device, Error, Family, Gemm, KernelInfo, Precision, oracle};

use crate::errors::ErrorCase;
use crate::test::{is_built, is_emulated};

/// All tests of f16x3.
pub const CASES: [ErrorCase; 7] = [
    ("f16x3/what-is-not-finite", what_is_not_finite, true),
    ("f16x3/every-exponent", every_exponent, true),
    ("f16x3/wide-lines", wide_lines, true),
    ("f16x3/integers-are-exact", integers_are_exact, true),
    ("f16x3/every-depth", every_depth, false),
    ("f16x3/the-same-bits", the_same_bits, true),
    (
        "f16x3/small-products-are-ieee",
        small_products_are_ieee,
        true,
    ),
];

/// A (M×K) and the columns of B (N×K), line after line.
struct Operands {
    a: Vec<f32>,
    bt: Vec<f32>,
    m: usize,
    n: usize,
    k: usize,
}

impl Operands {
    /// Elements by `element`, which gets the operand (0 or 1), the line and the depth.
    fn new(
        (m, n, k): (usize, usize, usize),
        mut element: impl FnMut(usize, usize, usize) -> f32,
    ) -> Self {
        let mut lines = |operand, lines: usize| -> Vec<f32> {
            let places = (0..lines).flat_map(|line| (0..k).map(move |at| (line, at)));
            places
                .map(|(line, at)| element(operand, line, at))
                .collect()
        };
        let (a, bt) = (lines(0, m), lines(1, n));
        Operands { a, bt, m, n, k }
    }

    /// C, row by row, by `gemm`.
    fn product(&self, device: &Device, gemm: &Gemm) -> Result<Vec<f32>, Error> {
        let a = device.from_slice(&self.a, self.m, self.k)?;
        let bt = device.from_slice(&self.bt, self.n, self.k)?;
        let mut c = device.zeros::<f32>(self.m, self.n)?;
        let mut plan = gemm.plan(a.view(), bt.view().t(), &mut c)?;
        plan.run(a.view(), bt.view().t(), &mut c)?;
        c.to_vec()
    }

    /// Rows of C in f64.
    fn exact(&self) -> Result<oracle::Product, Error> {
        let cpu = Device::cpu();
        let a = cpu.from_slice(&self.a, self.m, self.k)?;
        let bt = cpu.from_slice(&self.bt, self.n, self.k)?;
        oracle::product(a.view(), bt.view().t())
    }
}

/// The kernels of type f16x3 that run on `device`.
fn kernels(device: &Device) -> Vec<&'static KernelInfo> {
    let (major, minor) = device
        .gpu_info()
        .map_or((0, 0), |gpu| gpu.compute_capability);
    let runs = |kernel: &&KernelInfo| {
        kernel.input == DType::F16x3
            && kernel.family.multiplies()
            && kernel.arch.runs_on(major, minor)
            && (is_emulated(device) || is_built(kernel))
    };
    KERNELS.iter().filter(runs).collect()
}

/// Runs `check` on C by every kernel.
fn by_every_kernel(
    device: &Device,
    operands: &Operands,
    check: impl Fn(&KernelInfo, &[f32]) -> Result<(), String>,
) -> Result<(), String> {
    for kernel in kernels(device) {
        let gemm = Gemm::new(device)
            .precision(Precision::F16x3)
            .kernel(kernel.name);
        let c = operands.product(device, &gemm);
        let c = c.map_err(|error| format!("{}: {error}", kernel.name))?;
        check(kernel, &c).map_err(|wrong| format!("{}: {wrong}", kernel.name))?;
    }
    Ok(())
}

/// Checks elements against `expected` and the bounds on their errors.
fn within(found: &[f32], expected: &[f64], bound: impl Fn(usize) -> f64) -> Result<(), String> {
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(*found) - expected).abs();
        let bound = bound(index);
        if error.is_nan() || error > bound {
            return Err(format!(
                "element {index}: {found:e}, should be {expected:e} ± {bound:.1e}"
            ));
        }
    }
    Ok(())
}

/// Infinities of either sign and NaNs in either operand, beside zeros and elements that are
/// nothing against the largest of their line.
fn what_is_not_finite(device: &Device) -> Result<(), String> {
    let special = [
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        0.0,
        -0.0,
        1e-38,
        -1e-30,
    ];
    let mut random = StdRng::seed_from_u64(1);
    let operands = Operands::new((70, 66, 130), |_, line, _| {
        match random.random_range(0..400) {
            0..3 if line % 2 == 0 => special[random.random_range(0..3)],
            0..40 => special[random.random_range(3..7)],
            _ => random.random_range(-1.0..1.0_f32),
        }
    });
    // No f32 product of these is above f32's range, so f64 has the same infinities.
    let exact = operands.exact().map_err(|error| error.to_string())?;
    let kinds: [usize; 3] = [f64::is_nan, f64::is_infinite, f64::is_finite]
        .map(|kind: fn(f64) -> bool| exact.values.iter().filter(|value| kind(**value)).count());
    if kinds.iter().any(|count| *count < 100) {
        return Err(format!("NaNs, infinities, numbers: {kinds:?}"));
    }
    by_every_kernel(device, &operands, |_, found| {
        for (index, (found, expected)) in found.iter().zip(&exact.values).enumerate() {
            let right = match expected {
                _ if expected.is_nan() => found.is_nan(),
                _ if expected.is_infinite() => f64::from(*found) == *expected,
                _ => (f64::from(*found) - expected).abs() <= 1e-5 * exact.magnitudes[index],
            };
            if !right {
                return Err(format!(
                    "element {index}: {found:e}, should be {expected:e}"
                ));
            }
        }
        Ok(())
    })
}

/// Lines scaled by powers of two over all of f32's range, subnormals included, so that elements of
/// C overflow, underflow, and are everything between.
fn every_exponent(device: &Device) -> Result<(), String> {
    let mut random = StdRng::seed_from_u64(2);
    let operands = Operands::new((90, 80, 70), |operand, line, _| {
        let exponent = match operand {
            0 => -149 + 3 * line as i32,
            _ => 127 - 3 * line as i32,
        };
        let scaled = f64::from(random.random_range(-1.0..1.0_f32)) * 2.0_f64.powi(exponent);
        scaled as f32
    });
    let exact = operands.exact().map_err(|error| error.to_string())?;
    by_every_kernel(device, &operands, |_, found| {
        for (index, found) in found.iter().enumerate() {
            let value = exact.values[index];
            let bound = 1e-5 * exact.magnitudes[index] + 2.0_f64.powi(-149);
            let overflows = value.abs() + bound > f64::from(f32::MAX);
            let right = (f64::from(*found) - value).abs() <= bound
                || overflows && found.is_infinite() && found.is_sign_positive() == (value > 0.0);
            if !right {
                return Err(format!("element {index}: {found:e}, should be {value:e}"));
            }
        }
        Ok(())
    })
}

/// Exponents over 40 binary orders in each line: elements that are 2⁻⁴⁰ of the largest of their
/// line still count where they meet large ones.
fn wide_lines(device: &Device) -> Result<(), String> {
    let mut random = StdRng::seed_from_u64(3);
    let operands = Operands::new((64, 64, 32), |_, _, _| {
        let exponent: i32 = random.random_range(-20..20);
        random.random_range(-1.0..1.0_f32) * 2.0_f32.powi(exponent)
    });
    let exact = operands.exact().map_err(|error| error.to_string())?;
    by_every_kernel(device, &operands, |_, found| {
        // 16 units of 2⁻²⁴ of Σ|a·b|, and nothing for what is small in its line.
        within(found, &exact.values, |index| {
            2.0_f64.powi(-20) * exact.magnitudes[index]
        })
    })
}

/// Integers of 22 bits times −1, 0 and 1, and integers of 11 bits.
fn integers_are_exact(device: &Device) -> Result<(), String> {
    for large in [1 << 21, 1 << 10] {
        let mut random = StdRng::seed_from_u64(4);
        let operands = Operands::new((65, 63, 7), |operand, _, _| {
            let most = match operand {
                0 => large,
                _ => (1 << 21) / large,
            };
            random.random_range(-most..=most) as f32
        });
        let exact = operands.exact().map_err(|error| error.to_string())?;
        by_every_kernel(device, &operands, |_, found| {
            within(found, &exact.values, |_| 0.0)
        })?;
    }
    Ok(())
}

/// From one term to 2¹⁷, with the bound of the oracle, which is sharper than that of f32 sums.
fn every_depth(device: &Device) -> Result<(), String> {
    let depths: &[usize] = match is_emulated(device) {
        true => &[1, 2, 63, 64, 65, 513],
        false => &[1, 2, 3, 63, 64, 65, 127, 128, 129, 1000, 4099, 1 << 17],
    };
    for &k in depths {
        for least in [-1.0, 0.0] {
            let mut random = StdRng::seed_from_u64(5);
            let operands = Operands::new((33, 65, k), |_, _, _| random.random_range(least..1.0));
            let exact = operands.exact().map_err(|error| error.to_string())?;
            by_every_kernel(device, &operands, |kernel, found| {
                // Sums of 64 terms by a tensor core that truncates four times, or of 16, added up
                // in f32.
                let promoted = match kernel.family {
                    Family::Hopper => f16x3::PROMOTED as usize,
                    _ => 16,
                };
                let steps = 8.0 + (k / promoted) as f64 / 2.0;
                let unit = 2.0_f64.powi(-23) * steps + 4.0 * 2.0_f64.powi(-22);
                within(found, &exact.values, |index| unit * exact.magnitudes[index])
            })
            .map_err(|wrong| format!("K = {k}: {wrong}"))?;
        }
    }
    Ok(())
}

/// Every tile of a family that does not split K gives the same bits, and so does a second run.
fn the_same_bits(device: &Device) -> Result<(), String> {
    let mut random = StdRng::seed_from_u64(6);
    let operands = Operands::new((150, 140, 200), |_, _, _| random.random_range(-1.0..1.0));
    let mut firsts: HashMap<Family, (&str, Vec<u32>)> = HashMap::new();
    for kernel in kernels(device) {
        if kernel.cluster.k > 1 {
            continue;
        }
        let gemm = Gemm::new(device)
            .precision(Precision::F16x3)
            .kernel(kernel.name);
        for _ in 0..2 {
            let c = operands.product(device, &gemm);
            let c = c.map_err(|error| format!("{}: {error}", kernel.name))?;
            let bits: Vec<u32> = c.into_iter().map(f32::to_bits).collect();
            let (first, expected) =
                (firsts.entry(kernel.family)).or_insert_with(|| (kernel.name, bits.clone()));
            if *expected != bits {
                return Err(format!("{} differs from {first}", kernel.name));
            }
        }
    }
    Ok(())
}

/// Where splitting does not pay, f32 kernels compute the product, bit by bit as without the
/// precision.
fn small_products_are_ieee(device: &Device) -> Result<(), String> {
    let mut random = StdRng::seed_from_u64(7);
    let operands = Operands::new((20, 30, 40), |_, _, _| random.random_range(-1.0..1.0));
    let by = |precision| operands.product(device, &Gemm::new(device).precision(precision));
    let [ieee, split] = [Precision::Ieee, Precision::F16x3].map(by);
    let (ieee, split) = (
        ieee.map_err(|e| e.to_string())?,
        split.map_err(|e| e.to_string())?,
    );
    if ieee != split {
        return Err("20×30×40 differs from IEEE".into());
    }
    Ok(())
}
