//! The checks, checked: they pass what is right and find what is wrong. These
//! cases need no GPU.

use tilewise::oracle::Product;
use tilewise::{DType, Device, Error};

use crate::arrangement::Arrangement;
use crate::case::{Failure, Outcome};
use crate::cases;
use crate::guarded::Guarded;
use crate::reference::{check, check_exact};

/// Name and what it does.
pub type OwnCase = (&'static str, fn() -> Result<(), String>);

/// All of them.
pub const CASES: [OwnCase; 5] = [
    ("own/products-on-the-cpu", products_on_the_cpu),
    ("own/a-missing-term-is-found", a_missing_term_is_found),
    ("own/a-bias-is-found", a_bias_is_found),
    ("own/one-bit-is-found", one_bit_is_found),
    ("own/trespass-is-found", trespass_is_found),
];

/// The CPU device passes cases of the same kind, with the same guard bands and
/// bounds. (Its own tests are elsewhere; the reduced set is enough here.)
fn products_on_the_cpu() -> Result<(), String> {
    let cpu = Device::cpu();
    for planned in cases::unforced() {
        if planned.case.input == DType::Tf32 || !planned.quick {
            continue;
        }
        match planned.case.run(&cpu, 1) {
            Ok(Outcome::Right(share)) if share <= 1.0 => {}
            Ok(_) => return Err(format!("{}: not right", planned.case)),
            Err(Failure::Wrong(why)) => return Err(format!("{}: {why}", planned.case)),
            Err(Failure::Error(error)) => return Err(format!("{}: {error}", planned.case)),
        }
    }
    Ok(())
}

/// A row of `len` sums of 64 products, each product 1/4 or -1/4.
fn quarters(len: usize) -> Product {
    let values = (0..len).map(|index| (index % 7) as f64 / 2.0 - 1.0);
    Product {
        k: 64,
        values: values.collect(),
        magnitudes: vec![16.0; len],
    }
}

fn found(product: &Product, change: impl Fn(usize, f64) -> f64) -> Vec<f32> {
    let values = product.values.iter().enumerate();
    values
        .map(|(index, value)| change(index, *value) as f32)
        .collect()
}

fn must_find(result: Result<f64, String>) -> Result<(), String> {
    match result {
        Ok(_) => Err("passed what is wrong".into()),
        Err(_) => Ok(()),
    }
}

fn a_missing_term_is_found() -> Result<(), String> {
    let product = quarters(100);
    check(&product, &found(&product, |_, value| value), 100)?;
    for wrong in [0.25, f64::NAN] {
        let change = |index, value| if index == 57 { value + wrong } else { value };
        must_find(check(&product, &found(&product, change), 100))?;
    }
    Ok(())
}

/// Errors that each element could have, but not all of them.
fn a_bias_is_found() -> Result<(), String> {
    let product = quarters(1000);
    let bias = 0.9 * product.bound(0, DType::F32, DType::F32);
    check(
        &product,
        &found(
            &product,
            |index, value| {
                if index == 3 { value + bias } else { value }
            },
        ),
        1000,
    )?;
    must_find(check(
        &product,
        &found(&product, |_, value| value + bias),
        1000,
    ))
}

fn one_bit_is_found() -> Result<(), String> {
    let product = quarters(100);
    let exact = found(&product, |_, value| value);
    check_exact(&product, &exact, 100)?;
    let mut wrong = exact;
    wrong[99] = f32::from_bits(wrong[99].to_bits() ^ 1);
    must_find(check_exact(&product, &wrong, 100))
}

fn trespass_is_found() -> Result<(), String> {
    let guard = || -> Result<Guarded<f32>, Error> {
        Guarded::poisoned(&Device::cpu(), Arrangement::RowsOdd.place(5, 4))
    };
    let guarded = guard().map_err(|error| error.to_string())?;
    let clean = guarded.read_back().map_err(|error| error.to_string())?;
    if guarded.trespass(&clean).is_some() || !guarded.is_unchanged(&clean) {
        return Err("found what is not there".into());
    }
    // Before the first element, between the rows (their pitch is 7), after the last.
    let first = (clean.len() - 32) / 2;
    for place in [-1, 4, 4 * 7 + 4] {
        let mut touched = clean.clone();
        touched[first.strict_add_signed(place)] = 0.0;
        if guarded.trespass(&touched) != Some(place) || guarded.is_unchanged(&touched) {
            return Err(format!("missed a write {place} elements after the first"));
        }
    }
    Ok(())
}
