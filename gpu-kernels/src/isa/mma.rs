//! Warp-level matrix instructions, sm_75 and sm_80 (PTX ISA, "Warp Level Matrix
//! Multiply-Accumulate Instructions: mma, ldmatrix").
//!
//! All 32 lanes of a warp must execute each instruction together. A register holds
//! packed elements: two of 16 bits, or one of TF32.

macro_rules! ldmatrix {
    ($($(#[$doc:meta])* $name:ident = $modifier:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// All lanes of the warp execute it; each lane's `row` is 16 bytes of
        /// shared memory, aligned to 16; writes by other threads are ordered
        /// before it by a barrier.
        #[inline(always)]
        pub unsafe fn $name(row: u32) -> [u32; 4] {
            instruction!(
                ptx = {
                    let (x, y, z, w): (u32, u32, u32, u32);
                    // SAFETY: the caller's duty; not `pure` and not `nomem`, so that it
                    // stays between the barriers around it.
                    unsafe {
                        asm!(concat!("ldmatrix.sync.aligned.m8n8.x4", $modifier,
                                     ".shared.b16 {{{}, {}, {}, {}}}, [{}];"),
                             out(reg32) x, out(reg32) y, out(reg32) z, out(reg32) w,
                             in(reg32) row, options(readonly, nostack, preserves_flags));
                    }
                    [x, y, z, w]
                },
                emulated = machine::matrix::$name(row)
            )
        }
    )*};
}

ldmatrix! {
    /// `ldmatrix.x4`: loads four matrices of 8 rows of 16 bytes. Lane 8·i + r gives
    /// the address of row r of matrix i. From each matrix a lane receives the 32-bit
    /// word lane % 4 of row lane / 4.
    load_matrices = "";
    /// `ldmatrix.x4.trans`: [`load_matrices`] for 16-bit elements, with each matrix
    /// transposed: from each matrix a lane receives two elements of column lane / 4,
    /// in rows 2 · (lane % 4) and 2 · (lane % 4) + 1.
    load_matrices_transposed = ".trans";
}

macro_rules! mma {
    ($($(#[$doc:meta])* $name:ident = $shape_and_types:literal;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// All lanes of the warp execute it.
        #[inline(always)]
        pub unsafe fn $name(c: &mut [f32; 4], a: [u32; 4], b: [u32; 2]) {
            instruction!(
                // SAFETY: the caller's duty; registers only.
                ptx = unsafe {
                    asm!(concat!("mma.sync.aligned.", $shape_and_types,
                                 " {{{0}, {1}, {2}, {3}}}, {{{4}, {5}, {6}, {7}}}, {{{8}, {9}}}, {{{0}, {1}, {2}, {3}}};"),
                         inout(reg32) c[0], inout(reg32) c[1], inout(reg32) c[2], inout(reg32) c[3],
                         in(reg32) a[0], in(reg32) a[1], in(reg32) a[2], in(reg32) a[3],
                         in(reg32) b[0], in(reg32) b[1],
                         options(nomem, nostack, preserves_flags));
                },
                emulated = machine::matrix::$name(c, a, b)
            )
        }
    )*};
}

mma! {
    /// `mma.m16n8k16`, f16 with f32 accumulators: C += A · B.
    multiply_f16 = "m16n8k16.row.col.f32.f16.f16.f32";
    /// `mma.m16n8k16`, bf16 with f32 accumulators: C += A · B.
    multiply_bf16 = "m16n8k16.row.col.f32.bf16.bf16.f32";
    /// `mma.m16n8k8`, TF32 with f32 accumulators: C += A · B.
    multiply_tf32 = "m16n8k8.row.col.f32.tf32.tf32.f32";
}

/// `mma.m16n8k8`, f16 with f32 accumulators, sm_75: C += A · B. The registers are those of
/// the first half of K of [`multiply_f16`].
///
/// # Safety
/// All lanes of the warp execute it.
#[inline(always)]
pub unsafe fn multiply_f16_k8(c: &mut [f32; 4], a: [u32; 2], b: u32) {
    instruction!(
        // SAFETY: the caller's duty; registers only.
        ptx = unsafe {
            asm!(concat!("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
                         " {{{0}, {1}, {2}, {3}}}, {{{4}, {5}}}, {{{6}}}, {{{0}, {1}, {2}, {3}}};"),
                 inout(reg32) c[0], inout(reg32) c[1], inout(reg32) c[2], inout(reg32) c[3],
                 in(reg32) a[0], in(reg32) a[1], in(reg32) b,
                 options(nomem, nostack, preserves_flags));
        },
        emulated = machine::matrix::multiply_f16_k8(c, a, b)
    )
}
