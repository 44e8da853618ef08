//! wgmma: which accesses to its registers and operands are allowed, and when.

use gpu_kernels::dtype::{AlongK, Major};
use gpu_kernels::isa::wgmma::{self, Accumulator};
use gpu_kernels::isa::{shared, thread, tma};
use tilewise_emulator::Check;

use crate::{cta, shared as at, tid, verdict};

/// The registers of a 64×64 product.
type Sums = [u32; 32];

/// Offset of B.
const B: u32 = 8 << 10;

/// A warpgroup writes A and B, 64 rows of 64 f16 each, all 1.
pub unsafe fn operands() {
    for chunk in 0..2 * 8192 / 16 / 128 {
        // SAFETY: emulated; here and below, the test checks that the emulator reports
        // the violations.
        unsafe { shared::store_u32x4(at(16 * (128 * chunk + tid())), [0x3c00_3c00; 4]) };
    }
}

/// Issues the product of the operands' first 16 columns.
unsafe fn multiply(sums: &mut Sums, accumulate: u32) {
    let a = wgmma::descriptor(Major::K, at(0));
    let b = wgmma::descriptor(Major::K, at(B));
    // SAFETY: emulated.
    unsafe {
        sums.multiply::<gpu_kernels::element::F16, AlongK, AlongK>(a, b, accumulate);
    }
}

/// Computes the product of the operands' first 16 columns correctly.
pub unsafe fn product() -> Sums {
    let mut sums = Sums::undefined();
    // SAFETY: emulated.
    unsafe {
        wgmma::fence();
        multiply(&mut sums, 0);
        wgmma::commit();
        sums.finish();
    }
    sums
}

/// The check that fails in a warpgroup that runs `body` after the operands are written.
fn warpgroup(body: impl Fn() + Sync) -> Option<Check> {
    verdict(cta(128), || {
        // SAFETY: emulated.
        unsafe {
            operands();
            tma::fence_shared();
            thread::sync_cta();
        }
        body();
    })
}

#[test]
fn sums_are_handed_back() {
    let sums = warpgroup(|| {
        // SAFETY: emulated.
        let sums = unsafe { product() };
        assert_eq!(sums.map(f32::from_bits), [16.0; 32]);
    });
    assert_eq!(sums, None);
}

#[test]
fn registers_are_read_after_the_wait() {
    let read = |finish: bool| {
        warpgroup(move || {
            let mut sums = Sums::undefined();
            // SAFETY: emulated.
            unsafe {
                wgmma::fence();
                multiply(&mut sums, 0);
                wgmma::commit();
                if finish {
                    sums.finish();
                }
                sums.columns(0);
            }
        })
    };
    assert_eq!(
        (read(true), read(false)),
        (None, Some(Check::AccumulatorInUse))
    );
}

#[test]
fn what_is_read_too_early_is_no_number() {
    let early = warpgroup(|| {
        let mut sums = Sums::undefined();
        // SAFETY: emulated.
        unsafe {
            wgmma::fence();
            multiply(&mut sums, 0);
            assert!(sums.iter().all(|&bits| f32::from_bits(bits).is_nan()));
            wgmma::commit();
            sums.finish();
        }
    });
    assert_eq!(early, None);
}

#[test]
fn a_fence_stands_before_the_registers_first_multiply() {
    let multiply_twice = |second_fence: bool| {
        warpgroup(move || {
            // SAFETY: emulated.
            unsafe {
                let mut sums = product();
                sums[0] = (f32::from_bits(sums[0]) + 1.0).to_bits();
                if second_fence {
                    wgmma::fence();
                }
                multiply(&mut sums, 1);
                wgmma::commit();
                sums.finish();
                assert_eq!([sums[0], sums[1]].map(f32::from_bits), [33.0, 32.0]);
            }
        })
    };
    assert_eq!(multiply_twice(true), None);
    assert_eq!(multiply_twice(false), Some(Check::AccumulatorInUse));
}

#[test]
fn something_is_in_the_registers_that_are_added_to() {
    let first = |accumulate: u32| {
        warpgroup(move || {
            let mut sums = Sums::undefined();
            // SAFETY: emulated.
            unsafe {
                wgmma::fence();
                multiply(&mut sums, accumulate);
                wgmma::commit();
                sums.finish();
            }
        })
    };
    assert_eq!((first(0), first(1)), (None, Some(Check::Uninitialized)));
}

#[test]
fn operands_stay_until_a_wait_has_retired_their_readers() {
    let overwrite = |wait: bool| {
        warpgroup(move || {
            let mut sums = Sums::undefined();
            // SAFETY: emulated.
            unsafe {
                wgmma::fence();
                multiply(&mut sums, 0);
                wgmma::commit();
                if wait {
                    wgmma::wait::<0>();
                }
                thread::sync_cta();
                shared::store_u32(at(B + 4 * tid()), 0);
                sums.finish();
            }
        })
    };
    assert_eq!(overwrite(true), None);
    assert_eq!(overwrite(false), Some(Check::OperandOverwritten));
}

#[test]
fn the_newest_group_may_stay_in_flight() {
    let overwrite = |second_reads_it: bool| {
        warpgroup(move || {
            let mut sums = Sums::undefined();
            // SAFETY: emulated.
            unsafe {
                wgmma::fence();
                multiply(&mut sums, 0);
                wgmma::commit();
                let further = if second_reads_it { 0 } else { 32 };
                let a = wgmma::descriptor(Major::K, at(further));
                let b = wgmma::descriptor(Major::K, at(B + further));
                sums.multiply::<gpu_kernels::element::F16, AlongK, AlongK>(a, b, 1);
                wgmma::commit();
                wgmma::wait::<1>();
                thread::sync_cta();
                if tid() == 0 {
                    shared::store_u32(at(B), 0);
                }
                sums.finish();
            }
        })
    };
    assert_eq!(overwrite(false), None);
    assert_eq!(overwrite(true), Some(Check::OperandOverwritten));
}

#[test]
fn all_threads_give_the_same_descriptors() {
    let differing = warpgroup(|| {
        let mut sums = Sums::undefined();
        let a = wgmma::descriptor(Major::K, at(0)) + u64::from(tid() / 64) * 2;
        let b = wgmma::descriptor(Major::K, at(B));
        // SAFETY: emulated.
        unsafe {
            wgmma::fence();
            sums.multiply::<gpu_kernels::element::F16, AlongK, AlongK>(a, b, 0);
            wgmma::commit();
            sums.finish();
        }
    });
    assert_eq!(differing, Some(Check::InvalidArgument));
}

/// A warpgroup that multiplies TF32 with A in registers, all 1 but for what `body` does with
/// them, and B in shared memory, whose bits are those of two f16 of 1.
fn with_a_in_registers(body: impl Fn(&mut Sums, [u32; 4], u64) + Sync) -> Option<Check> {
    warpgroup(|| {
        let mut sums = Sums::undefined();
        let b = wgmma::descriptor(Major::K, at(B));
        body(&mut sums, [1.0_f32.to_bits(); 4], b);
    })
}

#[test]
fn a_may_come_from_registers() {
    let product = with_a_in_registers(|sums, mut a, b| {
        // Row 0 is twice as large, and only thread 0 has its first element.
        if tid() == 0 {
            a[0] = 2.0_f32.to_bits();
        }
        // SAFETY: emulated.
        unsafe {
            wgmma::fence();
            sums.multiply_registers(a, b, 0);
            sums.multiply_registers(a, b, 1);
            wgmma::commit();
            sums.finish();
        }
        // Of TF32, the low 13 bits do not count.
        let one = f32::from_bits(0x3c00_2000);
        let row_0 = if tid() < 4 { 18.0 } else { 16.0 };
        assert_eq!(f32::from_bits(sums[0]), row_0 * one);
        assert_eq!(f32::from_bits(sums[2]), 16.0 * one);
    });
    assert_eq!(product, None);
}

#[test]
fn a_fence_stands_after_the_loads_of_a() {
    let product = |fence_last: bool| {
        with_a_in_registers(move |sums, mut a, b| {
            // SAFETY: emulated.
            unsafe {
                if !fence_last {
                    wgmma::fence();
                }
                a[3] = shared::load_u32(at(4 * tid()));
                if fence_last {
                    wgmma::fence();
                }
                sums.multiply_registers(a, b, 0);
                wgmma::commit();
                sums.finish();
            }
        })
    };
    assert_eq!(
        (product(true), product(false)),
        (None, Some(Check::AccumulatorInUse))
    );
}

#[test]
fn something_is_in_the_registers_of_a() {
    let undefined = with_a_in_registers(|sums, _, b| {
        let other = Sums::undefined();
        // SAFETY: emulated.
        unsafe {
            wgmma::fence();
            sums.multiply_registers([other[0]; 4], b, 0);
        }
    });
    assert_eq!(undefined, Some(Check::Uninitialized));
}
