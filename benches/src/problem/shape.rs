//! Shapes and layouts, and how they are written on the command line.

use crate::problem::names::named;
use std::fmt;
use std::str::FromStr;

/// C = A·B with A M×K, B K×N, C M×N.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GemmShape {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
}

impl GemmShape {
    /// The default list: cubes from L2-resident to power-limited, two shapes
    /// of large language models, two that no tile divides, and a skinny one.
    pub const DEFAULT: [GemmShape; 8] = [
        GemmShape::new(4096, 4096, 4096),
        GemmShape::new(8192, 8192, 8192),
        GemmShape::new(16384, 16384, 16384),
        GemmShape::new(8192, 28672, 8192),
        GemmShape::new(4096, 24576, 1536),
        GemmShape::new(1000, 1000, 1000),
        GemmShape::new(4095, 4097, 4099),
        GemmShape::new(16, 4096, 4096),
    ];

    /// Sizes small enough for the library's CPU device.
    pub const CPU: [GemmShape; 3] = [
        GemmShape::new(256, 256, 256),
        GemmShape::new(512, 512, 512),
        GemmShape::new(255, 257, 1024),
    ];

    /// M, N, K.
    pub const fn new(m: usize, n: usize, k: usize) -> Self {
        GemmShape { m, n, k }
    }

    /// Multiplications and additions: 2·M·N·K.
    pub fn flop(&self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }

    /// TFLOP/s of one product in `milliseconds`.
    pub fn tflops(&self, milliseconds: f64) -> f64 {
        self.flop() / milliseconds / 1e9
    }
}

impl fmt::Display for GemmShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}x{}", self.m, self.n, self.k)
    }
}

impl FromStr for GemmShape {
    type Err = String;

    /// `MxNxK`, or one number for a cube.
    fn from_str(text: &str) -> Result<Self, String> {
        let sizes: Option<Vec<usize>> = text
            .split(['x', 'X'])
            .map(|size| size.trim().parse().ok().filter(|&size| size > 0))
            .collect();
        match sizes.as_deref() {
            Some(&[m, n, k]) => Ok(GemmShape { m, n, k }),
            Some(&[cube]) => Ok(GemmShape::new(cube, cube, cube)),
            _ => Err(format!(
                "'{text}' is not a shape; accepted: MxNxK, such as 4096x4096x4096, or one number for a cube"
            )),
        }
    }
}

/// How A and B are stored, in the manner of BLAS but row-major: `n` is the
/// operand's own shape, row-major; `t` is its transpose, row-major. The first
/// letter is A, the second B. C is row-major always.
///
/// | layout | A is stored | B is stored | in PyTorch |
/// |---|---|---|---|
/// | `nn` | M×K | K×N | `a @ b` |
/// | `nt` | M×K | N×K | `a @ b.T` (a linear layer) |
/// | `tn` | K×M | K×N | `a.T @ b` |
/// | `tt` | K×M | N×K | `a.T @ b.T` |
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlasLayout {
    /// A is stored K×M.
    pub a_transposed: bool,
    /// B is stored N×K.
    pub b_transposed: bool,
}

impl BlasLayout {
    /// A M×K, B K×N.
    pub const NN: BlasLayout = BlasLayout::of(false, false);

    /// A M×K, B N×K, as in a linear layer.
    pub const NT: BlasLayout = BlasLayout::of(false, true);

    /// `nn`, `nt`, `tn`, `tt`.
    pub const ALL: [BlasLayout; 4] = [
        BlasLayout::NN,
        BlasLayout::NT,
        BlasLayout::of(true, false),
        BlasLayout::of(true, true),
    ];

    const fn of(a_transposed: bool, b_transposed: bool) -> BlasLayout {
        BlasLayout {
            a_transposed,
            b_transposed,
        }
    }

    fn name(self) -> &'static str {
        match (self.a_transposed, self.b_transposed) {
            (false, false) => "nn",
            (false, true) => "nt",
            (true, false) => "tn",
            (true, true) => "tt",
        }
    }

    /// Rows and columns in which A is stored.
    pub fn stored_a(&self, shape: GemmShape) -> (usize, usize) {
        stored((shape.m, shape.k), self.a_transposed)
    }

    /// Rows and columns in which B is stored.
    pub fn stored_b(&self, shape: GemmShape) -> (usize, usize) {
        stored((shape.k, shape.n), self.b_transposed)
    }
}

/// Rows and columns in which a matrix lies in memory.
fn stored((rows, cols): (usize, usize), transposed: bool) -> (usize, usize) {
    if transposed {
        (cols, rows)
    } else {
        (rows, cols)
    }
}

impl fmt::Display for BlasLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for BlasLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        named(text, "layout", &BlasLayout::ALL, BlasLayout::name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_survive_their_text() {
        for shape in GemmShape::DEFAULT {
            assert_eq!(shape.to_string().parse(), Ok(shape));
        }
        assert_eq!("512".parse(), Ok(GemmShape::new(512, 512, 512)));
    }

    #[test]
    fn malformed_shapes_are_refused() {
        for text in ["", "4x4", "4x4x4x4", "0x4x4", "axbxc", "-1x2x3", "4096³"] {
            let refusal = text.parse::<GemmShape>().unwrap_err();
            assert!(refusal.contains("MxNxK"), "{refusal}");
        }
    }

    #[test]
    fn layouts_survive_their_text() {
        for text in ["nn", "nt", "tn", "tt"] {
            assert_eq!(text.parse::<BlasLayout>().unwrap().to_string(), text);
        }
        assert!("NN".parse::<BlasLayout>().is_err());
    }

    #[test]
    fn transposed_operands_are_stored_transposed() {
        let shape = GemmShape::new(2, 3, 4);
        let tt: BlasLayout = "tt".parse().unwrap();
        assert_eq!((tt.stored_a(shape), tt.stored_b(shape)), ((4, 2), (3, 4)));
        let nn = BlasLayout::NN;
        assert_eq!((nn.stored_a(shape), nn.stored_b(shape)), ((2, 4), (4, 3)));
    }

    #[test]
    fn a_second_for_two_tera_flop_is_two_tflops() {
        let shape = GemmShape::new(10_000, 10_000, 10_000);
        assert_eq!(shape.tflops(1000.0), 2.0);
    }
}
