//! `cargo bench --bench choice`: how long the library takes to choose a kernel, an order and a
//! schedule for a product that it has not seen, on one core. It needs no GPU: the choice is the
//! one for an H200.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tilewise::DType;
use tilewise::l2::gpu::GPUS;
use tilewise::select::{self, Catalog, EpilogueForm, Problem, Request, Strides, Target};

/// Extents of the products: powers of two, and others that tiles do not divide.
const EXTENTS: [u32; 8] = [16, 72, 256, 1000, 1536, 4096, 5120, 14336];

/// All products of such extents, row-major.
fn products(input: DType) -> Vec<Problem> {
    let row_major = |columns: u32| Strides::new(columns.into(), 1);
    let mut products = Vec::new();
    for m in EXTENTS {
        for n in EXTENTS {
            products.extend(EXTENTS.map(|k| Problem {
                m,
                n,
                k,
                batches: 1,
                input,
                output: tilewise::OutputType::Input,
                a: row_major(k),
                b: row_major(n),
                c: row_major(n),
                epilogue: EpilogueForm::PLAIN,
            }));
        }
    }
    products
}

fn choice(criterion: &mut Criterion) {
    let gpu = GPUS[0];
    let target = Target {
        compute_capability: gpu.compute_capability,
        sms: gpu.sms,
        // Of a CTA of compute capability 9.0.
        shared_bytes_per_cta: 227 << 10,
        l2_bytes: gpu.l2_bytes,
    };
    // All kernels, whether this build has their PTX or not.
    let catalog = Catalog {
        is_built: |_| true,
        ..Catalog::embedded()
    };
    let mut group = criterion.benchmark_group("choice");
    for input in [DType::F16, DType::Tf32] {
        let products = products(input);
        let mut next = products.iter().cycle();
        group.bench_function(BenchmarkId::from_parameter(input.name()), |bencher| {
            bencher.iter(|| {
                let product = next.next().expect("a cycle has no end");
                let chosen = select::choose(catalog, product, &target, &Request::default());
                black_box(chosen.expect("every product has a kernel"))
            });
        });
    }
    group.finish();
}

criterion_group!(benches, choice);
criterion_main!(benches);
