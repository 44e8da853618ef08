//! TMA: boxes of every swizzle, inside a tensor, at each of its edges and outside.

use gpu_kernels::emulator::semantics::swizzle::Swizzle;
use gpu_kernels::emulator::semantics::tensor_map::TensorMap;
use gpu_kernels::probe::BOX_AREA_BYTES;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tilewise::DType;
use tilewise::probe::Launch;

use crate::tally::{Difference, Tally};
use crate::values::{Values, words};
use crate::worlds::Worlds;

/// Lines of the tensors.
const LINES: u64 = 50;

/// Bytes before and behind a tensor, which nothing may write.
const GUARD: u64 = 1024;

/// Lines of a box.
const BOX_LINES: u32 = 16;

/// Where a box lies.
#[derive(Clone, Copy, Debug)]
enum Place {
    Inside,
    /// Across the end of the lines.
    Right,
    /// Across the last line.
    Bottom,
    /// Across both.
    Corner,
    /// Across the first element of the lines and the first line.
    Before,
    Outside,
    /// Inside, in shared memory at a multiple of 128 bytes that is none of the
    /// swizzle's pattern.
    OffPattern,
    /// Inside, but not at a multiple of 16 bytes.
    Odd,
}

impl Place {
    /// The last two are not established: the PTX ISA is silent.
    const ALL: [(Place, &'static str); 8] = [
        (Place::Inside, "inside"),
        (Place::Right, "across the right edge"),
        (Place::Bottom, "across the last line"),
        (Place::Corner, "across the corner"),
        (Place::Before, "from before the first element"),
        (Place::Outside, "outside"),
        (Place::OffPattern, "inside, off the swizzle's pattern"),
        (Place::Odd, "inside, at an odd element"),
    ];

    /// The first element of a box `width` wide, of lines of `length`.
    fn at(self, width: i32, length: i32, random: &mut StdRng) -> (i32, i32) {
        let (lines, box_lines) = (LINES as i32, BOX_LINES as i32);
        // Starts that are multiples of 16 bytes, of 2-byte and of 4-byte elements.
        let aligned = |x: i32| x / 8 * 8;
        let inside_x = aligned(random.random_range(0..=length - width));
        let inside_y = random.random_range(0..=lines - box_lines);
        let right = aligned(length - random.random_range(1..width));
        let bottom = lines - random.random_range(1..box_lines);
        match self {
            Place::Inside | Place::OffPattern => (inside_x, inside_y),
            Place::Right => (right, inside_y),
            Place::Bottom => (inside_x, bottom),
            Place::Corner => (right, bottom),
            Place::Before => (-8, -random.random_range(1..box_lines)),
            Place::Outside => (aligned(length) + 8 * random.random_range(1..9), lines),
            Place::Odd => ((inside_x - 1).max(1), inside_y),
        }
    }
}

/// A tensor whose lines end off 16 bytes, `GUARD` bytes into its operand, and the
/// operand's bytes.
fn tensor(dtype: DType, swizzle: Swizzle) -> (TensorMap, usize) {
    let bytes = u64::from(dtype.bytes());
    let span = match swizzle {
        // Any multiple of 16 will do.
        Swizzle::None => 48,
        swizzle => swizzle.span_bytes(),
    };
    let map = TensorMap {
        address: GUARD,
        dtype,
        dims: [616 / bytes + 1, LINES],
        pitch_bytes: 640,
        box_dims: [span / dtype.bytes(), BOX_LINES],
        swizzle,
    };
    (map, (2 * GUARD + LINES * map.pitch_bytes) as usize)
}

/// Runs both probes, a row for each swizzle and place.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let mut tallies = Vec::new();
    for (place, name) in Place::ALL {
        for loads in [true, false] {
            for swizzle in Swizzle::ALL {
                let subject = match (loads, swizzle) {
                    (true, Swizzle::None) => "TMA load, no swizzle".to_owned(),
                    (true, _) => format!("TMA load, {}-byte swizzle", swizzle.span_bytes()),
                    (false, Swizzle::None) => "TMA store, no swizzle".to_owned(),
                    (false, _) => format!("TMA store, {}-byte swizzle", swizzle.span_bytes()),
                };
                let mut tally = Tally::new(subject, name);
                for dtype in [DType::F16, DType::F32] {
                    for _ in 0..4 {
                        let launch = launch(loads, dtype, swizzle, place, random);
                        match worlds.run(&launch) {
                            Err(reason) => tally.fail(reason),
                            Ok((gpu, emulated)) => {
                                tally.compare(&words(&gpu), &words(&emulated), |_| {
                                    Difference::Wrong
                                });
                            }
                        }
                    }
                }
                tallies.push(tally);
            }
        }
    }
    tallies
}

/// One box, loaded or stored, at a random place of its kind.
fn launch(
    loads: bool,
    dtype: DType,
    swizzle: Swizzle,
    place: Place,
    random: &mut StdRng,
) -> Launch {
    let (map, bytes) = tensor(dtype, swizzle);
    let name = if loads {
        "probe_tma_load"
    } else {
        "probe_tma_store"
    };
    let mut launch = Launch::new(name, 1);
    let (x, y) = place.at(map.box_dims[0] as i32, map.dims[0] as i32, random);
    (launch.params.m, launch.params.n) = (x as u32, y as u32);
    launch.params.k = map.box_bytes();
    launch.params.sharers = match place {
        Place::OffPattern => 128 * (2 * random.random_range(0..8) + 1),
        _ => 1024 * random.random_range(0..4),
    };
    let tensor = Values::Bits.fill(DType::F32, bytes, random);
    let area = BOX_AREA_BYTES as usize;
    if loads {
        (launch.a, launch.a_map) = (tensor, Some(map));
        launch.c = vec![0; area];
    } else {
        launch.a = Values::Bits.fill(DType::F32, area, random);
        (launch.c, launch.c_map) = (tensor, Some(map));
    }
    launch
}
