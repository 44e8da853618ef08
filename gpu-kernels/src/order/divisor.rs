//! [`Divisor`]: a divisor that the host knows, so that a kernel multiplies.

/// A divisor with the multiplier that takes its place: a GPU has no instruction for a division,
/// and one by a variable takes some twenty instructions, each of which waits for the one before.
///
/// With l = ⌈log₂ d⌉ and m = ⌈2^(31 + l) / d⌉, the quotient of n and d is ⌊n · m / 2^(31 + l)⌋
/// for each n < 2³¹ (T. Granlund and P. L. Montgomery, "Division by Invariant Integers using
/// Multiplication", PLDI 1994, theorem 4.2; CUTLASS: `FastDivmod`).
///
/// ```
/// use gpu_kernels::order::Divisor;
/// assert_eq!(Divisor::new(7).div_rem(100), (14, 2));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct Divisor {
    value: u32,
    multiplier: u32,
    shift: u32,
}

impl Divisor {
    /// The divisor 1.
    pub const ONE: Divisor = Divisor::new(1);

    /// The divisor `value`; 1 in the place of 0.
    pub const fn new(value: u32) -> Self {
        let value = if value == 0 { 1 } else { value };
        let shift = 31 + (u32::BITS - (value - 1).leading_zeros());
        Divisor {
            value,
            multiplier: (1_u64 << shift).div_ceil(value as u64) as u32,
            shift,
        }
    }

    /// The divisor itself, at least 1.
    #[inline(always)]
    pub const fn value(self) -> u32 {
        self.value
    }

    /// Quotient and remainder, for `dividend` below 2³¹. For others the result is some pair of
    /// numbers; the function never panics.
    #[inline(always)]
    pub const fn div_rem(self, dividend: u32) -> (u32, u32) {
        let quotient = ((dividend as u64 * self.multiplier as u64) >> (self.shift & 63)) as u32;
        (
            quotient,
            dividend.wrapping_sub(quotient.wrapping_mul(self.value)),
        )
    }
}
