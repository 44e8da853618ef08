//! `wgmma`: each element type, both majors of both operands, each swizzle.

use gpu_kernels::probe::{A_AREA_BYTES, B_AREA_BYTES, PROBES};
use rand::rngs::StdRng;
use tilewise::probe::Launch;
use tilewise::{DType, Major};
use tilewise_emulator::semantics::descriptor::{Descriptor, DescriptorError};
use tilewise_emulator::semantics::swizzle::Swizzle;
use tilewise_emulator::semantics::{dot, wgmma};

use crate::tally::{Difference, Tally};
use crate::values::{Values, words};
use crate::warp_products::judge;
use crate::worlds::Worlds;

/// CTAs, of one warpgroup each, of a launch.
const CTAS: usize = 2;

/// The parameters that the name of a probe gives.
#[derive(Clone, Copy, Debug)]
struct WgmmaShape {
    name: &'static str,
    dtype: DType,
    a_major: Major,
    b_major: Major,
    columns: usize,
}

impl WgmmaShape {
    /// Parses `probe_wgmma_f16_ak_bn_n64`, for example; `None` for other probes.
    fn parse(name: &'static str, dtype: DType) -> Option<Self> {
        let words = name.strip_prefix("probe_wgmma_")?;
        let mut words = words.split('_').skip(1);
        let mut major = || match words.next()? {
            "ak" | "bk" => Some(Major::K),
            _ => Some(Major::Mn),
        };
        let (a_major, b_major) = (major()?, major()?);
        Some(WgmmaShape {
            name,
            dtype,
            a_major,
            b_major,
            columns: words.next()?.strip_prefix('n')?.parse().ok()?,
        })
    }

    fn subject(&self) -> String {
        let along = |major, across: &'static str| match major {
            Major::K => "K",
            Major::Mn => across,
        };
        format!(
            "`wgmma.m64n{}` {}, A along {}, B along {}",
            self.columns,
            self.dtype.name(),
            along(self.a_major, "M"),
            along(self.b_major, "N"),
        )
    }
}

/// The layout and the contents of one row's operands.
#[derive(Clone, Copy, Debug)]
struct Case {
    a: Descriptor,
    b: Descriptor,
    values: Values,
    /// Whether the multiply adds to D.
    accumulate: bool,
}

/// The dense layout of `lines` rows or columns at the start of an area.
fn dense(swizzle: Swizzle, major: Major, lines: usize) -> Descriptor {
    let span = swizzle.span_bytes();
    let (leading, stride) = match (major, swizzle) {
        // Core matrices of 128 bytes: first all core matrices along M or N, then along K.
        (_, Swizzle::None) => (16 * lines as u32, 128),
        // Rows of one span.
        (Major::K, _) => (16, 8 * span),
        // Blocks of 16 lines of K of one span.
        (Major::Mn, _) => (16 * span, 8 * span),
    };
    Descriptor {
        start: 0,
        leading,
        stride,
        swizzle,
    }
}

/// Runs all probes, a row for each swizzle and kind of operands. Widths above 64
/// are the same instruction with more registers: random bits, swizzled, are enough.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let shapes = PROBES
        .iter()
        .filter_map(|probe| WgmmaShape::parse(probe.info.name, probe.info.input));
    let mut tallies = Vec::new();
    for shape in shapes {
        for swizzle in Swizzle::ALL {
            for values in Values::ALL {
                if shape.columns > 64 && (values != Values::Bits || swizzle == Swizzle::None) {
                    continue;
                }
                for accumulate in [true, false] {
                    if !accumulate && values != Values::Unit {
                        continue;
                    }
                    let case = Case {
                        a: dense(swizzle, shape.a_major, wgmma::ROWS),
                        b: dense(swizzle, shape.b_major, shape.columns),
                        values,
                        accumulate,
                    };
                    tallies.push(row(worlds, shape, case, random));
                }
            }
        }
    }
    tallies
}

/// Runs one probe on one kind of operands.
fn row(worlds: &Worlds, shape: WgmmaShape, case: Case, random: &mut StdRng) -> Tally {
    let swizzle = match case.a.swizzle {
        Swizzle::None => "no swizzle".to_owned(),
        swizzle => format!("{}-byte swizzle", swizzle.span_bytes()),
    };
    let onto = if case.accumulate { "" } else { ", scale-d 0" };
    let what = format!("{swizzle}, {}{onto}", case.values.name());
    let mut tally = Tally::new(shape.subject(), what);
    let mut launch = Launch::new(shape.name, CTAS as u32);
    let [a_bytes, b_bytes] = [A_AREA_BYTES, B_AREA_BYTES].map(|bytes| bytes as usize);
    launch.a = case.values.fill(shape.dtype, CTAS * a_bytes, random);
    launch.b = case.values.fill(shape.dtype, CTAS * b_bytes, random);
    let registers = wgmma::ROWS * shape.columns;
    launch.c = case.values.accumulators(CTAS * registers, random);
    launch.params.a.row_stride = case.a.encode();
    launch.params.b.row_stride = case.b.encode();
    launch.params.m = case.accumulate.into();
    launch.params.k = 1;
    match worlds.run(&tally.name(), &launch) {
        Err(reason) => tally.fail(reason),
        Ok((gpu, emulated)) => {
            let (gpu, emulated) = (words(&gpu), words(&emulated));
            let before = words(&launch.c);
            tally.compare(&gpu, &emulated, |at| {
                let (cta, element) = (at / registers, at % registers);
                let c = if case.accumulate { before[at] } else { 0 };
                let a = &launch.a[cta * a_bytes..][..a_bytes];
                let b = &launch.b[cta * b_bytes..][..b_bytes];
                match bound(shape, case, a, b, element, f32::from_bits(c)) {
                    Ok(bound) => judge(gpu[at], emulated[at], bound),
                    Err(_) => Difference::Wrong,
                }
            });
        }
    }
    tally
}

/// [`dot::error_bound`] of result `element` of a warpgroup, thread by thread, from
/// the areas that A and B lie in.
fn bound(
    shape: WgmmaShape,
    case: Case,
    a: &[u8],
    b: &[u8],
    element: usize,
    c: f32,
) -> Result<f64, DescriptorError> {
    let registers = shape.columns / 2;
    let (row, column) = wgmma::d_element(element / registers, element % registers);
    let chunk = |area: &[u8], address: u32| -> Result<[u8; 16], DescriptorError> {
        Ok(std::array::from_fn(|byte| area[address as usize + byte]))
    };
    let rows = case.a.read(
        shape.dtype.into(),
        shape.a_major.into(),
        wgmma::ROWS,
        |at| chunk(a, at),
    )?;
    let columns = case.b.read(
        shape.dtype.into(),
        shape.b_major.into(),
        shape.columns,
        |at| chunk(b, at),
    )?;
    Ok(dot::error_bound(&rows, row, &columns, column, c))
}
