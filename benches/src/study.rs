//! `study`: in which order the tiles should run, and what that is worth, measured; and
//! whether the model of L2 and the library's choice know it.
//!
//! Times are those of [`crate::runner`], bytes those of Nsight Compute's counters. Both
//! become rows of [`StudyRow`], the CSV of `docs/study/`; the report is made from the rows
//! alone, so that it can be made again from the file: `--from`.
//!
//! | module | question it answers |
//! |---|---|
//! | [`products`], [`plan`] | what is measured, and who would pick which order? |
//! | [`measure`], [`tuned`] | how long does it take? |
//! | [`ncu`], [`counters`] | how many bytes move? |
//! | [`rows`] | what is a row, and where are they kept? |
//! | [`predict`], [`gpus`] | what does the model say? |
//! | [`groups`], [`accuracy`], [`regret`], [`report`] | what follows? |

pub mod accuracy;
pub mod counters;
pub mod gpus;
pub mod groups;
pub mod measure;
pub mod ncu;
pub mod plan;
pub mod predict;
pub mod products;
pub mod regret;
pub mod report;
pub mod rows;
pub mod tuned;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Args;
use gpu_kernels::{Schedule, TileOrder};

use crate::choice::{self, KernelChoice};
use crate::cli;
use crate::device;
use crate::error::Error;
use crate::page;
use crate::page::data::{PageData, StudyRow};
use crate::shape::Shape;
use crate::watch::{WaitArgs, Watch};
use plan::Plan;

/// Options of `study`.
#[derive(Clone, Debug, Args)]
pub struct StudyArgs {
    /// Shapes, MxNxK or one number for a cube, separated by commas. [default: 16 of all kinds]
    #[arg(long, value_delimiter = ',')]
    pub shapes: Vec<Shape>,
    /// Entry points, separated by commas.
    /// [default: hopper_f16_ak_bn_128x256x64,hopper_f16_ak_bn_128x128x64]
    #[arg(long, value_delimiter = ',')]
    pub kernels: Vec<KernelChoice>,
    /// Tile orders, as `bench` has them; what the library and CUTLASS would choose is
    /// measured too. [default: 12 of all kinds]
    #[arg(long, value_delimiter = ',')]
    pub orders: Vec<TileOrder>,
    /// Schedules.
    #[arg(
        long,
        value_delimiter = ',',
        value_parser = choice::parse_schedule,
        default_value = "grid1d"
    )]
    pub schedules: Vec<Schedule>,
    /// Seconds of launches of each candidate in the sustained regime, in slices of 0.2.
    #[arg(long, default_value = "0.6", value_parser = cli::seconds)]
    pub sustain: Duration,
    /// Also measure the order that the library's tuner finds for each product and kernel.
    #[arg(long)]
    pub tune: bool,
    /// Few products and orders, and little time for each: does everything run?
    #[arg(long)]
    pub quick: bool,
    /// Where to write the rows. [default: docs/study/GPU-DATE.csv; with --from, nowhere]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Also write the page with these rows.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Measure nothing: read rows that were measured before, predict and report anew. Rows
    /// of several files are one study.
    #[arg(long, value_name = "CSV")]
    pub from: Vec<PathBuf>,
    /// Count no bytes.
    #[arg(long)]
    pub no_ncu: bool,
    /// Path of Nsight Compute's `ncu`. [default: from PATH or the toolkit's usual folders]
    #[arg(long, value_name = "PATH", conflicts_with = "no_ncu")]
    pub ncu: Option<PathBuf>,
    /// Seed of the inputs, and of the order in which candidates take turns.
    #[arg(long, default_value_t = 42)]
    pub seed: u64,
    /// How long waits may take.
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Launch everything once, in a printed order: what runs under `ncu`.
    #[arg(long, hide = true)]
    pub launch_once: bool,
}

/// Runs the command; prints the report, writes files.
///
/// # Errors
/// There is no GPU and no `--from`, the device failed, or a file cannot be read or
/// written. What was measured before is kept.
pub fn run(args: &StudyArgs) -> Result<(), Error> {
    if let Some(path) = &args.html {
        page::module(path)?;
    }
    if !args.from.is_empty() {
        return again(args);
    }
    let plan = Plan::new(args)?;
    let kept = Kept::default();
    let watch = Watch::new(&args.wait, {
        let kept = kept.clone();
        move || kept.print()
    });
    watch.begin(Duration::ZERO, "opening the GPU");
    let device = device::open(Some(cli::DeviceChoice::Gpu)).map_err(|error| {
        Error::Usage(format!(
            "the study measures a GPU, and there is none here ({error}); --from CSV reports on \
             rows that were measured before"
        ))
    })?;
    let measured = match args.launch_once {
        true => measure::launch_once(&plan, &device, &watch).map(|()| None),
        false => measure::study(args, &plan, &device, &watch, &kept).map(Some),
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

/// Where the rows are that were measured so far, for who ends the run.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Option<(usize, PathBuf)>>>);

impl Kept {
    /// So many are there.
    pub fn set(&self, rows: usize, path: &Path) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((rows, path.to_owned()));
    }

    fn print(&self) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((rows, path)) = &*kept {
            let path = path.display();
            println!("{rows} rows in {path}; --from {path} reports on them");
        }
    }
}

/// `--from`: predictions and report anew.
fn again(args: &StudyArgs) -> Result<(), Error> {
    let mut all = Vec::new();
    for path in &args.from {
        all.extend(page::read_study(path)?);
    }
    finish(args, &mut rows::merged(all))
}

/// Picks, predictions, files and report.
fn finish(args: &StudyArgs, rows: &mut [StudyRow]) -> Result<(), Error> {
    predict::predict_all(rows);
    rows::mark_picks(rows);
    let path = match (&args.csv, args.from.is_empty()) {
        (Some(path), _) => Some(path.clone()),
        (None, true) => Some(rows::default_path(rows)),
        (None, false) => None,
    };
    if let Some(path) = path {
        rows::write(rows, &path)?;
        println!("{} rows in {}", rows.len(), path.display());
    }
    if let Some(path) = &args.html {
        let page = PageData::default().with_study(rows.to_vec());
        page::write(&page, path)?;
    }
    print!("{}", report::render(rows));
    Ok(())
}
