//! Problems with a name: lists that published tables come from, and lists drawn from a seed.
//!
//! A suite forces nothing: it measures the library's own choice, which a user gets, against
//! cuBLASLt. [`crate::tables::suite_summary`] closes its run.

mod listed;
mod random;

use crate::problem::shape::BlasLayout;
use crate::problem::spec::{ProblemSpec, problems};
use gpu_kernels::{DType, OutputType};
use std::fmt;
use std::str::FromStr;

pub use listed::{HOPPER, List, ShapeGroup, TRANSFORMER};
pub use random::{Draw, LARGEST, MOST, Random, SMALLEST};

/// The beginnings of the names of drawn suites.
const DRAWS: [(&str, Draw); 2] = [("random", Draw::Products), ("sweep", Draw::Sweep)];

/// A value of `--suite`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// A list of shapes.
    Listed(&'static List),
    /// Problems drawn from a seed.
    Random(Random),
}

impl FromStr for Suite {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split(':').collect();
        let drawn = DRAWS.into_iter().find(|(name, _)| *name == parts[0]);
        match (drawn, parts.as_slice()) {
            (Some((_, draw)), [_, seed, count]) => {
                let in_range = |count: &usize| (1..=MOST).contains(count);
                let count = count.parse().ok().filter(in_range).ok_or_else(|| {
                    format!("the count '{count}' is not a whole number from 1 to {MOST}")
                })?;
                let seed = seed.parse().map_err(|_| {
                    format!("the seed '{seed}' is not a whole number from 0 to 2^64 - 1")
                })?;
                Ok(Suite::Random(Random { seed, count, draw }))
            }
            (Some((name, _)), _) => Err(format!(
                "'{text}' lacks a part or has one too many; accepted: {name}:SEED:COUNT, such as \
                 {name}:1:200"
            )),
            _ => {
                let list = listed::ALL.into_iter().find(|list| list.name == text);
                list.map(Suite::Listed).ok_or_else(|| {
                    format!(
                        "'{text}' is not a suite; accepted: hopper, transformer, \
                         random:SEED:COUNT, sweep:SEED:COUNT"
                    )
                })
            }
        }
    }
}

/// The text that is parsed.
impl fmt::Display for Suite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Suite::Listed(list) => f.write_str(list.name),
            Suite::Random(Random { seed, count, draw }) => {
                let (name, _) = DRAWS
                    .into_iter()
                    .find(|(_, other)| other == draw)
                    .expect("all have a name");
                write!(f, "{name}:{seed}:{count}")
            }
        }
    }
}

impl Suite {
    /// Types of A and B.
    pub fn dtypes(&self) -> &'static [DType] {
        match self {
            Suite::Listed(list) => list.dtypes,
            Suite::Random(_) => &random::DTYPES,
        }
    }

    /// Storage of A and B.
    pub fn layouts(&self) -> &'static [BlasLayout] {
        match self {
            Suite::Listed(list) => list.layouts,
            Suite::Random(_) => &BlasLayout::ALL,
        }
    }

    /// The problems in these types and layouts, in the order of measuring: all, or for a smoke
    /// run the first of each group (of a random suite, two).
    pub fn problems(
        &self,
        dtypes: &[DType],
        layouts: &[BlasLayout],
        output: OutputType,
        smoke: bool,
    ) -> Vec<ProblemSpec> {
        match *self {
            Suite::Listed(list) => {
                let of_group = if smoke { 1 } else { usize::MAX };
                problems(dtypes, layouts, output, &list.shapes(of_group))
            }
            Suite::Random(random) => {
                let count = if smoke {
                    random.count.min(2)
                } else {
                    random.count
                };
                Random { count, ..random }.problems(dtypes, layouts, output)
            }
        }
    }

    /// The groups that are summed up on their own, beside the whole.
    pub fn groups(&self) -> &'static [ShapeGroup] {
        match self {
            Suite::Listed(list) => list.groups,
            Suite::Random(_) => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_found_by_its_name() {
        for text in ["hopper", "transformer", "random:7:200", "sweep:7:200"] {
            let suite: Suite = text.parse().unwrap();
            assert_eq!(suite.to_string(), text);
        }
        let drawn = Suite::Random(Random {
            seed: 7,
            count: 200,
            draw: Draw::Products,
        });
        assert_eq!("random:7:200".parse(), Ok(drawn));
    }

    #[test]
    fn a_refusal_says_what_is_wrong_and_what_is_accepted() {
        for (text, parts) in [
            ("volta", ["'volta'", "transformer"]),
            ("random", ["'random'", "random:SEED:COUNT"]),
            ("random:1", ["'random:1'", "random:SEED:COUNT"]),
            ("random:1:2:3", ["'random:1:2:3'", "random:SEED:COUNT"]),
            ("random:x:2", ["seed 'x'", "2^64"]),
            ("random:-1:2", ["seed '-1'", "2^64"]),
            ("random:1:0", ["count '0'", "from 1 to 10000"]),
            ("random:1:many", ["count 'many'", "from 1 to 10000"]),
            ("random:1:10001", ["count '10001'", "from 1 to 10000"]),
        ] {
            let refusal = text.parse::<Suite>().unwrap_err();
            for part in parts {
                assert!(refusal.contains(part), "{text}: {refusal}");
            }
        }
    }

    #[test]
    fn types_and_layouts_can_be_a_part_of_a_suites() {
        for text in ["hopper", "transformer", "random:7:20"] {
            let suite: Suite = text.parse().unwrap();
            let nt = BlasLayout::NT;
            let problems = suite.problems(&[DType::Bf16], &[nt], OutputType::F32, false);
            assert!(problems.iter().all(|problem| {
                (problem.dtype, problem.layout, problem.output)
                    == (DType::Bf16, nt, OutputType::F32)
            }));
            let few = suite.problems(&[DType::Bf16], &[nt], OutputType::F32, true);
            assert_eq!(few.len(), 2, "{text}");
            assert!(few.iter().all(|problem| problems.contains(problem)));
        }
    }
}
