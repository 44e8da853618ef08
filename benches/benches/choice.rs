//! `cargo bench --bench choice`: how long the library takes to choose a kernel, an order and a
//! schedule for a product that it has not seen, on one core. It needs no GPU: the choice is the
//! one for an H200, as if every kernel were built.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tilewise::{DType, OutputType};
use tilewise_benches::modelled::selection::{self, H200};
use tilewise_benches::problem::names::Placement;
use tilewise_benches::problem::shape::{BlasLayout, GemmShape};
use tilewise_benches::problem::spec::ProblemSpec;

/// Extents of the products: powers of two, and others that tiles do not divide.
const EXTENTS: [usize; 8] = [16, 72, 256, 1000, 1536, 4096, 5120, 14336];

/// All products of such extents, row-major.
fn products(dtype: DType) -> Vec<ProblemSpec> {
    let mut products = Vec::new();
    for m in EXTENTS {
        for n in EXTENTS {
            products.extend(EXTENTS.map(|k| ProblemSpec {
                shape: GemmShape::new(m, n, k),
                layout: BlasLayout::NN,
                dtype,
                output: OutputType::Input,
            }));
        }
    }
    products
}

fn choice(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("choice");
    for dtype in [DType::F16, DType::Tf32] {
        let products = products(dtype);
        let mut next = products.iter().cycle();
        group.bench_function(BenchmarkId::from_parameter(dtype.name()), |bencher| {
            bencher.iter(|| {
                let product = *next.next().expect("a cycle has no end");
                let chosen = selection::choose(product, None, Placement::default(), &H200.target);
                black_box(chosen.expect("every product has a kernel"))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, choice);
criterion_main!(benches);
