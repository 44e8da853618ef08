//! Unrolling in the source.
//!
//! An array of accumulators stays in registers only if every index is a
//! constant. LLVM's own unrolling comes too late, and stops at a size that a
//! GEMM inner loop exceeds, so kernels unroll with this macro.

/// `unroll!(I < 4, { … })` repeats the block with `const I: usize` = 0, 1, 2, 3.
/// Bounds: 2, 3, 4, 6, 8, 16. On the host it is a loop, so that the emulator's kernels compile
/// in a fraction of the time, and the block may not need `I` as a constant.
#[cfg(target_arch = "nvptx64")]
macro_rules! unroll {
    ($i:ident < 2, $body:block) => { $crate::unroll::unroll!(@ $i $body 0 1) };
    ($i:ident < 3, $body:block) => { $crate::unroll::unroll!(@ $i $body 0 1 2) };
    ($i:ident < 4, $body:block) => { $crate::unroll::unroll!(@ $i $body 0 1 2 3) };
    ($i:ident < 6, $body:block) => { $crate::unroll::unroll!(@ $i $body 0 1 2 3 4 5) };
    ($i:ident < 8, $body:block) => { $crate::unroll::unroll!(@ $i $body 0 1 2 3 4 5 6 7) };
    ($i:ident < 16, $body:block) => {
        $crate::unroll::unroll!(@ $i $body 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $i:ident $body:block $($value:literal)*) => {
        $({ const $i: usize = $value; $body })*
    };
}

#[cfg(not(target_arch = "nvptx64"))]
macro_rules! unroll {
    ($i:ident < $bound:literal, $body:block) => {
        for index in 0..$bound {
            #[allow(non_snake_case, reason = "a constant on the device")]
            let $i: usize = index;
            $body
        }
    };
}

pub(crate) use unroll;
