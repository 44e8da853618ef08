//! Problems drawn from a seed, the same on every machine and with every version of every
//! crate.
//!
//! Therefore the generator is ChaCha8, whose numbers follow from its definition (Bernstein,
//! "ChaCha, a variant of Salsa20", 2008), keyed by the seed in little endian and zeros. The
//! rest is computed here, in integers and in operations that IEEE 754 rounds exactly,
//! without a crate's distributions or a system library's logarithm.
//!
//! A problem takes six numbers of 32 bits. The first three make M, N and K, each log-uniform.
//! The fourth says, for every second problem, that all three are rounded to multiples of 8:
//! then every pitch is a multiple of 16 bytes, as in most models. The others keep whatever
//! residue they have. Its next bits say, in a sweep, for every fourth problem, that it is a
//! linear layer of a transformer on up to 512 tokens. The last two choose layout and type.

use super::listed::LAYERS;
use crate::problem::shape::{BlasLayout, GemmShape};
use crate::problem::spec::ProblemSpec;
use gpu_kernels::{DType, OutputType};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// The least of each dimension, except in a sweep, where it is 1.
pub const SMALLEST: usize = 64;

/// The most of each dimension.
pub const LARGEST: usize = 16384;

/// The most problems that may be asked for.
pub const MOST: usize = 10_000;

/// Types drawn where no other is asked for.
pub(super) const DTYPES: [DType; 2] = [DType::F16, DType::Bf16];

/// The most tokens of a linear layer in a sweep.
const TOKENS: usize = 512;

/// A number of problems from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// How many.
    pub count: usize,
    /// What is drawn.
    pub draw: Draw,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Draw {
    /// Dimensions from [`SMALLEST`] on, for figures: fewer products that are as short as a
    /// launch.
    Products,
    /// Dimensions from 1 on, and linear layers, for a rule that serves them all.
    Sweep,
}

impl Random {
    /// The problems, of these types and layouts; each is drawn once. A larger count of the
    /// same seed begins with the problems of a smaller one, and the types and layouts do not
    /// change the shapes.
    pub fn problems(
        &self,
        dtypes: &[DType],
        layouts: &[BlasLayout],
        output: OutputType,
    ) -> Vec<ProblemSpec> {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&self.seed.to_le_bytes());
        let mut numbers = ChaCha8Rng::from_seed(key);
        let mut problems = Vec::with_capacity(self.count);
        while problems.len() < self.count {
            let sizes = [(); 3].map(|()| numbers.next_u32());
            let kind = numbers.next_u32();
            let problem = ProblemSpec {
                shape: self.draw.shape(sizes, kind),
                layout: one_of(layouts, numbers.next_u32()),
                dtype: one_of(dtypes, numbers.next_u32()),
                output,
            };
            if !problems.contains(&problem) {
                problems.push(problem);
            }
        }
        problems
    }
}

impl Draw {
    /// The shape that `sizes` and `kind` say.
    fn shape(self, sizes: [u32; 3], kind: u32) -> GemmShape {
        let smallest = match self {
            Draw::Products => SMALLEST,
            Draw::Sweep => 1,
        };
        if self == Draw::Sweep && (kind >> 29) & 3 == 0 {
            let (n, k) = one_of(&LAYERS, sizes[1]);
            return GemmShape::new(log_uniform(sizes[0], 1, TOKENS), n, k);
        }
        let [m, n, k] = sizes.map(|number| log_uniform(number, smallest, LARGEST));
        match kind >> 31 {
            0 => GemmShape::new(m, n, k),
            _ => {
                let [m, n, k] = [m, n, k].map(|size| ((size + 4) / 8 * 8).max(8));
                GemmShape::new(m, n, k)
            }
        }
    }
}

/// `smallest`·2^x, rounded, where x is `number` in 2⁻³² of the octaves from `smallest` to
/// `largest`, both powers of two. The fraction's power of two is a product of square roots:
/// 2^0.11₂ = √2·√√2.
fn log_uniform(number: u32, smallest: usize, largest: usize) -> usize {
    let octaves = u64::from((largest / smallest).ilog2()) * u64::from(number);
    let (octave, fraction) = (octaves >> 32, octaves & u64::from(u32::MAX));
    let (mut power, mut root) = (1.0, 2.0_f64);
    for bit in (0..32).rev() {
        root = root.sqrt();
        if (fraction >> bit) & 1 == 1 {
            power *= root;
        }
    }
    ((smallest << octave) as f64 * power).round() as usize
}

/// One of `choices`, each as likely as another but for one in 2³².
fn one_of<T: Copy>(choices: &[T], number: u32) -> T {
    let at = (u64::from(number) * choices.len() as u64) >> 32;
    choices[at as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn problems(seed: u64, count: usize) -> Vec<ProblemSpec> {
        drawn(Draw::Products, seed, count)
    }

    fn drawn(draw: Draw, seed: u64, count: usize) -> Vec<ProblemSpec> {
        Random { seed, count, draw }.problems(&DTYPES, &BlasLayout::ALL, OutputType::Input)
    }

    /// Written down once: a change of the generator would make other problems of the seeds
    /// that published figures name.
    #[test]
    fn a_seed_names_the_same_problems_for_ever() {
        let texts: Vec<String> = problems(1, 4).iter().map(ProblemSpec::to_string).collect();
        assert_eq!(
            texts,
            [
                "2089x531x11054 bf16 nt",
                "9768x10296x12640 f16 nn",
                "344x3744x232 f16 nt",
                "280x816x5944 f16 nn"
            ]
        );
    }

    /// The key stream of ChaCha8 under a key of zeros begins so (draft-strombergson-chacha-test-vectors-01,
    /// TC1, 8 rounds, 256 bits).
    #[test]
    fn the_generator_is_chacha8() {
        let mut numbers = ChaCha8Rng::from_seed([0; 32]);
        let bytes = [(); 2].map(|()| numbers.next_u32().to_le_bytes());
        assert_eq!(bytes, [[0x3e, 0x00, 0xef, 0x2f], [0x89, 0x5f, 0x40, 0xd6]]);
    }

    #[test]
    fn more_problems_begin_with_the_fewer_and_seeds_differ() {
        assert_eq!(problems(7, 30)[..10], problems(7, 10));
        assert_ne!(problems(7, 10), problems(8, 10));
        let nt = [BlasLayout::NT];
        let narrow = Random {
            seed: 7,
            count: 10,
            draw: Draw::Products,
        };
        let narrow = narrow.problems(&[DType::Bf16], &nt, OutputType::Input);
        let shapes =
            |problems: &[ProblemSpec]| problems.iter().map(|p| p.shape).collect::<Vec<_>>();
        assert_eq!(shapes(&narrow), shapes(&problems(7, 10)));
        assert!(
            narrow
                .iter()
                .all(|problem| problem.layout == BlasLayout::NT)
        );
    }

    #[test]
    fn sizes_are_log_uniform_from_end_to_end() {
        assert_eq!(log_uniform(0, SMALLEST, LARGEST), SMALLEST);
        assert_eq!(log_uniform(u32::MAX, 1, LARGEST), LARGEST);
        for number in (0..1000).map(|step| step * 4_294_967) {
            let exact = 64.0 * (f64::from(number) / f64::from(1 << 29)).exp2();
            let drawn = log_uniform(number, SMALLEST, LARGEST) as f64;
            assert!((drawn - exact).abs() <= 0.5 + 1e-6, "{drawn} {exact}");
        }
    }

    #[test]
    fn every_kind_of_problem_is_drawn() {
        let drawn = problems(3, 1000);
        let layouts: HashSet<_> = drawn.iter().map(|problem| problem.layout).collect();
        assert_eq!(layouts.len(), 4);
        let count = |is: &dyn Fn(&ProblemSpec) -> bool| drawn.iter().filter(|p| is(p)).count();
        // Half, within five standard deviations.
        let half = 420..580;
        assert!(half.contains(&count(&|problem| problem.dtype == DType::F16)));
        assert!(half.contains(&count(&|problem| problem.has_aligned_pitches())));
        assert!(half.contains(&count(&|problem| problem.shape.k < 1024)));
        let residues: HashSet<_> = drawn.iter().map(|problem| problem.shape.k % 8).collect();
        assert_eq!(residues.len(), 8);
        let inside = SMALLEST..=LARGEST;
        assert!(drawn.iter().all(|ProblemSpec { shape, .. }| {
            [shape.m, shape.n, shape.k]
                .iter()
                .all(|size| inside.contains(size))
        }));
    }

    #[test]
    fn a_sweep_has_single_rows_and_linear_layers_too() {
        let drawn = drawn(Draw::Sweep, 5, 1000);
        let is_layer = |problem: &ProblemSpec| LAYERS.contains(&(problem.shape.n, problem.shape.k));
        let count = |is: &dyn Fn(&ProblemSpec) -> bool| drawn.iter().filter(|p| is(p)).count();
        assert!((180..320).contains(&count(&is_layer)));
        assert!(count(&|problem| problem.shape.k < 8) > 50);
        let inside = 1..=LARGEST;
        assert!(drawn.iter().filter(|problem| !is_layer(problem)).all(|p| {
            let GemmShape { m, n, k } = p.shape;
            [m, n, k].iter().all(|size| inside.contains(size))
        }));
    }
}
