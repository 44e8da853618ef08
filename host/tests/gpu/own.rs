//! Tests of the checks themselves: they accept right results and find wrong results. These
//! cases need no GPU.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use clap::Parser as _;
use gpu_kernels::entry::KERNELS;
use tilewise::oracle::Product;
use tilewise::select::{self, Catalog, Choice, EpilogueForm, Problem, Request, Strides, Target};
use tilewise::{DType, Device, Error, Family};

use crate::args::Args;
use crate::arrangement::{Arrangement, Placement};
use crate::case::{Case, Failure, Outcome};
use crate::guarded::Guarded;
use crate::reference::{check, check_exact};
use crate::shared::Shared;
use crate::test::all_tests;
use crate::{capture, cases, random, repeat};

/// A seed like any other.
const SEED: u64 = 3;

/// A test: its name and its function.
pub type OwnCase = (&'static str, fn() -> Result<(), String>);

/// All of them.
pub const CASES: [OwnCase; 10] = [
    ("own/products-on-the-cpu", products_on_the_cpu),
    ("own/a-missing-term-is-found", a_missing_term_is_found),
    ("own/a-bias-is-found", a_bias_is_found),
    ("own/one-bit-is-found", one_bit_is_found),
    ("own/trespass-is-found", trespass_is_found),
    ("own/no-turns-after-a-fault", no_turns_after_a_fault),
    ("own/names-are-unique", names_are_unique),
    ("own/random-cases-come-again", random_cases_come_again),
    ("own/every-kernel-is-drawn", every_kernel_is_drawn),
    ("own/drawn-cases-can-be-planned", drawn_cases_can_be_planned),
];

/// The CPU device passes cases of the same kind, with the same guard bands and
/// bounds. (Its own tests are elsewhere; the reduced set is enough here.)
fn products_on_the_cpu() -> Result<(), String> {
    let cpu = Shared::new(Device::cpu());
    for planned in cases::unforced() {
        if planned.case.input == DType::Tf32 || !planned.quick {
            continue;
        }
        match planned.case.run(&cpu, 1) {
            Ok(Outcome::Right(share)) if share <= 1.0 => {}
            Ok(_) => return Err(format!("{}: not right", planned.case)),
            Err(Failure::Wrong(why)) => return Err(format!("{}: {why}", planned.case)),
            Err(Failure::Error(error)) => return Err(format!("{}: {error}", planned.case)),
            Err(Failure::NotRun) => return Err("the CPU has failed".into()),
        }
    }
    Ok(())
}

/// A row of `len` sums of 64 products, each product 1/4 or -1/4.
fn quarters(len: usize) -> Product {
    let values = (0..len).map(|index| (index % 7) as f64 / 2.0 - 1.0);
    Product {
        shape: [1, 1, len],
        k: 64,
        values: values.collect(),
        magnitudes: vec![16.0; len],
        largest: 0.25,
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
    check(
        &product,
        &found(&product, |_, value| value),
        100,
        DType::F32,
    )?;
    for wrong in [0.25, f64::NAN] {
        let change = |index, value| if index == 57 { value + wrong } else { value };
        must_find(check(&product, &found(&product, change), 100, DType::F32))?;
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
        DType::F32,
    )?;
    must_find(check(
        &product,
        &found(&product, |_, value| value + bias),
        1000,
        DType::F32,
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
    let guarded = Guarded::<f32>::poisoned(Arrangement::RowsOdd.place(5, 4));
    let uploaded = guarded.upload(&Device::cpu());
    let clean = uploaded
        .and_then(|resident| resident.read_back())
        .map_err(|error| error.to_string())?;
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

/// A wrong result fails only its own test; after an error of the driver, no later result
/// can be trusted.
fn no_turns_after_a_fault() -> Result<(), String> {
    let shared = Shared::new(Device::cpu());
    let fault = Error::Driver {
        call: "cuStreamSynchronize",
        code: 700,
        name: "CUDA_ERROR_ILLEGAL_ADDRESS".into(),
    };
    let wrong: Result<(), _> = shared.turn(|_| Err(Failure::Wrong("wrong".into())));
    if wrong.is_ok() || shared.turn(|_| Ok(())).is_err() {
        return Err("no turn after a wrong result".into());
    }
    let late = Error::TimedOut {
        device: "the GPU".into(),
        waited: Duration::from_secs(1),
    };
    for fatal in [fault, late] {
        let shared = Shared::new(Device::cpu());
        let other = shared.of_test("another test".into());
        let failed: Result<(), _> = shared.turn(|_| Err(fatal.clone().into()));
        match (failed, other.turn(|_| Ok(()))) {
            (Err(Failure::Error(_)), Err(Failure::NotRun)) => {}
            _ => return Err(format!("a turn after: {fatal}")),
        }
    }
    Ok(())
}

/// A name as a filter selects one test, and says which case of which seed.
fn names_are_unique() -> Result<(), String> {
    let args = Args::parse_from(["gpu", "--seed", "3"]);
    let mut names = HashSet::new();
    let twice = all_tests(&args)
        .into_iter()
        .find(|test| !names.insert(test.name.clone()));
    match twice {
        Some(test) => Err(format!("{} is the name of two", test.name)),
        None => Ok(()),
    }
}

/// A seed and an index name a case; another seed, another case.
fn random_cases_come_again() -> Result<(), String> {
    let names = |seed| (0..500).map(move |index| random::case(seed, index).to_string());
    if !names(SEED).eq(names(SEED)) {
        return Err("one seed, two sets".into());
    }
    let first: HashSet<String> = names(SEED).collect();
    let again = names(SEED + 1).filter(|name| first.contains(name)).count();
    // Products of a few elements may coincide.
    if first.len() < 495 || again > 5 {
        return Err(format!("{} of 500 differ, {again} came again", first.len()));
    }
    Ok(())
}

/// Every kernel several times, both where it reads the operands in place and
/// where it has to pack them, if it can do both.
fn every_kernel_is_drawn() -> Result<(), String> {
    let mut drawn: HashMap<(&str, bool), usize> = HashMap::new();
    let mut names = HashSet::new();
    for case in (0..random::CASES).map(|index| random::case(SEED, index)) {
        if let Some(kernel) = case.kernel {
            *drawn
                .entry((kernel.entry, case.reads_in_place()))
                .or_default() += 1;
            names.insert(kernel.name);
        }
    }
    for kernel in KERNELS.iter().filter(|kernel| kernel.family.multiplies()) {
        if !names.contains(kernel.name) {
            return Err(format!("{} is never drawn", kernel.name));
        }
        let has_parts = kernel.input.parts() > 1;
        for in_place in [true, false] {
            let possible = if in_place {
                !has_parts
            } else {
                kernel.family == Family::Hopper || has_parts
            };
            let times = drawn.get(&(kernel.entry, in_place)).copied().unwrap_or(0);
            // A C that TMA can write is seldom drawn, and so is an operand without lines.
            let needs_lines = kernel.family == Family::Hopper && !kernel.loads_by_tma;
            let is_rare = kernel.c_by_tma_only || needs_lines && !in_place;
            let least = if is_rare { 1 } else { 3 };
            if possible && times < least {
                return Err(format!(
                    "{}, in place {in_place}: {times} times",
                    kernel.entry
                ));
            }
        }
    }
    Ok(())
}

/// For random cases, the library plans as the tests expect, on an H200.
fn drawn_cases_can_be_planned() -> Result<(), String> {
    let random = (0..random::CASES).map(|index| random::case(SEED, index));
    let captured = capture::cases().into_iter().map(|(_, case, _)| case);
    let repeated = KERNELS
        .iter()
        .filter(|kernel| kernel.family.multiplies())
        .map(|kernel| repeat::in_many_tiles(kernel, repeat::SMS));
    for case in random.chain(captured).chain(repeated) {
        match (choice(&case), case.is_runnable()) {
            (Ok(choice), true) => {
                let forced = case
                    .kernel
                    .is_none_or(|kernel| kernel.name == choice.kernel.name);
                let packs = choice.packed.any() != case.reads_in_place();
                if !forced || case.kernel.is_some() && !packs {
                    return Err(format!("{case}: {choice:?}"));
                }
            }
            (Err(Error::KernelCannotRun { .. }), false) => {}
            (Ok(_), false) => return Err(format!("{case}: planned, but cannot run")),
            (Err(error), _) => return Err(format!("{case}: {error}")),
        }
    }
    Ok(())
}

/// The library's choice for `case` if every kernel is built.
fn choice(case: &Case) -> Result<Choice, Error> {
    let catalog = Catalog {
        kernels: KERNELS,
        is_built: |_| true,
    };
    let h200 = Target {
        compute_capability: (9, 0),
        sms: 132,
        shared_bytes_per_cta: 232_448,
        l2_bytes: 60 << 20,
    };
    let operand = |placement: Placement, bytes: u32| Strides {
        row_stride: placement.layout.row_stride as u64,
        col_stride: placement.layout.col_stride as u64,
        batch_stride: 0,
        alignment: Strides::alignment_of(placement.shift as u64 * u64::from(bytes)),
    };
    let [a, b, c] = case.placements();
    let output = case.output.dtype(case.input).bytes();
    let (m, n, k) = case.shape;
    let problem = Problem {
        m: m as u32,
        n: n as u32,
        k: k as u32,
        batches: 1,
        input: case.input,
        output: case.output,
        a: operand(a, case.input.bytes()),
        b: operand(b, case.input.bytes()),
        c: operand(c, output),
        epilogue: EpilogueForm::PLAIN,
    };
    let request = Request {
        kernel: case.kernel.map(|kernel| kernel.name.to_owned()),
        order: case.walk.map(|(_, order)| order),
        schedule: case.walk.map(|(schedule, _)| schedule),
        packing: case.packing,
        line_classes: case.classes,
        ..Request::default()
    };
    select::choose(catalog, &problem, &h200, &request)
}
