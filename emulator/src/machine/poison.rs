//! The value that a load gets from shared memory that nothing has written.
//!
//! A kernel may load such memory if it does not use the value: a pipeline that loads one
//! k-block ahead does so at its end. So the load gets a NaN of a pattern that no
//! instruction produces, and the emulator reports the kernel when it multiplies, converts
//! or stores that NaN.

use super::{Broken, Check, fail, with};

/// One word, and each half of it: a quiet NaN in f32, TF32, f16 and bf16.
pub(crate) const WORD: u32 = 0xffed_ffed;

/// 16 bytes of [`WORD`].
pub(super) const CHUNK: [u8; 16] =
    *b"\xed\xff\xed\xff\xed\xff\xed\xff\xed\xff\xed\xff\xed\xff\xed\xff";

/// Ends the cluster if one of `words` is undefined.
pub(super) fn check(words: &[u32]) {
    if words.contains(&WORD) && with(|cluster, _| cluster.checks()) {
        let detail = "uses a value that it loaded from shared memory that nothing wrote";
        fail(Broken::new(Check::Uninitialized, detail));
    }
}

/// Checks `value`, which a conversion or an arithmetic instruction uses, and returns it.
pub fn used(value: f32) -> f32 {
    if value.to_bits() == WORD {
        check(&[WORD]);
    }
    value
}

/// `convert(value)`. An undefined `value` stays as it is, because a pipeline may convert a
/// value that it then drops.
pub fn keep(value: f32, convert: impl FnOnce(f32) -> u32) -> u32 {
    match value.to_bits() {
        WORD => WORD,
        _ => convert(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunk_is_four_words() {
        assert_eq!(CHUNK, [WORD; 4].map(u32::to_le_bytes).as_flattened());
    }
}
