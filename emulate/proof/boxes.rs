//! TMA: boxes of every swizzle, inside a tensor, at each of its edges and outside.

use gpu_kernels::probe::BOX_AREA_BYTES;
use rand::RngExt as _;
use rand::rngs::StdRng;
use tilewise::DType;
use tilewise::probe::Launch;
use tilewise_emulator::semantics::swizzle::Swizzle;
use tilewise_emulator::semantics::tensor_map::TensorMap;

use crate::refused;
use crate::tally::{Difference, Tally};
use crate::values::{Values, words};
use crate::worlds::Worlds;

/// Lines of the tensors.
const LINES: u64 = 50;

/// Bytes before and after a tensor, which nothing may write.
const GUARD: u64 = 1024;

/// Lines of a box.
const BOX_LINES: u32 = 16;

/// The place of a box in its tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Inside,
    /// Across the end of the lines.
    Right,
    /// Across the last line.
    Bottom,
    /// Across the end of the lines and the last line.
    Corner,
    /// Across the first element of the lines and the first line: of loads alone.
    Before,
    Outside,
    /// Inside, in shared memory at a multiple of 128 bytes that is not a multiple of the
    /// swizzle's pattern.
    OffPattern,
}

impl Place {
    /// In the order of what is established: a launch that a GPU refuses ends them.
    const ALL: [(Place, &'static str); 7] = [
        (Place::Inside, "inside"),
        (Place::Right, "across the right edge"),
        (Place::Bottom, "across the last line"),
        (Place::Corner, "across the corner"),
        (Place::Before, "from before the first element"),
        (Place::OffPattern, "inside, off the swizzle's pattern"),
        (Place::Outside, "outside"),
    ];

    /// The first element of a box `width` wide, of lines of `length`. `chunk` elements
    /// are 16 bytes.
    fn at(self, width: i32, length: i32, chunk: i32, random: &mut StdRng) -> (i32, i32) {
        let (lines, box_lines) = (LINES as i32, BOX_LINES as i32);
        let aligned = |x: i32| x / chunk * chunk;
        let inside_x = aligned(random.random_range(0..=length - width));
        let inside_y = random.random_range(0..=lines - box_lines);
        let right =
            chunk * random.random_range((length - width) / chunk + 1..=(length - 1) / chunk);
        let bottom = lines - random.random_range(1..box_lines);
        match self {
            Place::Inside | Place::OffPattern => (inside_x, inside_y),
            Place::Right => (right, inside_y),
            Place::Bottom => (inside_x, bottom),
            Place::Corner => (right, bottom),
            Place::Before => (-chunk, -random.random_range(1..box_lines)),
            Place::Outside => (aligned(length) + chunk * random.random_range(1..9), lines),
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
        dtype: dtype.into(),
        dims: [616 / bytes + 1, LINES],
        pitch_bytes: 640,
        planes: None,
        box_dims: [span / dtype.bytes(), BOX_LINES],
        swizzle,
    };
    (map, (2 * GUARD + LINES * map.pitch_bytes) as usize)
}

/// Runs both probes, a row for each swizzle and place.
pub fn compare(worlds: &Worlds, random: &mut StdRng) -> Vec<Tally> {
    let mut tallies = Vec::new();
    for (place, what) in Place::ALL {
        for loads in [true, false] {
            if !loads && place == Place::Before {
                continue;
            }
            for swizzle in Swizzle::ALL {
                let mut tally = Tally::new(subject(loads, swizzle), what);
                for dtype in [DType::F16, DType::F32, DType::Tf32] {
                    for _ in 0..4 {
                        let launch = launch(loads, dtype, swizzle, place, random);
                        match worlds.run(&name(&tally, dtype, &launch), &launch) {
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
    tallies.extend(refused::compare(worlds));
    tallies
}

/// The name of these launches in the report.
pub fn subject(loads: bool, swizzle: Swizzle) -> String {
    let direction = if loads { "load" } else { "store" };
    match swizzle {
        Swizzle::None => format!("TMA {direction}, no swizzle"),
        _ => format!("TMA {direction}, {}-byte swizzle", swizzle.span_bytes()),
    }
}

/// The name of a launch before it runs.
pub fn name(tally: &Tally, dtype: DType, launch: &Launch) -> String {
    let params = &launch.params;
    let (x, y) = (params.m as i32, params.n as i32);
    format!(
        "{}, {} at ({x}, {y}), shared memory at {}",
        tally.name(),
        dtype.name(),
        params.stream_k_ctas
    )
}

/// One box, loaded or stored, at a random place of its kind.
fn launch(
    loads: bool,
    dtype: DType,
    swizzle: Swizzle,
    place: Place,
    random: &mut StdRng,
) -> Launch {
    let (map, _) = tensor(dtype, swizzle);
    let [width, length] = [map.box_dims[0], map.dims[0] as u32].map(|elements| elements as i32);
    let chunk = 16 / dtype.bytes() as i32;
    let at = place.at(width, length, chunk, random);
    let shared = match place {
        Place::OffPattern => 128 * (2 * random.random_range(0..8) + 1),
        _ => 1024 * random.random_range(0..4),
    };
    launch_at(loads, dtype, swizzle, at, shared, random)
}

/// One box of random bits, loaded or stored, at element `x` of line `y`, and at byte
/// `shared` of the area.
pub fn launch_at(
    loads: bool,
    dtype: DType,
    swizzle: Swizzle,
    (x, y): (i32, i32),
    shared: u32,
    random: &mut StdRng,
) -> Launch {
    let (map, bytes) = tensor(dtype, swizzle);
    let name = if loads {
        "probe_tma_load"
    } else {
        "probe_tma_store"
    };
    let mut launch = Launch::new(name, 1);
    (launch.params.m, launch.params.n) = (x as u32, y as u32);
    launch.params.k = map.box_bytes();
    launch.params.stream_k_ctas = shared;
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

#[cfg(test)]
mod tests {
    use gpu_kernels::probe::UNTOUCHED;
    use rand::SeedableRng as _;
    use tilewise::Device;

    use super::*;

    /// The words of C of each launch of a kind in the emulator, before and after.
    fn each(loads: bool, seed: u64, mut see: impl FnMut(Place, Swizzle, &Launch, [Vec<u32>; 2])) {
        let worlds = Worlds::new(&Device::cpu(), 0);
        let mut random = StdRng::seed_from_u64(seed);
        let places = Place::ALL.into_iter();
        for (place, name) in places.filter(|(place, _)| loads || *place != Place::Before) {
            for swizzle in Swizzle::ALL {
                for dtype in [DType::F16, DType::F32] {
                    let launch = launch(loads, dtype, swizzle, place, &mut random);
                    let (_, after) = worlds.run(name, &launch).expect(name);
                    see(place, swizzle, &launch, [words(&launch.c), words(&after)]);
                }
            }
        }
    }

    #[test]
    fn every_load_ends_and_fills_its_box_alone() {
        each(true, 1, |place, swizzle, launch, [_, after]| {
            let start = launch.params.stream_k_ctas as usize / 4;
            let end = start + launch.params.k as usize / 4;
            let filled = |range: &[u32]| range.iter().filter(|word| **word != UNTOUCHED).count();
            let inside = filled(&after[start..end]);
            assert_eq!(inside, end - start, "{place:?}, {swizzle:?}");
            assert_eq!(filled(&after), inside, "{place:?}, {swizzle:?}");
        });
    }

    #[test]
    fn every_store_ends_and_writes_no_more_than_its_box() {
        each(false, 2, |place, swizzle, launch, [before, after]| {
            let box_words = launch.params.k as usize / 4;
            let written = before.iter().zip(&after).filter(|(a, b)| a != b).count();
            match place {
                Place::Inside | Place::OffPattern => assert_eq!(written, box_words, "{swizzle:?}"),
                Place::Outside => assert_eq!(written, 0, "{swizzle:?}"),
                // A line's last 16 bytes are written whole: it may be the box's width.
                Place::Right => assert!(written > 0 && written <= box_words, "{swizzle:?}"),
                _ => assert!(written > 0 && written < box_words, "{place:?}, {swizzle:?}"),
            }
        });
    }
}
