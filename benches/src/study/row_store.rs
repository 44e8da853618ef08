//! The rows of a study: how they are made, told apart, marked and kept.

use crate::error::Error;
use crate::measure::machine::{Machine, today};
use crate::measure::peak::peak_tflops;
use crate::measure::power;
use crate::problem::shape::{BlasLayout, GemmShape};
use crate::records::files::write_csv;
use crate::study::gpus;
use crate::study::products::FITTED;
use crate::study::row::StudyRow;
use gpu_kernels::KernelInfo;
use std::fs;
use std::path::{Path, PathBuf};
use tilewise::Device;

/// What tells the rows of one machine apart: product, kernel, order, schedule.
pub type Key<'a> = (GemmShape, &'a str, &'a str, &'a str);

/// The key of a row.
pub fn key(row: &StudyRow) -> Key<'_> {
    (row.shape(), &row.kernel, &row.order, &row.schedule)
}

/// Rows of one machine on one day without measurements.
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
    pub fn row(
        &self,
        shape: GemmShape,
        kernel: &KernelInfo,
        order: &str,
        schedule: &str,
    ) -> StudyRow {
        let GemmShape { m, n, k } = shape;
        StudyRow {
            peak_tflops: (self.machine.chip).and_then(|chip| peak_tflops(chip, kernel.input)),
            m,
            n,
            k,
            dtype: kernel.input.name().to_owned(),
            layout: BlasLayout::NN.to_string(),
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

/// One row for each key and machine: the last of several, with the figures that it lacks
/// from the rows before it.
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

/// The rows of a study.
///
/// # Errors
/// The file cannot be read, or a row is not one of the study.
pub fn read(path: &Path) -> Result<Vec<StudyRow>, Error> {
    let file = fs::File::open(path).map_err(|source| Error::io(path, source))?;
    let mut reader = csv::Reader::from_reader(file);
    let rows: Result<Vec<_>, _> = reader.deserialize().collect();
    rows.map_err(|source| Error::File {
        path: path.to_owned(),
        reason: format!("no rows of the study: {source}"),
    })
}

/// Writes the rows as CSV. A missing folder is made.
///
/// # Errors
/// The file cannot be written.
pub fn write(rows: &[StudyRow], path: &Path) -> Result<(), Error> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| Error::io(folder, source))?;
    }
    write_csv(rows, path)
}

/// The row of a candidate in `rows`, which is added if it is missing.
pub fn entry<'a>(
    rows: &'a mut Vec<StudyRow>,
    blank: &Blank,
    shape: GemmShape,
    kernel: &KernelInfo,
    (order, schedule): (&str, &str),
) -> &'a mut StudyRow {
    let wanted = (shape, kernel.name, order, schedule);
    let at = rows.iter().position(|row| key(row) == wanted);
    let at = at.unwrap_or_else(|| {
        rows.push(blank.row(shape, kernel, order, schedule));
        rows.len() - 1
    });
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
        assert_eq!(read(&path).unwrap(), rows);
    }

    #[test]
    fn a_file_that_holds_something_else_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("other.csv");
        fs::write(&path, "name,value\nx,1\n").unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(
            message.contains("other.csv") && message.contains("study"),
            "{message}"
        );
    }
}
