//! The program from the outside, on the CPU.

use std::path::Path;
use std::process::{Command, Output};
use tilewise_benches::measure::regime::Regime;
use tilewise_benches::npy::{self, Values};
use tilewise_benches::records::record::{Record, Status};
use tilewise_benches::study::row::StudyRow;
use tilewise_benches::study::row_store;

fn program(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewise-bench"))
        .args(arguments)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn smoke_run_models_orders_and_times_the_cpu() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("records.json");
    let csv = directory.path().join("records.csv");
    let cache = directory.path().join("tune.json");
    let output = program(&[
        "bench",
        "--device=cpu",
        "--smoke",
        "--shapes=1024",
        "--dtypes=f16,f32",
        "--kernels=naive",
        "--orders=row,grouped:4",
        "--tune",
        "--tune-cache",
        cache.to_str().unwrap(),
        "--json",
        json.to_str().unwrap(),
        "--csv",
        csv.to_str().unwrap(),
    ]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("Modelled, not measured"), "{text}");
    assert!(
        text.contains("naive_f16") && text.contains("naive_f32"),
        "{text}"
    );
    assert!(text.contains("grouped:4"), "{text}");
    assert!(text.contains("nothing to measure"), "{text}");
    assert!(!cache.exists());

    let records: Vec<Record> = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let dtypes: Vec<_> = records.iter().map(|record| record.dtype.as_str()).collect();
    assert_eq!(dtypes, ["f16", "f32"]);
    for record in &records {
        assert_eq!(
            (record.status, record.regime),
            (Status::Timed, Regime::Wall)
        );
        assert!(record.median_ms.unwrap() > 0.0);
        assert!(record.relative_error.unwrap() < 1e-3);
        assert_eq!(record.seed, 42);
    }
    let rows = csv::Reader::from_path(&csv).unwrap().into_deserialize();
    let rows: Vec<Record> = rows.collect::<Result<_, _>>().unwrap();
    assert_eq!(rows, records);
}

/// A line for the product before all tables, with the figures of the rows in the table that
/// compares every kernel.
#[test]
fn row_major_order_against_the_librarys_choice_comes_first() {
    let output = program(&[
        "bench",
        "--device=cpu",
        "--smoke",
        "--shapes=4096x24576x1536",
        "--dtypes=bf16",
    ]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let (comparison, tables) = text.split_once("Block loads and L2 traffic").unwrap();
    assert!(comparison.contains("Modelled, not measured"), "{text}");
    for line in comparison.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let cells =
        |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let line = comparison
        .lines()
        .find(|line| line.starts_with("4096x24576x1536"));
    let line = cells(line.unwrap_or_else(|| panic!("{text}")));
    let (kernel, order) = (&line[1], &line[2]);
    assert!(order.starts_with("grouped"), "{line:?}");
    let of_kernel = |order: &str| {
        let rows = tables.lines().map(cells);
        rows.into_iter()
            .find(|row| {
                row.len() > 3
                    && row[0].starts_with("hopper_bf16")
                    && row[0].ends_with(kernel.as_str())
                    && row[3] == order
            })
            .unwrap_or_else(|| panic!("{text}"))
    };
    let number = |text: &String| -> f64 { text.parse().unwrap() };
    for (at, row) in [(3, of_kernel("row")), (4, of_kernel(order))] {
        assert_eq!(line[at], row[8], "{text}");
        let gigabytes = number(&row[11]) + number(&row[12]);
        assert!(
            (number(&line[at + 3]) / gigabytes - 1.0).abs() < 5e-3,
            "{text}"
        );
    }
    for at in [5, 8] {
        let ratio = number(&line[at - 2]) / number(&line[at - 1]);
        assert!(
            ratio > 2.0 && (number(&line[at]) / ratio - 1.0).abs() < 5e-3,
            "{text}"
        );
    }
}

#[test]
fn a_type_the_cpu_lacks_is_a_record_that_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let json = directory.path().join("records.json");
    let output = program(&[
        "bench",
        "--device=cpu",
        "--smoke",
        "--shapes=64",
        "--dtypes=tf32",
        "--json",
        json.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let records: Vec<Record> = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    assert!(!records.is_empty());
    assert!(
        records
            .iter()
            .all(|record| record.status == Status::Skipped)
    );
    assert!(records.iter().all(|record| !record.note.is_empty()));
}

#[test]
fn wrong_options_are_refused_with_what_is_accepted() {
    let output = program(&["bench", "--orders=spiral"]);
    assert!(!output.status.success());
    assert!(
        stderr(&output).contains("grouped:SIZE"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_cost_of_launches_needs_a_gpu() {
    let output = program(&["host-cost", "--launches=100"]);
    if tilewise::Device::gpu(0).is_ok() {
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(
            stdout(&output).contains("difference"),
            "{}",
            stdout(&output)
        );
    } else {
        assert!(!output.status.success());
        assert!(!stderr(&output).is_empty());
    }
}

/// Writes A (2×3), B (3×2) and returns their paths and the path for C.
fn two_matrices<T: npy::NpyElement>(directory: &Path, value: impl Fn(f64) -> T) -> [String; 3] {
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let paths = [path("a.npy"), path("b.npy"), path("c.npy")];
    let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(&value);
    let b = [7.0, 8.0, 9.0, 10.0, 11.0, 12.0].map(&value);
    npy::write(Path::new(&paths[0]), 2, 3, &a).unwrap();
    npy::write(Path::new(&paths[1]), 3, 2, &b).unwrap();
    paths
}

const PRODUCT: [f64; 4] = [58.0, 64.0, 139.0, 154.0];

fn multiplies<T: npy::NpyElement>(flags: &[&str], wrap: impl Fn(Vec<T>) -> Values) {
    let directory = tempfile::tempdir().unwrap();
    let [a, b, c] = two_matrices(directory.path(), T::from_f64);
    let mut arguments = vec!["matmul", &a, &b, "--out", &c, "--device=cpu"];
    arguments.extend(flags);
    let output = program(&arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(
        stdout(&output).contains("2x2 = 2x3 times 3x2"),
        "{}",
        stdout(&output)
    );
    let product = npy::read(Path::new(&c), !flags.is_empty()).unwrap();
    assert_eq!((product.rows, product.cols, product.fortran), (2, 2, false));
    assert_eq!(product.values, wrap(PRODUCT.map(T::from_f64).to_vec()));
}

#[test]
fn matmul_multiplies_every_type() {
    multiplies::<f32>(&[], Values::F32);
    multiplies::<half::f16>(&[], Values::F16);
    multiplies::<half::bf16>(&["--bf16"], Values::Bf16);
}

#[test]
fn matmul_reads_fortran_order() {
    let directory = tempfile::tempdir().unwrap();
    let [a, b, c] = two_matrices(directory.path(), |value| value as f32);
    // The same A, column-major.
    let mut bytes = std::fs::read(&a).unwrap();
    let text = b"'fortran_order': False";
    let at = bytes
        .windows(text.len())
        .position(|window| window == text)
        .unwrap();
    bytes[at..at + text.len()].copy_from_slice(b"'fortran_order': True ");
    let data = bytes.len() - 6 * 4;
    for (index, value) in [1.0f32, 4.0, 2.0, 5.0, 3.0, 6.0].iter().enumerate() {
        bytes[data + 4 * index..][..4].copy_from_slice(&value.to_le_bytes());
    }
    std::fs::write(&a, bytes).unwrap();
    let output = program(&["matmul", &a, &b, "--out", &c, "--device=cpu"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let product = npy::read(Path::new(&c), false).unwrap();
    assert_eq!(
        product.values,
        Values::F32(PRODUCT.map(|x| x as f32).to_vec())
    );
}

#[test]
fn matmul_refuses_what_does_not_fit() {
    let directory = tempfile::tempdir().unwrap();
    let [a, b, c] = two_matrices(directory.path(), |value| value as f32);
    let refusal = |arguments: &[&str]| {
        let output = program(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        stderr(&output)
    };
    let shapes = refusal(&["matmul", &a, &a, "--out", &c, "--device=cpu"]);
    assert!(
        shapes.contains("2x3") || shapes.contains("(2, 3)") || shapes.contains("2×3"),
        "{shapes}"
    );
    npy::write(Path::new(&b), 3, 2, &[half::f16::ONE; 6]).unwrap();
    let types = refusal(&["matmul", &a, &b, "--out", &c, "--device=cpu"]);
    assert!(types.contains("f32") && types.contains("f16"), "{types}");
    let missing = refusal(&["matmul", "gone.npy", &b, "--out", &c, "--device=cpu"]);
    assert!(missing.contains("gone.npy"), "{missing}");
    assert!(!Path::new(&c).exists());
}

#[test]
fn a_page_starts_with_the_order_that_was_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("order.html");
    let page = page.to_str().unwrap();
    let output = program(&[
        "order",
        "--shape=144x288x48",
        "--tile=16x32x16",
        "--order=serpentine:3",
        "--gpu=t4",
        "--sms=9",
        "--html",
        page,
    ]);
    if !output.status.success() {
        // Built without WebAssembly: the reason says how to get it.
        let message = stderr(&output);
        assert!(
            message.contains("order.html") && message.contains("WebAssembly"),
            "{message}"
        );
        return;
    }
    let text = std::fs::read_to_string(page).unwrap();
    for setting in [
        r#""m":144,"n":288,"k":48,"tile":"16x32","blockK":16,"elementBytes":2"#,
        r#""order":"serpentine:3","gpu":3,"sms":9"#,
    ] {
        assert!(text.contains(setting), "{setting}");
    }
}

#[test]
fn a_page_is_made_of_files_that_exist() {
    for (option, file) in [
        ("--study", "gone.csv"),
        ("--sweep", "gone.csv"),
        ("--records", "gone.json"),
    ] {
        let output = program(&["page", option, file, "--out", "page.html"]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(file), "{}", stderr(&output));
    }
    assert!(!Path::new("page.html").exists());
}

#[test]
fn a_study_without_a_gpu_says_that_it_needs_one() {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewise-bench"))
        .args(["study", "--quick"])
        .env("CUDA_VISIBLE_DEVICES", "")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let message = stderr(&output);
    assert!(
        message.contains("measures a GPU") && message.contains("--from"),
        "{message}"
    );
}

#[test]
fn a_study_is_reported_again_from_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name);
    let row = |m, order: &str, sustained_us| StudyRow {
        device: "NVIDIA H200".to_owned(),
        m,
        n: 4096,
        k: 4096,
        dtype: "f16".to_owned(),
        layout: "nn".to_owned(),
        kernel: "hopper_f16_ak_bn_128x256x64".to_owned(),
        order: order.to_owned(),
        schedule: "grid1d".to_owned(),
        dram_read_bytes: Some(1e9 + sustained_us),
        sustained_us: Some(sustained_us),
        ..StudyRow::default()
    };
    // The second file measures one order again.
    let parts = [
        vec![row(2048, "row", 150.0), row(2048, "hilbert", 100.0)],
        vec![row(2048, "row", 120.0)],
    ];
    for (rows, name) in parts.iter().zip(["first.csv", "second.csv"]) {
        row_store::write(rows, &file(name)).unwrap();
    }
    let whole = file("whole.csv");
    let output = program(&[
        "study",
        "--from",
        file("first.csv").to_str().unwrap(),
        "--from",
        file("second.csv").to_str().unwrap(),
        "--csv",
        whole.to_str().unwrap(),
    ]);
    let text = stdout(&output);
    assert!(output.status.success(), "{}", stderr(&output));
    let row_major = text
        .lines()
        .find(|line| line.starts_with("always row-major"))
        .unwrap_or_else(|| panic!("{text}"));
    assert!(row_major.contains(" 20.00 "), "{row_major}");
    let rows = row_store::read(&whole).unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!(rows[0].sustained_us, Some(120.0));
    assert!(rows.iter().all(|row| row.model_dram_read_bytes.is_some()));
    assert!(rows.iter().any(|row| row.picked_by.contains("model")));
}
