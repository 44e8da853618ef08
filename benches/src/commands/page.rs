//! `tilewise-bench page`: the page from the files of an earlier run.

use crate::error::Error;
use crate::page::data::PageData;
use crate::page::html;
use crate::study::row_store;
use crate::sweep::row;
use clap::Args;
use std::fs;
use std::path::PathBuf;

/// Options of `page`.
#[derive(Debug, Args)]
pub struct PageArgs {
    /// Rows of the study, as CSV.
    #[arg(long, value_name = "CSV")]
    pub study: Vec<PathBuf>,
    /// Rows of the sweep, as `sweep --csv` writes them.
    #[arg(long, value_name = "CSV")]
    pub sweep: Vec<PathBuf>,
    /// Records of a benchmark, as `bench --json` writes them.
    #[arg(long, value_name = "JSON")]
    pub records: Option<PathBuf>,
    /// Where to write the page.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
}

/// `page`: writes the page from files of an earlier run.
///
/// # Errors
/// A file cannot be read or written, or this build has no WebAssembly.
pub fn run(args: &PageArgs) -> Result<(), Error> {
    let mut study = Vec::new();
    for path in &args.study {
        study.extend(row_store::read(path)?);
    }
    let mut sweep = Vec::new();
    for path in &args.sweep {
        sweep.extend(row::read(path)?);
    }
    let mut page = PageData::default().with_study(study);
    page = page.with_sweep(&sweep).map_err(Error::Usage)?;
    if let Some(path) = &args.records {
        let text = fs::read_to_string(path).map_err(|source| Error::io(path, source))?;
        let records = serde_json::from_str(&text).map_err(|source| Error::File {
            path: path.to_owned(),
            reason: format!("no records of `bench --json`: {source}"),
        })?;
        page = page.with_records(records);
    }
    html::write(&page, &args.out)
}
