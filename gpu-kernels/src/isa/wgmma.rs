//! Warpgroup matrix multiply-accumulate (PTX ISA, "Asynchronous Warpgroup Level
//! Matrix Instructions").
//!
//! D (64×N, f32, in the registers of 128 threads) += A (64×16) · B (16×N), for
//! TF32 A (64×8) · B (8×N). The instruction reads A and B from shared memory,
//! each through a *descriptor*, or A from registers. It is asynchronous: D, A and B belong to the
//! tensor cores from `multiply` until a wait.

use crate::dtype::ElementType;
use crate::dtype::{Contiguous, Major};

/// Bytes along K that one instruction multiplies: 16 elements of 16 bits, or 8
/// elements of TF32.
const K_BYTES: u64 = 32;

/// Bytes of an m64 tile in the 128-byte swizzle: 64 rows (or columns) of 128 bytes.
pub const M64_TILE_BYTES: u32 = 64 * 128;

/// The shared-memory descriptor of an operand in the 128-byte swizzle (PTX ISA,
/// "Matrix Descriptor Format"): bits 0..14 the address, 16..30 the leading
/// dimension byte offset, 32..46 the stride byte offset, all in units of 16
/// bytes; bits 62..64 the swizzle mode, 1 for 128 bytes.
///
/// Both majors step 1024 bytes (eight 128-byte rows) in the strided direction.
/// For an operand contiguous along M or N, the next 64 elements of M or N lie one
/// m64 tile further.
#[inline(always)]
pub fn descriptor(major: Major, shared: u32) -> u64 {
    let leading = match major {
        Major::K => 1, // ignored: one row holds the whole depth
        Major::Mn => (M64_TILE_BYTES >> 4) as u64,
    };
    ((shared & 0x3ffff) >> 4) as u64 | leading << 16 | (1024 >> 4) << 32 | 1 << 62
}

/// The increment of a descriptor for the next instruction's elements along K: these lie
/// further in the same row, or as many 128-byte rows further as one instruction has
/// (16-bit) elements along K.
pub const fn descriptor_step(major: Major) -> u64 {
    match major {
        Major::K => K_BYTES >> 4,
        Major::Mn => (K_BYTES / 2 * 128) >> 4,
    }
}

/// `wgmma.fence`: orders register and shared-memory accesses before the
/// `multiply` that follows.
///
/// # Safety
/// All threads of the warpgroup execute it.
#[inline(always)]
pub unsafe fn fence() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::wgmma_fence() },
        emulated = machine::wgmma::fence()
    )
}

/// `wgmma.commit_group`: closes the group of multiplies issued so far.
///
/// # Safety
/// All threads of the warpgroup execute it.
#[inline(always)]
pub unsafe fn commit() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::wgmma_commit() },
        emulated = machine::wgmma::commit()
    )
}

/// `wgmma.wait_group`: waits until at most `PENDING` groups are unfinished. The
/// finished groups have read their operands; use [`Accumulator::finish`] before reading D.
///
/// # Safety
/// All threads of the warpgroup execute it.
#[inline(always)]
pub unsafe fn wait<const PENDING: u32>() {
    instruction!(
        // SAFETY: the caller's duty.
        ptx = unsafe { super::convergent::wgmma_wait::<PENDING>() },
        emulated = machine::wgmma::wait(PENDING)
    )
}

/// The f32 accumulator of a 64×`N` product, as the bits of its registers
/// ([`fma`](super::arithmetic::fma) says why).
pub trait Accumulator: Copy {
    /// Columns.
    const N: u32;

    /// Registers with undefined contents, for a first multiply with `accumulate`
    /// 0. Zeros would take an instruction a register.
    fn undefined() -> Self;

    /// D += A · B, or D = A · B with `accumulate` 0.
    ///
    /// # Safety
    /// All threads of the warpgroup execute it between [`fence`] and [`commit`];
    /// the descriptors name complete operands, contiguous as `A` and `B` say.
    unsafe fn multiply<T: ElementType, A: Contiguous, B: Contiguous>(
        &mut self,
        a: u64,
        b: u64,
        accumulate: u32,
    );

    /// [`Accumulator::multiply`] of TF32 with A in registers, and B contiguous along K. With `l`
    /// the lane and `w` the warp of the warpgroup, `a` has the elements (`16·w + l/4`, `l % 4`),
    /// that row + 8, and the same two rows four columns further (PTX ISA, "Register Fragments for
    /// wgmma.mma_async.m64nNk8").
    ///
    /// # Safety
    /// See [`Accumulator::multiply`]. The last load of `a` precedes the [`fence`], and nothing
    /// else is loaded to the same registers before a [`wait`] for the group: ptxas takes care of
    /// that where the next load of this place in the source comes after the wait.
    unsafe fn multiply_registers(&mut self, a: [u32; 4], b: u64, accumulate: u32);

    /// `wgmma.wait_group 0`, tied to the registers, so that the compiler cannot move a
    /// read of D before it.
    ///
    /// # Safety
    /// All threads of the warpgroup execute it.
    unsafe fn finish(&mut self);

    /// `wgmma.wait_group PENDING`, tied to the registers: for an accumulator that none of the
    /// last `PENDING` groups of multiplies writes.
    ///
    /// # Safety
    /// All threads of the warpgroup execute it.
    unsafe fn finish_but<const PENDING: u32>(&mut self);

    /// This thread's values of columns `16 · group ..`. With `l` the lane and `w` the warp
    /// of the warpgroup, they are four pairs of neighbouring columns, which start at
    /// `2 · (l % 4)`: row `16·w + l/4`, that row + 8, and the same two rows eight columns
    /// further (PTX ISA, "Register Fragments for wgmma"). Where N is no multiple of 16, the last group has
    /// eight columns, and zeros for the others. `group` is a constant after inlining, so that the
    /// registers stay registers.
    ///
    /// # Safety
    /// [`Accumulator::finish`] precedes this.
    unsafe fn columns(&self, group: usize) -> [f32; 8];

    /// Adds `values` to columns `16 · group ..`, in the order of [`Accumulator::columns`]; all 16 exist.
    ///
    /// # Safety
    /// See [`Accumulator::columns`].
    unsafe fn add(&mut self, group: usize, values: [f32; 8]);

    /// Replaces columns `16 · group ..` by `values`, in the order of
    /// [`Accumulator::columns`]; all 16 exist.
    ///
    /// # Safety
    /// See [`Accumulator::columns`].
    unsafe fn set(&mut self, group: usize, values: [f32; 8]);
}

/// Adds to a register that holds an f32.
#[inline(always)]
fn add(register: &mut u32, value: f32) {
    *register = (f32::from_bits(*register) + value).to_bits();
}

/// Implements the accumulator of each width. Every register is an operand of the
/// instruction, so the list of registers is spelled out.
macro_rules! accumulators {
    ($($n:literal, $registers:literal: [$($i:literal)*];)*) => {$(
        impl Accumulator for [u32; $registers] {
            const N: u32 = $n;

            #[inline(always)]
            fn undefined() -> Self {
                instruction!(
                    ptx = {
                        use core::mem::MaybeUninit;
                        let mut registers = [const { MaybeUninit::<u32>::uninit() }; $registers];
                        // SAFETY: there is no instruction. Its operands come out with the
                        // old contents of the registers.
                        unsafe {
                            asm!(
                                concat!("// {0}", $(" {", $i, "}",)*),
                                out(reg32) registers[0], $(out(reg32) registers[$i],)*
                                options(nomem, nostack, preserves_flags)
                            );
                            core::mem::transmute(registers)
                        }
                    },
                    emulated = machine::wgmma::undefined::<$registers>()
                )
            }

            #[inline(always)]
            unsafe fn multiply<T: ElementType, A: Contiguous, B: Contiguous>(
                &mut self,
                a: u64,
                b: u64,
                accumulate: u32,
            ) {
                instruction!(
                    ptx = {
                        use crate::dtype::DType;
                        // The depth, the type, and the immediates: both factors' signs and,
                        // for 16-bit types only, whether they are transposed.
                        macro_rules! wgmma {
                            ($k:literal, $type:literal, $immediates:literal) => {
                                asm!(
                                    "{{ .reg .pred p; setp.ne.b32 p, {accumulate}, 0;",
                                    concat!("wgmma.mma_async.sync.aligned.m64n", $n, $k, ".f32.", $type, ".", $type),
                                    concat!("{{{0}", $(",{", $i, "}",)* "}},"),
                                    concat!("{a}, {b}, p, ", $immediates),
                                    " }}",
                                    inout(reg32) self[0], $(inout(reg32) self[$i],)*
                                    a = in(reg64) a, b = in(reg64) b, accumulate = in(reg32) accumulate,
                                    ta = const A::MAJOR as u32, tb = const B::MAJOR as u32,
                                    options(nostack)
                                )
                            };
                        }
                        // SAFETY: the caller's duty.
                        unsafe {
                            match T::DTYPE {
                                DType::F16 | DType::F16x3 => wgmma!("k16", "f16", "1, 1, {ta}, {tb};"),
                                DType::Bf16 => wgmma!("k16", "bf16", "1, 1, {ta}, {tb};"),
                                DType::Tf32 | DType::F32 => wgmma!("k8", "tf32", "1, 1; // {ta} {tb}"),
                            }
                        }
                    },
                    emulated = machine::wgmma::multiply(
                        self,
                        T::DTYPE.into(),
                        [A::MAJOR.into(), B::MAJOR.into()],
                        [a, b],
                        accumulate,
                    )
                )
            }

            #[inline(always)]
            unsafe fn multiply_registers(&mut self, a: [u32; 4], b: u64, accumulate: u32) {
                instruction!(
                    // SAFETY: the caller's duty.
                    ptx = unsafe {
                        asm!(
                            "{{ .reg .pred p; setp.ne.b32 p, {accumulate}, 0;",
                            concat!("wgmma.mma_async.sync.aligned.m64n", $n, "k8.f32.tf32.tf32"),
                            concat!("{{{0}", $(",{", $i, "}",)* "}},"),
                            "{{{a0}, {a1}, {a2}, {a3}}}, {b}, p, 1, 1;",
                            " }}",
                            inout(reg32) self[0], $(inout(reg32) self[$i],)*
                            a0 = in(reg32) a[0], a1 = in(reg32) a[1],
                            a2 = in(reg32) a[2], a3 = in(reg32) a[3],
                            b = in(reg64) b, accumulate = in(reg32) accumulate,
                            options(nostack)
                        )
                    },
                    emulated = machine::wgmma::multiply_registers(
                        self,
                        crate::dtype::DType::Tf32.into(),
                        a,
                        b,
                        accumulate,
                    )
                )
            }

            #[inline(always)]
            unsafe fn finish(&mut self) {
                // SAFETY: the caller's duty.
                unsafe { self.finish_but::<0>() }
            }

            #[inline(always)]
            unsafe fn finish_but<const PENDING: u32>(&mut self) {
                instruction!(
                    // SAFETY: the caller's duty.
                    ptx = unsafe {
                        super::convergent::wgmma_wait::<PENDING>();
                        // There is no instruction. Reads of D read the outputs of this
                        // `asm!`, so they stay after the wait.
                        asm!(
                            concat!("// {0}", $(" {", $i, "}",)*),
                            inout(reg32) self[0], $(inout(reg32) self[$i],)* options(nostack)
                        );
                    },
                    emulated = machine::wgmma::finish(self, PENDING)
                )
            }

            #[inline(always)]
            unsafe fn columns(&self, group: usize) -> [f32; 8] {
                instruction!(ptx = (), emulated = machine::wgmma::read(self));
                let i = 8 * group;
                let [a, b, c, d] = [self[i], self[i + 1], self[i + 2], self[i + 3]];
                // The last group has eight columns where the width is no multiple of 16.
                let [e, f, g, h] = if i + 4 < $registers {
                    [self[i + 4], self[i + 5], self[i + 6], self[i + 7]]
                } else {
                    [0; 4]
                };
                [a, b, c, d, e, f, g, h].map(f32::from_bits)
            }

            #[inline(always)]
            unsafe fn add(&mut self, group: usize, [a, b, c, d, e, f, g, h]: [f32; 8]) {
                instruction!(ptx = (), emulated = machine::wgmma::read(self));
                let i = 8 * group;
                add(&mut self[i], a);
                add(&mut self[i + 1], b);
                add(&mut self[i + 2], c);
                add(&mut self[i + 3], d);
                add(&mut self[i + 4], e);
                add(&mut self[i + 5], f);
                add(&mut self[i + 6], g);
                add(&mut self[i + 7], h);
            }

            #[inline(always)]
            unsafe fn set(&mut self, group: usize, values: [f32; 8]) {
                let [a, b, c, d, e, f, g, h] = values.map(f32::to_bits);
                let i = 8 * group;
                self[i] = a;
                self[i + 1] = b;
                self[i + 2] = c;
                self[i + 3] = d;
                self[i + 4] = e;
                self[i + 5] = f;
                self[i + 6] = g;
                self[i + 7] = h;
            }
        }
    )*};
}

accumulators! {
    16, 8: [
        1 2 3 4 5 6 7
    ];
    32, 16: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
    ];
    48, 24: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23
    ];
    64, 32: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31
    ];
    72, 36: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35
    ];
    80, 40: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39
    ];
    88, 44: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43
    ];
    96, 48: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47
    ];
    104, 52: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51
    ];
    112, 56: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55
    ];
    120, 60: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59
    ];
    128, 64: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63
    ];
    136, 68: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67
    ];
    144, 72: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71
    ];
    152, 76: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75
    ];
    160, 80: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79
    ];
    168, 84: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83
    ];
    176, 88: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87
    ];
    184, 92: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91
    ];
    192, 96: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95
    ];
    200, 100: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99
    ];
    208, 104: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103
    ];
    216, 108: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107
    ];
    224, 112: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108
        109 110 111
    ];
    232, 116: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108
        109 110 111 112 113 114 115
    ];
    240, 120: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108
        109 110 111 112 113 114 115 116 117 118 119
    ];
    248, 124: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108
        109 110 111 112 113 114 115 116 117 118 119 120 121 122 123
    ];
    256, 128: [
        1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
        31 32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57
        58 59 60 61 62 63 64 65 66 67 68 69 70 71 72 73 74 75 76 77 78 79 80 81 82 83 84
        85 86 87 88 89 90 91 92 93 94 95 96 97 98 99 100 101 102 103 104 105 106 107 108
        109 110 111 112 113 114 115 116 117 118 119 120 121 122 123 124 125 126 127
    ];
}
