//! Conversions that kernels compute without the instruction.

use gpu_kernels::isa::convert::bf16_from_f32 as by_integers;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise_emulator::semantics::convert::{bf16_from_f32, f32_from_bf16};

#[test]
fn bf16_by_integers_is_what_the_instruction_gives() {
    let mut random = StdRng::seed_from_u64(2);
    for _ in 0..100_000 {
        let value = f32::from_bits(random.random());
        if value.is_nan() {
            assert!(f32_from_bf16(by_integers(value) as u16).is_nan());
        } else {
            assert_eq!(by_integers(value), bf16_from_f32(value).into(), "{value:e}");
        }
    }
    // The upper half of this NaN alone would be an infinity.
    assert_eq!(by_integers(f32::from_bits(0x7f80_0001)), 0x7fc0);
    assert_eq!(by_integers(-f32::MAX), 0xff80);
}
