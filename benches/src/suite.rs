//! Lists of problems with a name: those that published tables come from.
//!
//! A suite forces nothing. It measures what a user gets, the library's own
//! choice, against cuBLASLt; [`crate::summary`] closes its run.

use crate::shape::Shape;
use gpu_kernels::DType;

/// A named list of problems: its types, all four layouts, its shapes.
#[derive(Debug, PartialEq, Eq)]
pub struct Suite {
    /// The name on the command line.
    pub name: &'static str,
    /// Types of A and B.
    pub dtypes: &'static [DType],
    /// Shapes, grouped by what limits them.
    pub groups: &'static [Group],
}

/// Shapes that are summarised together.
#[derive(Debug, PartialEq, Eq)]
pub struct Group {
    /// The name in summaries.
    pub name: &'static str,
    /// Shapes, in the order of measuring.
    pub shapes: &'static [Shape],
}

/// 16-bit products on Hopper: large ones, which the tensor cores and the power
/// limit bound, and small or skinny ones, bound by latency and bandwidth.
pub const HOPPER: Suite = Suite {
    name: "hopper",
    dtypes: &[DType::F16, DType::Bf16],
    groups: &[
        Group {
            name: "large",
            shapes: &[
                Shape::new(2048, 2048, 2048),
                Shape::new(4096, 4096, 4096),
                Shape::new(6144, 6144, 6144),
                Shape::new(8192, 8192, 8192),
                Shape::new(12288, 12288, 12288),
                Shape::new(16384, 16384, 16384),
                Shape::new(4096, 14336, 4096),
                Shape::new(8192, 28672, 8192),
                Shape::new(4096, 24576, 1536),
                Shape::new(8192, 8192, 1024),
            ],
        },
        Group {
            name: "small",
            shapes: &[
                Shape::new(512, 512, 512),
                Shape::new(1024, 1024, 1024),
                Shape::new(128, 8192, 8192),
                Shape::new(64, 4096, 4096),
                Shape::new(16, 4096, 4096),
                Shape::new(1, 8192, 8192),
                Shape::new(2048, 2048, 16384),
            ],
        },
    ],
};

const ALL: [&Suite; 1] = [&HOPPER];

/// The suite of this name.
///
/// # Errors
/// There is none: which there are.
pub fn parse(name: &str) -> Result<&'static Suite, String> {
    let found = ALL.into_iter().find(|suite| suite.name == name);
    found.ok_or_else(|| {
        let names = ALL.map(|suite| suite.name).join(", ");
        format!("'{name}' is no suite: {names}")
    })
}

impl Suite {
    /// All shapes, group after group.
    pub fn shapes(&self) -> Vec<Shape> {
        let groups = self.groups.iter();
        groups.flat_map(|group| group.shapes).copied().collect()
    }

    /// The first shape of each group: enough to see that everything runs.
    pub fn smoke_shapes(&self) -> Vec<Shape> {
        let groups = self.groups.iter();
        groups
            .filter_map(|group| group.shapes.first().copied())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_suite_is_found_by_its_name() {
        for suite in ALL {
            assert_eq!(parse(suite.name), Ok(suite));
        }
        let refusal = parse("volta").unwrap_err();
        assert!(refusal.contains("hopper"), "{refusal}");
    }

    #[test]
    fn no_shape_counts_twice() {
        for suite in ALL {
            let shapes = suite.shapes();
            let distinct: std::collections::HashSet<_> = shapes.iter().collect();
            assert_eq!(distinct.len(), shapes.len(), "{}", suite.name);
            assert_eq!(suite.smoke_shapes().len(), suite.groups.len());
        }
    }
}
