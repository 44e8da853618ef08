use super::*;
use crate::candidates::candidate::CHOSEN;
use crate::cli::{Cli, Command};
use crate::measure::watch::tests::{PROBLEM, ended};
use crate::measure::watch::{Expected, Watched};
use crate::records::record::tests::sample;
use clap::Parser;
use std::path::Path;

/// Arguments that ask for both kinds of rows in `folder`.
fn arguments(folder: &Path) -> BenchArgs {
    let file = |name: &str| folder.join(name).display().to_string();
    let (json, csv) = (file("rows.json"), file("rows.csv"));
    let words = ["tilewise-bench", "bench", "--wait-limit=0.3"];
    let files = ["--json", &json, "--csv", &csv];
    match Cli::parse_from(words.iter().chain(&files)).command {
        Command::Bench(args) => *args,
        other => unreachable!("the arguments say bench, not {other:?}"),
    }
}

#[test]
fn a_kernel_that_hangs_ends_the_run_with_its_name_and_the_rows_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let name = "commands::bench::tests::a_kernel_that_hangs_ends_the_run_with_its_name_and_the_rows_before_it";
    let [said, error] = ended(name, folder.path(), |folder| {
        let args = arguments(folder);
        let output = Output::new(&args);
        let watch = Watch::new(&args.wait, {
            let output = output.clone();
            move || output.print()
        });
        let mut records = vec![sample("tilewise", "row", 0.25)];
        save(&args, &mut records, &output).unwrap();
        // Not saved, so not measured to the end.
        records.push(sample("tilewise", "col", 0.5));
        let hanging = Expected {
            name: "tilewise hopper_f16 grouped:8 persistent".to_owned(),
            product: Duration::from_millis(1),
        };
        let watched = Watched::new(&watch, PROBLEM, vec![hanging]);
        watched.wait("sustained", 0, 1);
        std::mem::forget(watch);
    });
    assert!(
        error.contains(
            "error: not done within 0.3 s: sustained, 4096x4096x4096 f16 nn, \
             tilewise hopper_f16 grouped:8 persistent"
        ),
        "{error}"
    );
    assert!(
        said.contains("0.2500") && said.contains("1 rows in "),
        "{said}"
    );
    let json = std::fs::read(folder.path().join("rows.json")).unwrap();
    let from_json: Vec<Record> = serde_json::from_slice(&json).unwrap();
    assert_eq!(from_json.len(), 1);
    let csv = csv::Reader::from_path(folder.path().join("rows.csv")).unwrap();
    let rows: Vec<Record> = csv.into_deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(rows, from_json);
}

#[test]
fn a_run_without_rows_has_no_last_words() {
    let args = arguments(Path::new("folder"));
    let output = Output::new(&args);
    assert_eq!(output.text(), "");
    output.keep(&[sample("tilewise", "row", 0.25)]);
    let text = output.text();
    assert!(
        text.contains("0.2500") && text.contains(record_tables::LEGEND),
        "{text}"
    );
    assert!(
        text.ends_with("1 rows in folder/rows.json, folder/rows.csv\n"),
        "{text}"
    );
}

#[test]
fn the_comparison_comes_first_and_the_summary_last() {
    let args =
        match Cli::parse_from(["tilewise-bench", "bench", "--choice", "--shapes=4096"]).command {
            Command::Bench(args) => *args,
            other => unreachable!("the arguments say bench, not {other:?}"),
        };
    let mut records = [
        sample(CHOSEN, "grouped:16", 0.25),
        sample("tilewise", "row", 0.375),
        sample("cuBLASLt 13.1", "", 0.5),
    ];
    record::fill_speedups(&mut records);
    let output = Output::new(&args);
    output.keep(&records);
    let text = output.text();
    let line = text.lines().find(|line| line.starts_with("4096x4096x4096"));
    let cells: Vec<_> = line.unwrap_or_default().split_whitespace().collect();
    assert_eq!(
        cells,
        [
            "4096x4096x4096",
            "kernel",
            "grouped:16",
            "0.375",
            "0.250",
            "1.50"
        ],
        "{text}"
    );
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(at("1.50") < at("median ms"), "{text}");
    assert!(
        at(record_tables::LEGEND) < at("--choice: speedup over cuBLASLt"),
        "{text}"
    );
    assert!(text.contains("2.000"), "{text}");
}
