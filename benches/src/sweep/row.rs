//! One candidate on one problem of the sweep, in both regimes.

use crate::candidates::candidate::is_cublaslt;
use crate::error::Error;
use crate::measure::regime::Regime;
use crate::problem::names;
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::records::record::{Record, Status};
use gpu_kernels::OutputType;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A row of the CSV.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepRow {
    /// Name of the GPU.
    pub device: String,
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A.
    pub k: usize,
    /// Type of A, B and C.
    pub dtype: String,
    /// See [`crate::problem::shape::BlasLayout`].
    pub layout: String,
    /// Of [`Record::implementation`].
    pub implementation: String,
    /// Entry point, or algorithm of cuBLASLt.
    pub kernel: String,
    /// Tile order.
    pub order: String,
    /// Schedule.
    pub schedule: String,
    /// Of [`Record::line_classes`]; files from before there were classes have no such column.
    #[serde(default)]
    pub line_classes: Option<u32>,
    /// Median time of one product, cold, ms.
    pub cold_ms: Option<f64>,
    /// Median time of one product, sustained, ms.
    pub sustained_ms: Option<f64>,
}

impl SweepRow {
    /// Whether both are of the same problem.
    pub fn same_problem(&self, other: &SweepRow) -> bool {
        (self.m, self.n, self.k) == (other.m, other.n, other.k)
            && (&self.dtype, &self.layout) == (&other.dtype, &other.layout)
    }

    /// The time in `regime`, ms.
    pub fn time(&self, regime: Regime) -> Option<f64> {
        match regime {
            Regime::Cold => self.cold_ms,
            Regime::Sustained => self.sustained_ms,
            Regime::Wall => None,
        }
    }

    /// Whether the row is cuBLASLt's.
    pub fn is_cublaslt(&self) -> bool {
        is_cublaslt(&self.implementation)
    }

    /// The problem.
    ///
    /// # Errors
    /// The text of the type or the layout is none.
    pub fn problem(&self) -> Result<ProblemSpec, String> {
        Ok(ProblemSpec {
            shape: GemmShape::new(self.m, self.n, self.k),
            layout: self.layout.parse()?,
            dtype: names::parse_dtype(&self.dtype)?,
            output: OutputType::Input,
        })
    }
}

/// The rows of the timed `records`; the records of a problem stand together.
pub fn of_records(records: &[Record]) -> Vec<SweepRow> {
    let mut rows: Vec<SweepRow> = Vec::new();
    let mut first = 0;
    for record in records
        .iter()
        .filter(|record| record.status == Status::Timed)
    {
        let row = SweepRow {
            device: record.device.clone(),
            m: record.m,
            n: record.n,
            k: record.k,
            dtype: record.dtype.clone(),
            layout: record.layout.clone(),
            implementation: record.implementation.clone(),
            kernel: record.kernel.clone(),
            order: record.order.clone(),
            schedule: record.schedule.clone(),
            line_classes: record.line_classes,
            cold_ms: None,
            sustained_ms: None,
        };
        if rows.last().is_none_or(|last| !last.same_problem(&row)) {
            first = rows.len();
        }
        let is_same = |other: &SweepRow| {
            (&other.implementation, &other.kernel, other.line_classes)
                == (&row.implementation, &row.kernel, row.line_classes)
        };
        let at = match rows[first..].iter().position(is_same) {
            Some(at) => first + at,
            None => {
                rows.push(row);
                rows.len() - 1
            }
        };
        match record.regime {
            Regime::Cold => rows[at].cold_ms = record.median_ms,
            Regime::Sustained => rows[at].sustained_ms = record.median_ms,
            Regime::Wall => {}
        }
    }
    rows
}

/// Reads rows.
///
/// # Errors
/// The file cannot be read, or holds other rows.
pub fn read(path: &Path) -> Result<Vec<SweepRow>, Error> {
    let rows = csv::Reader::from_path(path).and_then(|mut reader| reader.deserialize().collect());
    rows.map_err(|source| Error::File {
        path: path.to_owned(),
        reason: format!("no rows of `sweep --csv`: {source}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::files;
    use crate::records::record::tests::sample;

    fn record(kernel: &str, regime: Regime, median_ms: f64) -> Record {
        Record {
            regime,
            ..sample("tilewise", kernel, median_ms)
        }
    }

    #[test]
    fn both_regimes_of_a_candidate_are_one_row_and_survive_the_file() {
        let records = [
            record("grouped:8", Regime::Cold, 1.0),
            record("row", Regime::Cold, 2.0),
            record("grouped:8", Regime::Sustained, 3.0),
        ]
        .map(|record| Record {
            kernel: format!("kernel of {}", record.order),
            ..record
        });
        let rows = of_records(&records);
        let times: Vec<_> = rows
            .iter()
            .map(|row| (row.cold_ms, row.sustained_ms))
            .collect();
        assert_eq!(times, [(Some(1.0), Some(3.0)), (Some(2.0), None)]);

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sweep.csv");
        files::write_csv(&rows, &path).unwrap();
        assert_eq!(read(&path).unwrap(), rows);
        assert!(rows[0].problem().is_ok());
    }
}
