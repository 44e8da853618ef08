//! The products with epilogues, batches and other types of C that are tested: for each kernel,
//! and with the kernel left to the library.
//!
//! The driver compiles a kernel anew for each form of an epilogue, which takes seconds for a
//! hopper kernel. So a kernel has few forms, which only its name decides, and many products of
//! each: sizes, layouts, batches, values and data differ.

use std::hash::{DefaultHasher, Hash, Hasher};

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use tilewise::{Activation, Bias, DType, Family, Gated, KernelInfo, Major, OutputType};

use crate::arrangement::{Arrangement, DISTINCT, REPEATING};
use crate::case::Data;
use crate::cases::aligned;
use crate::epilogue::{BatchStride, EpilogueCase, Parts, Source};

/// Products for each form.
const PRODUCTS: usize = 18;

/// Forms of a hopper kernel: one product, and a batch.
const HOPPER_FORMS: usize = 2;

/// Forms of a kernel of another family.
const OTHER_FORMS: usize = 6;

/// Products whose kernel the library chooses.
const CHOSEN: usize = 400;

/// The products for `kernel`, whose family multiplies.
pub fn of_kernel(kernel: &'static KernelInfo) -> Vec<EpilogueCase> {
    let mut random = seeded(kernel.name);
    let forms = match kernel.family {
        Family::Hopper => HOPPER_FORMS,
        _ => OTHER_FORMS,
    };
    let mut cases = Vec::new();
    for form in 0..forms {
        let is_batched = form % 2 == 1 && kernel.fused;
        let output = output(&mut random, Some(kernel), kernel.input);
        let parts = parts(&mut random, Some(kernel), is_batched);
        for product in 0..PRODUCTS {
            let index = form * PRODUCTS + product;
            cases.push(case(
                &mut random,
                Some(kernel),
                index,
                output,
                parts,
                is_batched,
            ));
        }
    }
    cases
}

/// Products whose kernel the library chooses.
pub fn unforced() -> Vec<EpilogueCase> {
    let mut random = seeded("unforced");
    (0..CHOSEN)
        .map(|index| {
            let input = choose(
                &mut random,
                &[
                    DType::F16,
                    DType::Bf16,
                    DType::Tf32,
                    DType::F16x3,
                    DType::F32,
                ],
            );
            let is_batched = random.random_bool(0.4);
            let output = output(&mut random, None, input);
            let parts = parts(&mut random, None, is_batched);
            let case = case(&mut random, None, index, output, parts, is_batched);
            EpilogueCase { input, ..case }
        })
        .collect()
}

fn seeded(name: &str) -> StdRng {
    let mut hasher = DefaultHasher::new();
    (name, "epilogue").hash(&mut hasher);
    StdRng::seed_from_u64(hasher.finish())
}

fn output(random: &mut StdRng, kernel: Option<&KernelInfo>, input: DType) -> OutputType {
    use OutputType::{Bf16, F16, F32};
    let only_tma = kernel.filter(|kernel| kernel.c_by_tma_only);
    let output = match only_tma.map(|kernel| kernel.input.bytes()) {
        Some(2) => choose(random, &[F16, Bf16]),
        Some(_) => F32,
        None => choose(random, &[F16, Bf16, F32]),
    };
    // The type of A and B has a name of its own.
    if output.dtype(input) == OutputType::Input.dtype(input) {
        OutputType::Input
    } else {
        output
    }
}

/// An epilogue that `kernel` computes in one launch, if it is a hopper kernel.
fn parts(random: &mut StdRng, kernel: Option<&KernelInfo>, is_batched: bool) -> Parts {
    if kernel.is_some_and(|kernel| !kernel.fused) {
        return Parts::PLAIN;
    }
    let takes_gated = kernel.is_none_or(|kernel| {
        kernel.family != Family::Hopper || kernel.takes_gated() && !is_batched
    });
    let gated = match random.random_range(0..4) {
        0 if takes_gated => Some(Gated::Halves),
        1 if takes_gated => {
            // TMA has no columns two apart where a line is a row.
            let by_rows = kernel.is_some_and(|kernel| kernel.b_major == Some(Major::Mn));
            Some(if by_rows {
                Gated::Halves
            } else {
                Gated::Interleaved
            })
        }
        _ => None,
    };
    Parts {
        scaled: random.random(),
        bias: choose(random, &[None, Some(Bias::PerRow), Some(Bias::PerColumn)]),
        row_scale: random.random_bool(0.4),
        col_scale: random.random_bool(0.4),
        activation: choose(
            random,
            &[
                Activation::Identity,
                Activation::Relu,
                Activation::LeakyRelu(0.25),
                Activation::Gelu,
                Activation::GeluTanh,
                Activation::Silu,
            ],
        ),
        gated,
        has_source: gated.is_none() && random.random(),
    }
}

fn case(
    random: &mut StdRng,
    kernel: Option<&'static KernelInfo>,
    index: usize,
    output: OutputType,
    parts: Parts,
    is_batched: bool,
) -> EpilogueCase {
    let batches = if is_batched {
        choose(random, &[2, 3, 5])
    } else {
        1
    };
    let is_hopper = kernel.is_some_and(|kernel| kernel.family == Family::Hopper);
    let only_tma = kernel.is_some_and(|kernel| kernel.c_by_tma_only);
    let mut arrangements = [(); 3].map(|()| choose(random, &DISTINCT));
    if is_hopper && random.random_bool(0.7) {
        let [a, b] = aligned(kernel.expect("it is a kernel"));
        arrangements = [a, b, arrangements[2]];
    }
    // A batch that repeats a line is no batch of distinct lines, and C has to be one.
    let stride = |random: &mut StdRng, may_share: bool| loop {
        let all = [
            BatchStride::Lines,
            BatchStride::Lines,
            BatchStride::Odd,
            BatchStride::Interleaved,
            BatchStride::Shared,
        ];
        let stride = choose(random, &all);
        if may_share || stride != BatchStride::Shared {
            break stride;
        }
    };
    let mut strides = [
        stride(random, true),
        stride(random, true),
        stride(random, false),
    ];
    let granule = if parts.gated.is_some() { 16 } else { 8 };
    let mut n = side(random, kernel.map_or(128, |kernel| kernel.block.n));
    if parts.gated.is_some() {
        n = n.next_multiple_of(2);
    }
    if only_tma {
        arrangements[2] = Arrangement::RowsPadded;
        strides[2] = BatchStride::Lines;
        n = n.next_multiple_of(granule);
    }
    if is_hopper && parts.gated.is_some() {
        // Both halves of B have to be readable where they are, and C is not transposed.
        let [a, b] = aligned(kernel.expect("it is a kernel"));
        let c = choose(
            random,
            &[
                Arrangement::Rows,
                Arrangement::RowsPadded,
                Arrangement::RowsOdd,
            ],
        );
        arrangements = [a, b, c];
        n = n.next_multiple_of(granule);
    }
    let source = match random.random_range(0..4) {
        _ if !parts.has_source => Source::None,
        0 => Source::InPlace,
        1 => Source::Matrix(choose(random, &REPEATING), stride(random, true)),
        _ => Source::Matrix(choose(random, &DISTINCT), stride(random, true)),
    };
    let m = side(random, kernel.map_or(128, |kernel| kernel.block.m));
    let k = choose(random, &[1, 8, 16, 40, 64, 72, 131, 256]);
    EpilogueCase {
        kernel,
        index,
        input: kernel.map_or(DType::F16, |kernel| kernel.input),
        output,
        shape: (m, n, k),
        batches,
        arrangements,
        strides,
        parts,
        source,
        data: if parts.is_exact() && random.random() {
            Data::Integers
        } else {
            Data::Uniform
        },
    }
}

/// A number of rows or columns: small, or around one or two tiles.
fn side(random: &mut StdRng, block: u32) -> usize {
    let block = block as usize;
    match random.random_range(0..5) {
        0 => random.random_range(1..=9),
        1 => 8 * random.random_range(1..=20),
        2 => block,
        3 => block + random.random_range(1..=9),
        _ => 2 * block + choose(random, &[0, 3, 8]),
    }
}

fn choose<T: Copy>(random: &mut StdRng, from: &[T]) -> T {
    *from.choose(random).expect("not empty")
}
