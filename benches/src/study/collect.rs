//! Measures the rows of a study: first bytes, then times, product by product.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use gpu_kernels::{KernelInfo, TileOrder};
use tilewise::Device;

use crate::error::Error;
use crate::measure::regime::Regime;
use crate::measure::watch::Watch;
use crate::problem::names::{kernel_named, schedule_name};
use crate::problem::shape::GemmShape;
use crate::records::record::{Record, Status};
use crate::runner::run::Runner;
use crate::study::counters::Counts;
use crate::study::ncu::{self, NcuOutcome};
use crate::study::products;
use crate::study::row::{StudyRow, TUNER};
use crate::study::row_store::{self, Blank};
use crate::study::study_arguments::StudyArgs;
use crate::study::sweep::Sweep;
use crate::study::tuned::{self, Found};

/// How many rows lie in which file so far, for the last words of a run that is ended.
#[derive(Clone, Default)]
pub struct Kept(Arc<Mutex<Option<(usize, PathBuf)>>>);

impl Kept {
    /// Notes how many rows the file holds.
    pub fn set(&self, rows: usize, path: &Path) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = Some((rows, path.to_owned()));
    }

    /// Prints it.
    pub fn print(&self) {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((rows, path)) = &*kept {
            let path = path.display();
            println!("{rows} rows in {path}; --from {path} reports on them");
        }
    }
}

/// Launches everything once, for a profiler, and prints each launch.
///
/// # Errors
/// The device failed.
pub fn launch_once(sweep: &Sweep, device: &Device, watch: &Watch) -> Result<(), Error> {
    each_shape(sweep, device, |shape, orders| {
        let args = sweep.bench(shape, orders, true);
        let mut runner = Runner::new(&args, device, None, watch)?;
        runner.run(&[sweep.problem(shape)], &mut Vec::new(), &mut |_| Ok(()))
    })
}

/// Measures everything; returns the rows, and the error that ended the run early or left the
/// rows without counters. The file is written after the counting and after each regime of
/// each product; `kept` tells how many rows it has.
///
/// # Errors
/// Nothing could be measured.
pub fn study(
    args: &StudyArgs,
    sweep: &Sweep,
    device: &Device,
    watch: &Watch,
    kept: &Kept,
) -> Result<(Vec<StudyRow>, Option<Error>), Error> {
    // ncu ends by itself, because the program under it has a watch of its own.
    watch.rest();
    let mut study = Study {
        args,
        sweep,
        device,
        watch,
        kept,
        blank: Blank::new(device),
        rows: Vec::new(),
    };
    let counted = match args.no_ncu {
        true => Ok(()),
        false => study.count(),
    };
    if let Err(error) = &counted {
        println!("No counters: {error}");
    }
    let mut measured = 0;
    let timed = each_shape(sweep, device, |shape, orders| {
        measured += 1;
        let count = orders.len() * sweep.kernels.len() * sweep.schedules.len();
        println!(
            "{measured}/{} {shape}  {}; at most {count} candidates",
            sweep.shapes.len(),
            products::why(shape)
        );
        study.time(shape, orders)
    });
    match timed {
        Err(error) if study.rows.is_empty() => Err(error),
        timed => Ok((study.rows, timed.err().or(counted.err()))),
    }
}

/// Calls `visit` with each product and its orders.
fn each_shape(
    sweep: &Sweep,
    device: &Device,
    mut visit: impl FnMut(GemmShape, Vec<TileOrder>) -> Result<(), Error>,
) -> Result<(), Error> {
    let Some(info) = device.gpu_info() else {
        return Err(Error::Usage("the study measures a GPU".to_owned()));
    };
    for &shape in &sweep.shapes {
        visit(shape, sweep.orders_of(shape, &info.target()))?;
    }
    Ok(())
}

/// A study that is under way.
struct Study<'a> {
    args: &'a StudyArgs,
    sweep: &'a Sweep,
    device: &'a Device,
    watch: &'a Watch,
    kept: &'a Kept,
    blank: Blank,
    rows: Vec<StudyRow>,
}

impl Study<'_> {
    /// Writes the rows to their file.
    fn keep(&self) -> Result<(), Error> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let path = self.args.csv.clone();
        let path = path.unwrap_or_else(|| row_store::default_path(&self.rows));
        row_store::write(&self.rows, &path)?;
        self.kept.set(self.rows.len(), &path);
        Ok(())
    }

    /// Makes rows of what `ncu` counts, or prints why there are no counters.
    fn count(&mut self) -> Result<(), Error> {
        let Some(program) = ncu::find(self.args.ncu.as_deref()) else {
            println!("No counters: there is no ncu in PATH or the toolkit's usual folders.");
            return Ok(());
        };
        println!("Counting bytes with {}", program.display());
        let info = self.device.gpu_info();
        let capability = info.map_or((0, 0), |info| info.compute_capability);
        let pairs = match ncu::count(&program, self.sweep, capability)? {
            NcuOutcome::Counted(pairs) => pairs,
            NcuOutcome::Unavailable(reason) => {
                println!("No counters: {reason}");
                return Ok(());
            }
        };
        println!("{} launches counted", pairs.len());
        for (launch, counts) in pairs {
            if let Some(kernel) = kernel_named(&launch.kernel) {
                let at = (launch.order.as_str(), launch.schedule.as_str());
                let row = row_store::entry(&mut self.rows, &self.blank, launch.shape, kernel, at);
                set_counts(row, &counts);
            }
        }
        self.keep()
    }

    /// Times one product in all its orders.
    fn time(&mut self, shape: GemmShape, mut orders: Vec<TileOrder>) -> Result<(), Error> {
        let (sweep, device, watch) = (self.sweep, self.device, self.watch);
        let tuned = match self.args.tune {
            true => tuned::orders(device, sweep, shape, self.args, watch)?,
            false => Vec::new(),
        };
        for (_, _, order) in &tuned {
            if !orders.contains(order) {
                orders.push(*order);
            }
        }
        let bench = sweep.bench(shape, orders, false);
        let mut records = Vec::new();
        let mut save = |records: &mut [Record]| {
            take_down(records, &mut self.rows, &self.blank, shape);
            mark_tuned(&mut self.rows, shape, &tuned);
            self.keep()
        };
        let mut runner = Runner::new(&bench, device, None, watch)?;
        runner.run(&[sweep.problem(shape)], &mut records, &mut save)?;
        for record in records.iter().filter(|record| timed(record).is_none()) {
            println!(
                "  not timed: {} {} {}: {}",
                record.kernel, record.order, record.schedule, record.note
            );
        }
        Ok(())
    }
}

fn set_counts(row: &mut StudyRow, counts: &Counts) {
    row.l2_read_bytes = Some(counts.l2_read_bytes);
    row.l2_hit_rate = counts.l2_hit_rate();
    row.l2_fabric_bytes = counts.l2_fabric_bytes;
    row.dram_read_bytes = Some(counts.dram_read_bytes);
    row.dram_write_bytes = Some(counts.dram_write_bytes);
}

/// Makes rows of the records of `shape`, or completes the rows that exist.
fn take_down(records: &[Record], rows: &mut Vec<StudyRow>, blank: &Blank, shape: GemmShape) {
    for (record, kernel) in records.iter().filter_map(timed) {
        let at = (record.order.as_str(), record.schedule.as_str());
        set_times(row_store::entry(rows, blank, shape, kernel, at), record);
    }
}

/// A record that becomes a row, with its kernel.
fn timed(record: &Record) -> Option<(&Record, &'static KernelInfo)> {
    let is_timed = record.status == Status::Timed;
    Some((record, kernel_named(&record.kernel).filter(|_| is_timed)?))
}

fn set_times(row: &mut StudyRow, record: &Record) {
    let milliseconds = record.levelled_ms.or(record.median_ms);
    let microseconds = milliseconds.map(|time| time * 1e3);
    let tflops = milliseconds.map(|time| record.shape().tflops(time));
    match record.regime {
        Regime::Cold => {
            row.cold_us = microseconds;
            row.cold_error = record.levelled_error;
            row.cold_tflops = tflops;
        }
        Regime::Sustained => {
            row.sustained_us = microseconds;
            row.sustained_error = record.levelled_error;
            row.sustained_tflops = tflops;
            row.sm_clock_mhz = record.sm_clock_mhz;
            row.power_w = record.power_w;
        }
        Regime::Wall => {}
    }
}

fn mark_tuned(rows: &mut [StudyRow], shape: GemmShape, tuned: &[Found]) {
    for row in rows.iter_mut().filter(|row| row.shape() == shape) {
        let is_row = |(kernel, schedule, order): &Found| {
            kernel.name == row.kernel
                && schedule_name(*schedule) == row.schedule
                && order.to_string() == row.order
        };
        if tuned.iter().any(is_row) {
            row.picked_by = TUNER.to_owned();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::record::tests::sample;
    use crate::study::sweep::KERNELS_MEASURED;

    #[test]
    fn rows_are_taken_down_regime_by_regime() {
        let (blank, shape) = (Blank::new(&Device::cpu()), GemmShape::new(4096, 4096, 4096));
        let timed = |regime, milliseconds| Record {
            kernel: KERNELS_MEASURED[0].to_owned(),
            regime,
            ..sample("tilewise", "row", milliseconds)
        };
        let (mut rows, mut records) = (Vec::new(), vec![timed(Regime::Cold, 0.25)]);
        take_down(&records, &mut rows, &blank, shape);
        let times = |rows: &[StudyRow]| (rows[0].cold_us, rows[0].sustained_us);
        assert_eq!((rows.len(), times(&rows)), (1, (Some(250.0), None)));
        records.push(timed(Regime::Sustained, 0.5));
        let mut skipped = timed(Regime::Cold, 1.0);
        skipped.order = "col".to_owned();
        skipped.status = Status::Skipped;
        records.push(skipped);
        take_down(&records, &mut rows, &blank, shape);
        assert_eq!((rows.len(), times(&rows)), (1, (Some(250.0), Some(500.0))));
    }
}
