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
//! residue they have. The last two choose layout and type.

use crate::problem::shape::{BlasLayout, GemmShape};
use crate::problem::spec::ProblemSpec;
use gpu_kernels::{DType, OutputType};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// The least of each dimension.
pub const SMALLEST: usize = 64;

/// The most of each dimension.
pub const LARGEST: usize = 16384;

/// The most problems that may be asked for.
pub const MOST: usize = 10_000;

/// Types drawn where no other is asked for.
pub(super) const DTYPES: [DType; 2] = [DType::F16, DType::Bf16];

/// A number of problems from a seed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Random {
    /// The seed.
    pub seed: u64,
    /// How many.
    pub count: usize,
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
            let sizes = [(); 3].map(|()| log_uniform(numbers.next_u32()));
            let [m, n, k] = match numbers.next_u32() >> 31 {
                0 => sizes,
                _ => sizes.map(|size| (size + 4) / 8 * 8),
            };
            let problem = ProblemSpec {
                shape: GemmShape::new(m, n, k),
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

/// [`SMALLEST`]·2^x to [`LARGEST`] = [`SMALLEST`]·2⁸, rounded, where `number` is x in 2⁻²⁹.
/// The fraction's power of two is a product of square roots: 2^0.11₂ = √2·√√2.
fn log_uniform(number: u32) -> usize {
    let octave = number >> 29;
    let (mut power, mut root) = (1.0, 2.0_f64);
    for bit in (0..29).rev() {
        root = root.sqrt();
        if (number >> bit) & 1 == 1 {
            power *= root;
        }
    }
    ((SMALLEST << octave) as f64 * power).round() as usize
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
        Random { seed, count }.problems(&DTYPES, &BlasLayout::ALL, OutputType::Input)
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
        let narrow = Random { seed: 7, count: 10 };
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
        assert_eq!(log_uniform(0), SMALLEST);
        assert_eq!(log_uniform(u32::MAX), LARGEST);
        for number in (0..1000).map(|step| step * 4_294_967) {
            let exact = 64.0 * (f64::from(number) / f64::from(1 << 29)).exp2();
            let drawn = log_uniform(number) as f64;
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
}
