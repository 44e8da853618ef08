//! The page that the tests open: a study of two products in three orders, a sweep of two
//! problems, and the records of a benchmark of one product. The figures are made up; their
//! ratios are known.

use std::path::Path;

use gpu_kernels::DType;
use tilewise_benches::candidates::candidate::{CHOSEN, Label, TILEWISE};
use tilewise_benches::commands::page::{self, PageArgs};
use tilewise_benches::error::Error;
use tilewise_benches::measure::machine::Machine;
use tilewise_benches::measure::regime::Regime;
use tilewise_benches::modelled::selection::{self, H200};
use tilewise_benches::problem::names::Placement;
use tilewise_benches::problem::shape::GemmShape;
use tilewise_benches::problem::spec::ProblemSpec;
use tilewise_benches::records::files;
use tilewise_benches::records::record::Record;
use tilewise_benches::study::row::{CHOOSER, StudyRow};
use tilewise_benches::sweep::row::SweepRow;

/// M of the products, and whether the model was fitted on them.
pub const PRODUCTS: [(usize, bool); 2] = [(4096, true), (8192, false)];

/// Orders of each product.
pub const ORDERS: [&str; 3] = ["grouped:16", "hilbert", "row"];

/// Writes the page by way of the files that `tilewise-bench page` reads.
pub fn write(path: &Path) -> Result<(), Error> {
    let (study, records) = (path.with_extension("csv"), path.with_extension("json"));
    let mut writer = csv::Writer::from_path(&study)?;
    for row in rows() {
        writer.serialize(row)?;
    }
    writer.flush().map_err(|source| Error::io(&study, source))?;
    files::write_json(&bench_records(), &records)?;
    let sweep = path.with_extension("sweep.csv");
    files::write_csv(&sweep_rows(), &sweep)?;
    page::run(&PageArgs {
        study: vec![study],
        sweep: vec![sweep],
        records: Some(records),
        out: path.to_owned(),
    })
}

/// Of two problems, the first is for fitting and the second held out. The rule's kernel takes
/// 1 ms, another kernel of the second problem 0.5, and cuBLASLt 2.
fn sweep_rows() -> Vec<SweepRow> {
    let row = |shape: usize, implementation: &str, kernel: &str, ms: f64| SweepRow {
        device: "a GPU".to_owned(),
        m: shape,
        n: shape,
        k: shape,
        dtype: "bf16".to_owned(),
        layout: "nt".to_owned(),
        implementation: implementation.to_owned(),
        kernel: kernel.to_owned(),
        order: String::new(),
        schedule: String::new(),
        line_classes: None,
        cold_ms: Some(ms),
        sustained_ms: None,
    };
    let of = |shape: usize| {
        let cublaslt = row(shape, "cuBLASLt 13.0", "heuristic 1 of 8", 2.0);
        let problem = cublaslt.problem().expect("a problem");
        let chosen = selection::choose(problem, None, Placement::default(), &H200.target);
        let kernel = chosen.expect("a kernel").kernel.name;
        [cublaslt, row(shape, TILEWISE, kernel, 1.0)]
    };
    let other = row(4096, TILEWISE, "hopper_bf16_ak_bk_other", 0.5);
    of(2048)
        .into_iter()
        .chain(of(4096))
        .chain([other])
        .collect()
}

/// The chooser picks `grouped:16`: the fastest for the smaller product; for the larger,
/// `hilbert` takes a tenth less.
fn rows() -> impl Iterator<Item = StudyRow> {
    PRODUCTS.into_iter().flat_map(|(m, fitted)| {
        ORDERS.map(|order| {
            let product_us = m as f64 / 8.0;
            let time = match (order, fitted) {
                ("row", _) => 2.0,
                ("grouped:16", false) => 1.1,
                _ => 1.0,
            } * product_us;
            let dram = time * 1e6;
            StudyRow {
                device: "a GPU".to_owned(),
                driver: "580".to_owned(),
                date: "2026-11-21".to_owned(),
                peak_tflops: Some(989.0),
                dram_bytes_per_second: Some(4.8e12),
                m,
                n: 8192,
                k: 4096,
                dtype: "f16".to_owned(),
                layout: "nn".to_owned(),
                block_m: 128,
                block_n: 256,
                block_k: 64,
                order: order.to_owned(),
                schedule: "persistent".to_owned(),
                picked_by: if order == "grouped:16" { CHOOSER } else { "" }.to_owned(),
                fitted,
                cold_us: Some(time),
                cold_tflops: Some(GemmShape::new(m, 8192, 4096).tflops(time / 1e3)),
                sustained_us: Some(time * 1.2),
                dram_read_bytes: Some(dram),
                model_dram_read_bytes: Some(dram * 1.05),
                ..StudyRow::default()
            }
        })
    })
}

/// A kernel with a name as long as any.
pub const KERNEL: &str = "hopper_f16_ak_bn_256x192x64_cluster1x2";

/// One product in both regimes: the library's choice, the same kernel in row-major order
/// and another kernel, and two peers. Milliseconds are cold and sustained.
fn bench_records() -> Vec<Record> {
    let problem = ProblemSpec::row_major(GemmShape::new(16384, 16384, 16384), DType::F16);
    [
        (CHOSEN, KERNEL, "groupedn:8", [12.5, 15.0]),
        (TILEWISE, KERNEL, "row", [15.0, 21.0]),
        (TILEWISE, "tensor_core", "row", [40.0, 50.0]),
        ("cuBLASLt 13.1", "", "", [12.5, 16.0]),
        ("Triton 3.6", "", "", [16.0, 20.0]),
    ]
    .into_iter()
    .flat_map(|(implementation, kernel, order, milliseconds)| {
        let label = Label {
            kernel: kernel.to_owned(),
            order: order.to_owned(),
            ..Label::of(implementation)
        };
        let regimes = [Regime::Cold, Regime::Sustained].into_iter();
        regimes.zip(milliseconds).map(move |(regime, time)| {
            let mut record = Record::new(&Machine::default(), problem, &label, regime, 42);
            record.set_times(&[time]);
            record.modelled_dram_gb = match order {
                "" => None,
                "row" => Some(66.18),
                _ => Some(17.19),
            };
            record
        })
    })
    .collect()
}
