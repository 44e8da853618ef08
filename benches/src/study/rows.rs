//! The rows of a study: how they are made, told apart, marked and kept.

use std::fs;
use std::path::{Path, PathBuf};

use gpu_kernels::{KernelInfo, TileOrder};
use tilewise::Device;

use super::gpus;
use super::groups::{self, Group, are_compared};
use super::plan::{self, Picks};
use super::products::FITTED;
use crate::choice;
use crate::date::today;
use crate::device::Machine;
use crate::error::Error;
use crate::page::data::StudyRow;
use crate::peak::peak_tflops;
use crate::power;
use crate::report;
use crate::shape::{Layout, Shape};

/// What a row measures: product, kernel, order, schedule.
pub type Key = (Shape, String, String, String);

/// The product of a row.
pub fn shape(row: &StudyRow) -> Shape {
    Shape::new(row.m, row.n, row.k)
}

/// What a row measures.
pub fn key(row: &StudyRow) -> Key {
    let StudyRow {
        kernel,
        order,
        schedule,
        ..
    } = row.clone();
    (shape(row), kernel, order, schedule)
}

/// Rows of one machine on one day, nothing measured.
pub struct Blank {
    row: StudyRow,
    machine: Machine,
}

impl Blank {
    /// Rows of `device` today.
    pub fn new(device: &Device) -> Blank {
        let machine = Machine::of(device);
        let driver = match power::driver_version() {
            Some(version) => format!("{version} (CUDA {})", machine.driver),
            None => format!("CUDA {}", machine.driver),
        };
        let row = StudyRow {
            dram_bytes_per_second: gpus::named(&machine.device)
                .map(|gpu| gpu.dram_bytes_per_second),
            sms: device.gpu_info().map(|info| info.sms),
            l2_bytes: device.gpu_info().map(|info| info.l2_bytes),
            device: machine.device.clone(),
            driver,
            date: today(),
            ..StudyRow::default()
        };
        Blank { row, machine }
    }

    /// The row of one candidate.
    pub fn row(&self, shape: Shape, kernel: &KernelInfo, order: &str, schedule: &str) -> StudyRow {
        let Shape { m, n, k } = shape;
        StudyRow {
            peak_tflops: (self.machine.chip).and_then(|chip| peak_tflops(chip, kernel.input)),
            m,
            n,
            k,
            dtype: kernel.input.name().to_owned(),
            layout: Layout::NN.to_string(),
            kernel: kernel.name.to_owned(),
            block_m: kernel.block.m,
            block_n: kernel.block.n,
            block_k: kernel.block.k,
            cluster: match kernel.cluster.ctas() {
                1 => String::new(),
                _ => format!("{}x{}", kernel.cluster.m, kernel.cluster.n),
            },
            order: order.to_owned(),
            schedule: schedule.to_owned(),
            fitted: FITTED.contains(&shape),
            ..self.row.clone()
        }
    }
}

/// In [`StudyRow::picked_by`]: the library, with the kernel and the schedule forced.
pub const CHOOSER: &str = "chooser";
/// CUTLASS's heuristic.
pub const CUTLASS: &str = "cutlass";
/// The least time by the model among the orders measured; of equal times, the fewest bytes.
pub const MODEL: &str = "model";
/// The library's tuner.
pub const TUNER: &str = "tuner";

/// Whether `rule` picks the row's order.
pub fn is_picked_by(row: &StudyRow, rule: &str) -> bool {
    row.picked_by.split('+').any(|name| name == rule)
}

/// Writes into [`StudyRow::picked_by`] which rules pick the row's order by today's library
/// and the row's predictions; the tuner's picks stay. Of a GPU that is not known, none are
/// written. Also marks again what the model was fitted on.
pub fn mark_picks(rows: &mut [StudyRow]) {
    let groups = groups::groups(rows);
    let decided: Vec<(Option<Picks>, Option<&str>)> = groups
        .iter()
        .map(|group| (picks(group.rows[0]), least_by_model(group)))
        .collect();
    let marks: Vec<String> = rows
        .iter()
        .map(|row| {
            let at = groups
                .iter()
                .position(|group| are_compared(group.rows[0], row));
            let (picks, by_model) = decided[at.expect("each row is in a group")];
            let order = row.order.parse::<TileOrder>().ok();
            let rules = [
                (
                    CHOOSER,
                    picks.is_some_and(|picks| order == Some(picks.chooser)),
                ),
                (
                    CUTLASS,
                    picks.is_some_and(|picks| order == Some(picks.cutlass)),
                ),
                (MODEL, by_model == Some(row.order.as_str())),
                (TUNER, is_picked_by(row, TUNER)),
            ];
            let picking = rules.iter().filter(|rule| rule.1).map(|rule| rule.0);
            picking.collect::<Vec<_>>().join("+")
        })
        .collect();
    for (row, mark) in rows.iter_mut().zip(marks) {
        row.fitted = FITTED.contains(&shape(row));
        row.picked_by = mark;
    }
}

fn picks(row: &StudyRow) -> Option<Picks> {
    let kernel = plan::kernel(&row.kernel)?;
    let schedule = choice::parse_schedule(&row.schedule).ok()?;
    let target = gpus::target(row)?;
    Picks::of(
        plan::problem(shape(row), kernel.input),
        kernel,
        schedule,
        &target,
    )
    .ok()
}

fn least_by_model<'a>(group: &Group<'a>) -> Option<&'a str> {
    let cost = |row: &StudyRow| {
        let bytes = row.model_dram_read_bytes? + row.model_dram_write_bytes?;
        Some((row.model_us?, bytes))
    };
    let predicted = group.rows.iter().filter_map(|&row| Some((cost(row)?, row)));
    let least = predicted.min_by(|((a_us, a_bytes), _), ((b_us, b_bytes), _)| {
        a_us.total_cmp(b_us).then(a_bytes.total_cmp(b_bytes))
    });
    least.map(|(_, row)| row.order.as_str())
}

/// One row for each key and machine: of several, the last, and what it was not measured
/// for from the ones before.
pub fn merged(rows: Vec<StudyRow>) -> Vec<StudyRow> {
    let mut merged: Vec<StudyRow> = Vec::with_capacity(rows.len());
    for row in rows {
        let same = |other: &&mut StudyRow| other.device == row.device && key(other) == key(&row);
        match merged.iter_mut().find(same) {
            Some(before) => *before = completed(row, before),
            None => merged.push(row),
        }
    }
    merged
}

/// `row` with the times of `before` where it has none, and its bytes likewise: each kind
/// from one measurement.
fn completed(mut row: StudyRow, before: &StudyRow) -> StudyRow {
    if row.cold_us.is_none() {
        row.cold_us = before.cold_us;
        row.cold_tflops = before.cold_tflops;
        row.cold_error = before.cold_error;
    }
    if row.sustained_us.is_none() {
        row.sustained_us = before.sustained_us;
        row.sustained_tflops = before.sustained_tflops;
        row.sustained_error = before.sustained_error;
        row.sm_clock_mhz = before.sm_clock_mhz;
        row.power_w = before.power_w;
    }
    if row.dram_read_bytes.is_none() {
        row.l2_read_bytes = before.l2_read_bytes;
        row.l2_hit_rate = before.l2_hit_rate;
        row.l2_fabric_bytes = before.l2_fabric_bytes;
        row.dram_read_bytes = before.dram_read_bytes;
        row.dram_write_bytes = before.dram_write_bytes;
    }
    row
}

/// `docs/study/GPU-DATE.csv`.
pub fn default_path(rows: &[StudyRow]) -> PathBuf {
    let (device, date) = match rows.first() {
        Some(row) => (row.device.as_str(), row.date.clone()),
        None => ("none", today()),
    };
    let name = match gpus::named(device) {
        Some(gpu) => gpu.name.to_owned(),
        None => device
            .to_lowercase()
            .replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
    };
    Path::new("docs/study").join(format!("{name}-{date}.csv"))
}

/// Writes the rows as CSV, into a folder that is made where there is none.
///
/// # Errors
/// The file cannot be written.
pub fn write(rows: &[StudyRow], path: &Path) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    }
    report::write_csv(rows, path)
}

/// The row of a candidate in `rows`, made where there is none.
pub fn entry<'a>(
    rows: &'a mut Vec<StudyRow>,
    blank: &Blank,
    shape: Shape,
    kernel: &KernelInfo,
    (order, schedule): (&str, &str),
) -> &'a mut StudyRow {
    let row = blank.row(shape, kernel, order, schedule);
    let key_of_row = key(&row);
    let at = match rows.iter().position(|other| key(other) == key_of_row) {
        Some(at) => at,
        None => {
            rows.push(row);
            rows.len() - 1
        }
    };
    &mut rows[at]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::groups::tests::row;

    #[test]
    fn of_two_measurements_the_later_one_stays() {
        let timed = |order, cold_us| StudyRow {
            cold_us: Some(cold_us),
            ..row(512, order)
        };
        let other_gpu = StudyRow {
            device: "NVIDIA A100".to_owned(),
            ..timed("row", 9.0)
        };
        let rows = vec![
            timed("row", 1.0),
            timed("col", 2.0),
            other_gpu.clone(),
            timed("row", 3.0),
        ];
        assert_eq!(
            merged(rows),
            [timed("row", 3.0), timed("col", 2.0), other_gpu]
        );
    }

    #[test]
    fn what_the_later_one_did_not_measure_is_kept() {
        let counted = StudyRow {
            cold_us: Some(1.0),
            sustained_us: Some(1.5),
            dram_read_bytes: Some(7.0),
            ..row(512, "row")
        };
        let timed = StudyRow {
            cold_us: Some(2.0),
            ..row(512, "row")
        };
        let both = StudyRow {
            cold_us: Some(2.0),
            ..counted.clone()
        };
        assert_eq!(merged(vec![counted, timed]), [both]);
    }

    #[test]
    fn rules_mark_what_they_pick() {
        let measured = |order: &str, us, bytes| StudyRow {
            kernel: plan::KERNELS_MEASURED[0].to_owned(),
            model_us: Some(us),
            model_dram_read_bytes: Some(bytes),
            model_dram_write_bytes: Some(1.0),
            ..row(8192, order)
        };
        let mut rows = vec![
            measured("row", 5.0, 9.0),
            measured("hilbert", 4.0, 3.0),
            measured("morton", 4.0, 2.0),
        ];
        let cutlass = picks(&rows[0]).unwrap().cutlass;
        rows.push(measured(&cutlass.to_string(), 6.0, 1.0));
        rows[0].picked_by = "tuner+model+other".to_owned();
        mark_picks(&mut rows);
        assert!(rows[0].fitted);
        assert!(is_picked_by(&rows[0], TUNER) && !is_picked_by(&rows[0], MODEL));
        assert!(!is_picked_by(&rows[1], MODEL) && is_picked_by(&rows[2], MODEL));
        assert!(is_picked_by(&rows[3], CUTLASS));
    }

    #[test]
    fn the_file_is_named_after_gpu_and_day() {
        let mut row = row(512, "row");
        row.date = "2026-11-21".to_owned();
        let path = default_path(std::slice::from_ref(&row));
        assert_eq!(path, Path::new("docs/study/h200-2026-11-21.csv"));
        row.device = "NVIDIA L40S".to_owned();
        let path = default_path(&[row]);
        assert_eq!(path, Path::new("docs/study/nvidia-l40s-2026-11-21.csv"));
    }

    #[test]
    fn a_written_study_reads_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new").join("study.csv");
        let rows = [row(512, "row"), row(512, "groupedn:8")];
        write(&rows, &path).unwrap();
        assert_eq!(crate::page::read_study(&path).unwrap(), rows);
    }
}
