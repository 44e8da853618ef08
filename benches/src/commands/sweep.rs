//! `tilewise-bench sweep`: every kernel on drawn problems, and what the rule loses.

use crate::candidates::cublaslt::CublasLt;
use crate::error::Error;
use crate::measure::machine;
use crate::measure::watch::Watch;
use crate::modelled::selection::H200;
use crate::page::data::PageData;
use crate::page::html;
use crate::records::files;
use crate::records::record::Record;
use crate::runner::run::Runner;
use crate::sweep::row::SweepRow;
use crate::sweep::sweep_arguments::SweepArgs;
use crate::sweep::{choices, menu, report, row};
use std::time::Duration;

/// Runs the command; prints the report, writes the file.
///
/// # Errors
/// There is no GPU and no `--from`, the device failed, or a file cannot be read or written.
/// What was measured before is kept.
pub fn run(args: &SweepArgs) -> Result<(), Error> {
    if args.menu {
        let problems = args.bench().problems(&[]);
        print!("{}", menu::render(&problems, args.worst, &H200.target));
        return Ok(());
    }
    if args.choices
        && let Some(path) = &args.csv
    {
        let rows = choices::rows(&args.bench().problems(&[]), &H200).map_err(Error::Usage)?;
        files::write_csv(&rows, path)?;
        println!("{} rows in {}", rows.len(), path.display());
        return Ok(());
    }
    if let Some(path) = &args.against {
        print!("{}", compare(&row::read(path)?).map_err(Error::Usage)?);
        return Ok(());
    }
    if let Some(path) = &args.page {
        html::module(path)?;
    }
    let (mut rows, mut trouble) = (Vec::new(), Ok(()));
    if args.from.is_empty() {
        let mut records = Vec::new();
        trouble = measure(args, &mut records);
        rows = row::of_records(&records);
    }
    for path in &args.from {
        rows.extend(row::read(path)?);
    }
    if let Some(path) = args.csv.as_ref().filter(|_| !rows.is_empty()) {
        println!("{} rows in {}", rows.len(), path.display());
    }
    if !rows.is_empty() {
        print!(
            "{}",
            report::render(&rows, args.worst).map_err(Error::Usage)?
        );
    }
    if let Some(path) = args.page.as_ref().filter(|_| !rows.is_empty()) {
        let page = PageData::default()
            .with_sweep(&rows)
            .map_err(Error::Usage)?;
        html::write(&page, path)?;
        println!("the page is {}", path.display());
    }
    trouble
}

/// Where this build chooses another launch than one that wrote the rows `before`.
fn compare(before: &[SweepRow]) -> Result<String, String> {
    let problems: Vec<_> = before
        .iter()
        .map(SweepRow::problem)
        .collect::<Result<_, _>>()?;
    let now = choices::rows(&problems, &H200)?;
    let changes = choices::changes(before, &now);
    let text = choices::render(&changes);
    Ok(format!(
        "{text}{} of {} problems\n",
        changes.len(),
        before.len()
    ))
}

/// Measures the sweep into `records`, and writes the file after each problem.
fn measure(args: &SweepArgs, records: &mut Vec<Record>) -> Result<(), Error> {
    // The file holds what was measured if the watch ends the run.
    let watch = Watch::new(&args.wait, || {});
    watch.begin(Duration::ZERO, "opening the GPU");
    let device = machine::open_gpu_for("sweep")?;
    let bench = args.bench();
    watch.begin(Duration::ZERO, "opening cuBLASLt");
    let cublaslt = CublasLt::open(&device, None, &bench.python);
    if let Err(reason) = &cublaslt {
        println!("cuBLASLt not measured: {reason}");
    }
    let mut runner = Runner::new(&bench, &device, cublaslt.ok(), &watch)?;
    let mut save = |records: &mut [Record]| match &args.csv {
        Some(path) => files::write_csv(&row::of_records(records), path),
        None => Ok(()),
    };
    let result = runner.run(&bench.problems(&[]), records, &mut save);
    watch.close();
    result
}
