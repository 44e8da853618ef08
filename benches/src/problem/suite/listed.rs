//! Suites that are lists of shapes.

use crate::problem::shape::{BlasLayout, GemmShape};
use gpu_kernels::DType;

/// A named list of problems: every shape in every type and layout.
#[derive(Debug, PartialEq, Eq)]
pub struct List {
    /// The name on the command line.
    pub name: &'static str,
    /// Types of A and B.
    pub dtypes: &'static [DType],
    /// Storage of A and B.
    pub layouts: &'static [BlasLayout],
    /// Shapes, grouped by what limits them.
    pub groups: &'static [ShapeGroup],
}

/// Shapes that are summarised together.
#[derive(Debug, PartialEq, Eq)]
pub struct ShapeGroup {
    /// The name in summaries.
    pub name: &'static str,
    /// Shapes, in the order of measuring.
    pub shapes: &'static [GemmShape],
}

/// 16-bit products on Hopper: large ones, which the tensor cores and the power
/// limit bound, and small or skinny ones, bound by latency and bandwidth.
pub const HOPPER: List = List {
    name: "hopper",
    dtypes: &[DType::F16, DType::Bf16],
    layouts: &BlasLayout::ALL,
    groups: &[
        ShapeGroup {
            name: "large",
            shapes: &[
                GemmShape::new(2048, 2048, 2048),
                GemmShape::new(4096, 4096, 4096),
                GemmShape::new(6144, 6144, 6144),
                GemmShape::new(8192, 8192, 8192),
                GemmShape::new(12288, 12288, 12288),
                GemmShape::new(16384, 16384, 16384),
                GemmShape::new(4096, 14336, 4096),
                GemmShape::new(8192, 28672, 8192),
                GemmShape::new(4096, 24576, 1536),
                GemmShape::new(8192, 8192, 1024),
            ],
        },
        ShapeGroup {
            name: "small",
            shapes: &[
                GemmShape::new(512, 512, 512),
                GemmShape::new(1024, 1024, 1024),
                GemmShape::new(128, 8192, 8192),
                GemmShape::new(64, 4096, 4096),
                GemmShape::new(16, 4096, 4096),
                GemmShape::new(1, 8192, 8192),
                GemmShape::new(2048, 2048, 16384),
            ],
        },
    ],
};

/// The linear layers of transformers: M is the number of tokens, one for each sequence that
/// is decoded, or whole prompts. Weights are stored N×K, as PyTorch's `Linear` has them.
pub const TRANSFORMER: List = List {
    name: "transformer",
    dtypes: &[DType::Bf16],
    layouts: &[BlasLayout::NT],
    groups: &[
        ShapeGroup {
            name: "decode",
            shapes: &layers_at::<4, { 4 * LAYERS.len() }>([1, 16, 64, 256]),
        },
        ShapeGroup {
            name: "prefill",
            shapes: &layers_at::<2, { 2 * LAYERS.len() }>([2048, 8192]),
        },
    ],
};

/// N and K of each linear layer: Q, K and V in one; the output of attention; gate and up in
/// one; down. The sizes are those of the published `config.json`: `hidden_size` h,
/// `num_attention_heads` and `num_key_value_heads` of 128 elements each, which make up the
/// rows of Q, K and V, and `intermediate_size` i.
pub(super) const LAYERS: [(usize, usize); 16] = [
    // Llama 3 8B: h = 4096, 32 heads and 8 for K and V, i = 14336.
    ((32 + 2 * 8) * 128, 4096),
    (4096, 32 * 128),
    (2 * 14336, 4096),
    (4096, 14336),
    // Llama 3 70B: h = 8192, 64 heads and 8 for K and V, i = 28672.
    ((64 + 2 * 8) * 128, 8192),
    (8192, 64 * 128),
    (2 * 28672, 8192),
    (8192, 28672),
    // Qwen2.5 7B: h = 3584, 28 heads and 4 for K and V, i = 18944.
    ((28 + 2 * 4) * 128, 3584),
    (3584, 28 * 128),
    (2 * 18944, 3584),
    (3584, 18944),
    // Qwen2.5 32B: h = 5120, 40 heads and 8 for K and V, i = 27648.
    ((40 + 2 * 8) * 128, 5120),
    (5120, 40 * 128),
    (2 * 27648, 5120),
    (5120, 27648),
];

/// Each layer at each number of tokens.
const fn layers_at<const COUNTS: usize, const ALL: usize>(
    tokens: [usize; COUNTS],
) -> [GemmShape; ALL] {
    let mut shapes = [GemmShape::new(0, 0, 0); ALL];
    let mut at = 0;
    while at < ALL {
        let (n, k) = LAYERS[at / COUNTS];
        shapes[at] = GemmShape::new(tokens[at % COUNTS], n, k);
        at += 1;
    }
    shapes
}

/// All lists.
pub(super) const ALL: [&List; 2] = [&HOPPER, &TRANSFORMER];

impl List {
    /// The first shapes of each group, at most `of_group`, group after group.
    pub fn shapes(&self, of_group: usize) -> Vec<GemmShape> {
        let groups = self.groups.iter();
        let shapes = groups.flat_map(|group| group.shapes.iter().take(of_group));
        shapes.copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shape_counts_twice() {
        for list in ALL {
            let shapes = list.shapes(usize::MAX);
            let distinct: std::collections::HashSet<_> = shapes.iter().collect();
            assert_eq!(distinct.len(), shapes.len(), "{}", list.name);
            assert_eq!(list.shapes(1).len(), list.groups.len());
        }
    }

    #[test]
    fn transformers_have_their_layers_at_every_number_of_tokens() {
        let [decode, prefill] = TRANSFORMER.groups else {
            panic!("two groups");
        };
        assert_eq!((decode.shapes.len(), prefill.shapes.len()), (64, 32));
        for tokens in [1, 16, 64, 256] {
            // Llama 3 8B's QKV and 70B's gate and up.
            assert!(decode.shapes.contains(&GemmShape::new(tokens, 6144, 4096)));
            assert!(decode.shapes.contains(&GemmShape::new(tokens, 57344, 8192)));
        }
        for tokens in [2048, 8192] {
            // Qwen2.5 7B's QKV and 32B's down.
            assert!(prefill.shapes.contains(&GemmShape::new(tokens, 4608, 3584)));
            assert!(
                prefill
                    .shapes
                    .contains(&GemmShape::new(tokens, 5120, 27648))
            );
        }
    }
}
