//! `tilewise-bench study`: in which order the tiles should run, and what that is worth,
//! measured; and whether the model of L2 and the library's choice know it.

use crate::error::Error;
use crate::measure::machine;
use crate::measure::watch::Watch;
use crate::page::data::PageData;
use crate::page::html;
use crate::study::collect::{self, Kept};
use crate::study::row::StudyRow;
use crate::study::study_arguments::StudyArgs;
use crate::study::sweep::Sweep;
use crate::study::{findings, picks, predict, row_store};
use std::time::Duration;

/// Runs the command; prints the report, writes files.
///
/// # Errors
/// There is no GPU and no `--from`, the device failed, or a file cannot be read or
/// written. What was measured before is kept.
pub fn run(args: &StudyArgs) -> Result<(), Error> {
    if let Some(path) = &args.html {
        html::module(path)?;
    }
    if !args.from.is_empty() {
        return again(args);
    }
    let sweep = Sweep::new(args)?;
    let kept = Kept::default();
    let watch = Watch::new(&args.wait, {
        let kept = kept.clone();
        move || kept.print()
    });
    watch.begin(Duration::ZERO, "opening the GPU");
    let device = machine::open_gpu_for("study")?;
    let measured = match args.launch_once {
        true => collect::launch_once(&sweep, &device, &watch).map(|()| None),
        false => collect::study(args, &sweep, &device, &watch, &kept).map(Some),
    };
    watch.rest();
    let result = match measured {
        Ok(None) => Ok(()),
        Ok(Some((mut rows, trouble))) => finish(args, &mut rows).and(trouble.map_or(Ok(()), Err)),
        Err(error) => Err(error),
    };
    watch.close();
    result
}

/// `--from`: predictions and report anew.
fn again(args: &StudyArgs) -> Result<(), Error> {
    let mut all = Vec::new();
    for path in &args.from {
        all.extend(row_store::read(path)?);
    }
    finish(args, &mut row_store::merged(all))
}

/// Picks, predictions, files and report.
fn finish(args: &StudyArgs, rows: &mut [StudyRow]) -> Result<(), Error> {
    predict::predict_all(rows);
    picks::mark_picks(rows);
    let path = match (&args.csv, args.from.is_empty()) {
        (Some(path), _) => Some(path.clone()),
        (None, true) => Some(row_store::default_path(rows)),
        (None, false) => None,
    };
    if let Some(path) = path {
        row_store::write(rows, &path)?;
        println!("{} rows in {}", rows.len(), path.display());
    }
    if let Some(path) = &args.html {
        let page = PageData::default().with_study(rows.to_vec());
        html::write(&page, path)?;
    }
    print!("{}", findings::render(rows));
    Ok(())
}
