//! The products of the study, and those among them that the model was fitted on.

use crate::problem::shape::GemmShape;

/// A product of the study.
pub struct StudyProduct {
    /// M, N, K.
    pub shape: GemmShape,
    /// What it is there for.
    pub why: &'static str,
}

const fn product(m: usize, n: usize, k: usize, why: &'static str) -> StudyProduct {
    StudyProduct {
        shape: GemmShape::new(m, n, k),
        why,
    }
}

/// The default products: square, wide, tall, short and long in K, ragged.
pub const PRODUCTS: [StudyProduct; 16] = [
    product(
        8192,
        8192,
        8192,
        "square, each operand about twice the L2 of an H200",
    ),
    product(
        16384,
        16384,
        16384,
        "square, at the power limit, no operand near L2",
    ),
    product(4096, 4096, 4096, "square, A or B alone fits in L2"),
    product(8192, 8192, 1024, "short K: C is most of the traffic"),
    product(4096, 24576, 1536, "wide, an MLP's first layer"),
    product(1024, 65536, 1024, "very wide: 8 rows of tiles"),
    product(65536, 1024, 1024, "very tall: 4 or 8 columns of tiles"),
    product(16384, 16384, 1024, "short K, a large C"),
    product(8192, 28672, 8192, "wide, the MLP of a large language model"),
    product(
        5000,
        12008,
        3000,
        "ragged: no tile divides any side, wide by 2.4",
    ),
    product(32768, 2048, 4096, "tall, B fits in L2"),
    product(2048, 32768, 4096, "wide, A fits in L2"),
    product(
        12288,
        12288,
        12288,
        "square, sides that are no power of two",
    ),
    product(8200, 7944, 4104, "ragged, nearly square"),
    product(
        4096,
        4096,
        32768,
        "long K: few tiles, CTAs drift apart along it",
    ),
    product(28672, 8192, 4096, "tall, the same MLP backwards"),
];

/// What `shape` is measured for; empty if it is none of [`PRODUCTS`].
pub fn why(shape: GemmShape) -> &'static str {
    let product = PRODUCTS.iter().find(|product| product.shape == shape);
    product.map_or("", |product| product.why)
}

/// The products on which the parameters of the model of L2 were fitted. Two squares, for
/// how far CTAs drift and what L2 holds; a wide one, for unequal sides; and one of short K,
/// for the room that C takes. Every claim about the model is over the other products.
pub const FITTED: [GemmShape; 4] = [
    GemmShape::new(8192, 8192, 8192),
    GemmShape::new(16384, 16384, 16384),
    GemmShape::new(4096, 24576, 1536),
    GemmShape::new(8192, 8192, 1024),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn products_are_distinct_and_some_are_left_to_test_on() {
        let shapes: HashSet<GemmShape> = PRODUCTS.iter().map(|product| product.shape).collect();
        assert_eq!(shapes.len(), PRODUCTS.len());
        assert!(FITTED.iter().all(|fitted| shapes.contains(fitted)));
        assert!(shapes.len() - FITTED.len() >= 12);
        assert_eq!(why(GemmShape::new(1, 2, 3)), "");
        assert!(shapes.iter().all(|&shape| !why(shape).is_empty()));
    }
}
