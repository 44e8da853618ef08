//! The products that are tested for one kernel.
//!
//! The full cross of shapes, layouts, walks and types would be millions of cases. Each
//! group below crosses the properties that interact and draws the others from a generator
//! that only the kernel's name seeds. So the list of cases is the same in every run, but
//! the data is not.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use gpu_kernels::entry::of_same_entry;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tilewise::{DType, Family, KernelInfo, Major, OutputType, Packing, Schedule, TileOrder};

use crate::arrangement::{Arrangement, DISTINCT, REPEATING};
use crate::case::{Case, Data};

/// Every order, and groups of one tile, of the whole grid, or with a remainder.
fn orders() -> impl Iterator<Item = TileOrder> {
    TileOrder::all(2).into_iter().chain([
        TileOrder::GroupedM { size: 0 },
        TileOrder::GroupedM { size: 3 },
        TileOrder::GroupedM { size: 1000 },
        TileOrder::GroupedN { size: 5 },
    ])
}

/// A product to test.
pub struct Planned {
    /// The product.
    pub case: Case,
    /// Whether its results are compared over all walks and repeats, instead of with f64.
    pub repeat: bool,
    /// Whether it belongs to the reduced set, too.
    pub quick: bool,
}

/// Every schedule and order that a kernel offers.
pub fn walks(kernel: &KernelInfo) -> Vec<(Schedule, TileOrder)> {
    let mut walks = Vec::new();
    if kernel.runs_under(Schedule::Grid2d) {
        walks.push((Schedule::Grid2d, TileOrder::RowMajor));
    }
    use Schedule::{Grid1d, Persistent, SplitK, StreamK};
    for schedule in [Grid1d, Persistent, StreamK, SplitK] {
        if kernel.runs_under(schedule) {
            walks.extend(orders().map(|order| (schedule, order)));
        }
    }
    walks
}

/// The schedule under which a CTA of `kernel` runs tile after tile, where it can.
pub fn persistent(kernel: &KernelInfo) -> Schedule {
    if kernel.leaves_sums {
        Schedule::SplitK
    } else if kernel.runs_under(Schedule::StreamK) {
        Schedule::StreamK
    } else {
        Schedule::Persistent
    }
}

/// Every product for `kernel`, whose family multiplies.
pub fn of_kernel(kernel: &'static KernelInfo) -> Vec<Planned> {
    let mut generator = Generator::new(kernel);
    generator.edges();
    generator.layouts();
    generator.walks();
    generator.empty();
    generator.repeating();
    generator.sizes();
    generator.packed();
    generator.repeats();
    generator.unwritable();
    generator.line_classes();
    // Groups meet where a kernel takes few layouts of C.
    let mut names = HashSet::new();
    let mut planned = generator.planned;
    planned.retain(|planned| names.insert(planned.case.to_string()));
    // Kernels of one entry point share its cases.
    let (kernels, place) = of_same_entry(kernel);
    let shared = planned.into_iter().skip(place);
    shared.step_by(kernels.len()).collect()
}

/// Products whose kernel the library chooses.
pub fn unforced() -> Vec<Planned> {
    let mut random = StdRng::seed_from_u64(0);
    let mut planned = Vec::new();
    for input in [
        DType::F32,
        DType::Tf32,
        DType::F16x3,
        DType::F16,
        DType::Bf16,
    ] {
        for a in DISTINCT {
            for b in DISTINCT {
                let mut size = || {
                    *[1, 7, 16, 64, 100, 129, 256, 333]
                        .choose(&mut random)
                        .expect("not empty")
                };
                let shape = (size(), size(), size());
                let output = if planned.len() % 2 == 0 {
                    OutputType::Input
                } else {
                    OutputType::F32
                };
                planned.push(Planned {
                    case: Case {
                        kernel: None,
                        input,
                        output: storable(input, output),
                        shape,
                        arrangements: [a, b, DISTINCT[planned.len() % DISTINCT.len()]],
                        walk: None,
                        packing: Packing::Auto,
                        classes: None,
                        data: Data::Uniform,
                    },
                    repeat: false,
                    quick: a == b,
                });
            }
        }
    }
    planned
}

/// Layouts of A and B that the fast path of `kernel` reads for a row-major C.
pub fn aligned(kernel: &KernelInfo) -> [Arrangement; 2] {
    use Arrangement::{ColsPadded, RowsPadded};
    let a = match kernel.a_major {
        Some(Major::Mn) => ColsPadded,
        _ => RowsPadded,
    };
    let b = match kernel.b_major {
        Some(Major::K) => ColsPadded,
        _ => RowsPadded,
    };
    match kernel.c_along_m {
        // It computes Cᵀ, of Bᵀ and Aᵀ.
        true => [b.turned(), a.turned()],
        false => [a, b],
    }
}

/// For f32 inputs, both output types are f32, so only the first is tested.
pub fn storable(input: DType, output: OutputType) -> OutputType {
    match input {
        DType::F32 | DType::Tf32 | DType::F16x3 => OutputType::Input,
        DType::F16 | DType::Bf16 => output,
    }
}

struct Generator {
    kernel: &'static KernelInfo,
    random: StdRng,
    planned: Vec<Planned>,
    /// Number of cases of the current group so far.
    in_group: usize,
    /// Indices of the cases of the current group that belong to the reduced set.
    quick: &'static [usize],
}

impl Generator {
    fn new(kernel: &'static KernelInfo) -> Self {
        let mut hasher = DefaultHasher::new();
        kernel.name.hash(&mut hasher);
        Generator {
            kernel,
            random: StdRng::seed_from_u64(hasher.finish()),
            planned: Vec::new(),
            in_group: 0,
            quick: &[],
        }
    }

    /// Begins a group.
    fn group(&mut self, quick: &'static [usize]) {
        (self.in_group, self.quick) = (0, quick);
    }

    /// M, N and K around one block: every edge of the tile, and every depth of
    /// the pipeline from empty on.
    fn edges(&mut self) {
        self.group(&[9, 27, 31]);
        let block = self.kernel.block;
        let (bm, bn) = self.kernel.cluster_tile();
        let (bm, bn) = (bm as usize, bn as usize);
        let bk = block.k as usize;
        let sides = |block: usize| [1, block - 1, block, block + 1, 2 * block + 3, 3, 131, 67];
        let depths = [1, bk.max(2) - 1, bk, bk + 1, 2 * bk, 5 * bk + 3, 97, 8 * bk];
        for (i, m) in sides(bm).into_iter().enumerate() {
            for (j, n) in sides(bn).into_iter().enumerate() {
                // Every pair of sides; depths run through them like a Latin square.
                let k = depths[(i + 3 * j) % depths.len()];
                let data = if (i + j) % 3 == 0 {
                    Data::Integers
                } else {
                    Data::Uniform
                };
                let arrangements = self.native();
                self.push((m, n, k), arrangements, data);
            }
        }
    }

    /// Crosses the layouts of A and B and draws the layout of C, for a ragged shape.
    fn layouts(&mut self) {
        self.group(&[3, 12]);
        let block = self.kernel.block;
        for a in DISTINCT {
            for b in DISTINCT {
                // Hopper kernels of several layouts and tiles share their code for
                // operands, and most of the cross is packed for them.
                let share = match self.kernel.family {
                    Family::Naive | Family::Tiled => 1.0,
                    Family::TensorCore => 0.5,
                    Family::Hopper if !self.kernel.loads_by_tma => 0.5,
                    Family::Hopper => 0.2,
                    Family::Pack | Family::Split | Family::Reduce | Family::Placement => 0.0,
                };
                if !self.random.random_bool(share) {
                    continue;
                }
                let c = self.choose(&DISTINCT);
                let m = block.m as usize + self.choose(&[0, 8, 13]);
                let n = block.n as usize + self.choose(&[0, 8, 21]);
                let k = 2 * block.k as usize + self.choose(&[0, 8, 5]);
                self.push((m, n, k), [a, b, c], Data::Uniform);
                if self.kernel.family == Family::Hopper && self.random.random_bool(0.3) {
                    self.push((m, n, k), [a, b, c], Data::Uniform);
                    self.last().packing = Packing::Never;
                }
            }
        }
    }

    /// Every schedule and order, on a ragged grid of 5×4 tiles.
    fn walks(&mut self) {
        self.group(&[0, 12]);
        let (height, width) = self.kernel.cluster_tile();
        let m = 4 * height as usize + 5;
        let n = 3 * width as usize + 7;
        for walk in walks(self.kernel) {
            let arrangements = self.native();
            let k = self.choose(&[16, 40, 64, 72]);
            self.push((m, n, k), arrangements, Data::Integers);
            self.last().walk = Some(walk);
        }
    }

    /// Empty products: M, N or K is 0.
    fn empty(&mut self) {
        self.group(&[0, 3]);
        for shape in [(0, 40, 24), (40, 0, 24), (0, 0, 8), (40, 24, 0), (0, 0, 0)] {
            let arrangements = self.native();
            self.push(shape, arrangements, Data::Integers);
        }
    }

    /// Inputs whose rows or columns share their memory.
    fn repeating(&mut self) {
        self.group(&[2]);
        for repeating in REPEATING {
            let [a, b, c] = self.native();
            self.push((70, 90, 50), [repeating, b, c], Data::Uniform);
            self.push((70, 90, 50), [a, repeating, c], Data::Uniform);
        }
    }

    /// Deep, wide, and more than one wave of tiles.
    fn sizes(&mut self) {
        self.group(&[]);
        let block = self.kernel.block;
        let shapes = [
            (block.m as usize, block.n as usize, 4099),
            (3 * block.m as usize + 1, 40 * block.n as usize + 3, 104),
            (40 * block.m as usize + 1, 3 * block.n as usize + 9, 72),
            (1500, 1700, 1000),
        ];
        for shape in shapes {
            let arrangements = self.native();
            self.push(shape, arrangements, Data::Uniform);
        }
    }

    /// Both operands packed, in many tiles with ragged edges, from every layout.
    fn packed(&mut self) {
        self.group(&[1]);
        if !self.kernel.loads_by_tma && self.kernel.input.parts() == 1 {
            return;
        }
        for first in 0..DISTINCT.len() {
            let b = DISTINCT[(first + 4) % DISTINCT.len()];
            let c = self.choose(&DISTINCT);
            let shape = (
                self.choose(&[193, 330]),
                self.choose(&[257, 301]),
                self.choose(&[65, 139]),
            );
            self.push(shape, [DISTINCT[first], b, c], Data::Integers);
        }
    }

    /// Results that must be bitwise the same over repeats and walks.
    fn repeats(&mut self) {
        self.group(&[]);
        let block = self.kernel.block;
        let (height, width) = self.kernel.cluster_tile();
        let m = 3 * height as usize + 1;
        let shape = (m, 2 * width as usize + 1, 6 * block.k as usize);
        let arrangements = self.aligned();
        self.push(shape, arrangements, Data::Uniform);
        let planned = self.planned.last_mut().expect("just pushed");
        planned.repeat = true;
    }

    /// Layouts of C that a kernel which writes C only through TMA must refuse, and a
    /// column-major C, which it computes as Cᵀ = Bᵀ·Aᵀ.
    fn unwritable(&mut self) {
        self.group(&[0, 1, 2, 3]);
        if !self.kernel.c_by_tma_only {
            return;
        }
        use Arrangement::{ColsPadded, RowsOdd, RowsPadded};
        let [a, b] = aligned(self.kernel);
        for (n, c, output) in [
            (72, RowsPadded, OutputType::F32),
            (73, RowsPadded, OutputType::Input),
            (72, RowsOdd, OutputType::Input),
            (73, ColsPadded, OutputType::Input),
        ] {
            self.push_as_it_is((64, n, 80), [a, b, c], output, Data::Integers);
        }
    }

    /// Lines in classes: some tiles for each, ragged or not, of pitches that are odd multiples of
    /// 16, 32 and 64 bytes, in all schedules and orders.
    fn line_classes(&mut self) {
        self.group(&[0, 5, 9]);
        if !self.kernel.line_classes {
            return;
        }
        use Arrangement::{Cols, ColsPadded, ColsSliced, Rows, RowsPadded, RowsSliced};
        let lines_a_16 = 16 / self.kernel.input.bytes() as usize;
        let (height, width) = self.kernel.cluster_tile();
        let (line, other) = match self.kernel.c_along_m {
            false => (height, width),
            true => (width, height),
        };
        let splits = |walk: &(Schedule, TileOrder)| walk.0 == Schedule::SplitK;
        let mut walks = walks(self.kernel);
        walks.retain(|walk| !splits(walk));
        let lines_of_class = [1, 7, line - 1, line, line + 1, 2 * line + 3];
        for (index, of_class) in lines_of_class.into_iter().cycle().take(14).enumerate() {
            let classes = [8, 4, 2][index % 3];
            let lines = (classes * of_class) as usize;
            let other = self.choose(&[8, other as usize, 2 * other as usize + 8]);
            // Pitches of dense operands.
            let k = lines_a_16 * self.choose(&[1, 2, 3, 4, 7, 9, 12, 33, 65]);
            let [a, b] = match (self.kernel.a_major, self.kernel.b_major) {
                (Some(Major::K), Some(Major::K)) => [Rows, Cols],
                (Some(Major::K), _) => [Rows, RowsPadded],
                _ => [ColsPadded, Cols],
            };
            let sliced = |arrangement| match arrangement {
                Rows => RowsSliced,
                Cols => ColsSliced,
                padded => padded,
            };
            let [a, b] = match self.random.random_bool(0.3) {
                true => [sliced(a), sliced(b)],
                false => [a, b],
            };
            let (shape, arrangements) = match self.kernel.c_along_m {
                false => ((lines, other, k), [a, b, RowsPadded]),
                // A row-major C, as Cᵀ.
                true => ((lines, other, k), [b.turned(), a.turned(), RowsPadded]),
            };
            let data = self.choose(&[Data::Integers, Data::Uniform]);
            self.push_as_it_is(shape, arrangements, OutputType::Input, data);
            let walk = self.random.random_bool(0.5).then(|| self.choose(&walks));
            let case = self.last();
            (case.classes, case.walk) = (Some(classes), walk);
        }
    }

    /// Gives kernels that write C only through TMA a C that they can write.
    fn push(&mut self, shape: (usize, usize, usize), arrangements: [Arrangement; 3], data: Data) {
        let ((m, n, k), [a, b, _]) = (shape, arrangements);
        if self.kernel.c_along_m {
            // M and N are those of the kernel: a column-major C, or a row-major one as Cᵀ.
            let m = m.next_multiple_of(16 / self.kernel.input.bytes() as usize);
            let (shape, arrangements) = match self.random.random() {
                true => ((m, n, k), [b.turned(), a.turned(), Arrangement::ColsPadded]),
                false => ((n, m, k), [a, b, Arrangement::RowsPadded]),
            };
            self.push_as_it_is(shape, arrangements, OutputType::Input, data);
        } else if self.kernel.c_by_tma_only {
            let arrangements = [a, b, Arrangement::RowsPadded];
            let shape = (m, n.next_multiple_of(8), k);
            self.push_as_it_is(shape, arrangements, OutputType::Input, data);
        } else {
            let output = self.choose(&[OutputType::Input, OutputType::F32]);
            self.push_as_it_is(shape, arrangements, output, data);
        }
    }

    fn push_as_it_is(
        &mut self,
        shape: (usize, usize, usize),
        arrangements: [Arrangement; 3],
        output: OutputType,
        data: Data,
    ) {
        self.planned.push(Planned {
            case: Case {
                kernel: Some(self.kernel),
                input: self.kernel.input,
                output: storable(self.kernel.input, output),
                shape,
                arrangements,
                walk: None,
                packing: Packing::Auto,
                classes: None,
                data,
            },
            repeat: false,
            quick: self.quick.contains(&self.in_group),
        });
        self.in_group += 1;
    }

    /// The last case that was pushed.
    fn last(&mut self) -> &mut Case {
        &mut self.planned.last_mut().expect("just pushed").case
    }

    /// The layouts that the kernel is made for; any layouts for kernels that can read all.
    fn native(&mut self) -> [Arrangement; 3] {
        use Arrangement::*;
        if self.kernel.loads_by_tma {
            return self.aligned();
        }
        let rows = [Rows, RowsPadded, RowsOdd];
        let cols = [Cols, ColsPadded, ColsOdd];
        let a = match self.kernel.a_major {
            Some(Major::K) => self.choose(&rows),
            Some(Major::Mn) => self.choose(&cols),
            None => self.choose(&DISTINCT),
        };
        let b = match self.kernel.b_major {
            Some(Major::K) => self.choose(&cols),
            Some(Major::Mn) => self.choose(&rows),
            None => self.choose(&DISTINCT),
        };
        [a, b, self.choose(&DISTINCT)]
    }

    /// Layouts of A and B that the fast path of the kernel reads, and any layout of C.
    fn aligned(&mut self) -> [Arrangement; 3] {
        let [a, b] = aligned(self.kernel);
        // The kernel computes a column-major C as Cᵀ = Bᵀ·Aᵀ only if it can also
        // read the transposed operands, which is not always possible.
        [a, b, self.choose(&DISTINCT)]
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        *from.choose(&mut self.random).expect("not empty")
    }
}
