//! Why a run could not go on.

use std::io;
use std::path::{Path, PathBuf};

/// Every way a command can fail.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library refused or failed.
    #[error(transparent)]
    Tilewise(#[from] tilewise::Error),
    /// A driver call of the harness failed.
    // Debug: cust's Display panics where the driver has no text for the code.
    #[error("CUDA driver: {0:?}")]
    Cuda(#[from] cust::error::CudaError),
    /// A driver call that cust does not wrap failed.
    #[error("CUDA driver: {call} answered {code:?}")]
    Driver {
        /// The function.
        call: &'static str,
        /// What it answered.
        code: cust::sys::CUresult,
    },
    /// A call of cuBLASLt failed.
    #[error("cuBLASLt: {call} answered {status}")]
    CublasLt {
        /// The function.
        call: &'static str,
        /// Its status, by name.
        status: String,
    },
    /// A product that `order` cannot model or draw, or a file it cannot write: which,
    /// and what would be accepted.
    #[error("{0}")]
    Order(String),
    /// A `.npy` file that holds no matrix we can multiply.
    #[error("{}: {reason}", path.display())]
    Npy {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what would be right.
        reason: String,
    },
    /// A page that cannot be written, or a file that holds nothing for one.
    #[error("{}: {reason}", path.display())]
    Page {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The counters of Nsight Compute could not be read.
    #[error("ncu: {0}")]
    Counters(#[from] CounterError),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// Records could not become JSON.
    #[error("JSON: {0}")]
    Json(serde_json::Error),
    /// Records could not become CSV.
    #[error("CSV: {0}")]
    Csv(#[from] csv::Error),
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
}

/// Why counters could not be used.
#[derive(Debug, PartialEq, thiserror::Error)]
pub enum CounterError {
    /// There is no table.
    #[error("its log has no table of counters")]
    NoTable,
    /// The table is no CSV.
    #[error("its table cannot be read: {0}")]
    Csv(String),
    /// A column is missing.
    #[error("its table has no column {0}")]
    Column(&'static str),
    /// A unit that is not known.
    #[error("{column} is in '{unit}'; accepted: byte or sector, with K, M, G or T before it")]
    Unit {
        /// The column.
        column: &'static str,
        /// Its unit.
        unit: String,
    },
    /// A value that is no number.
    #[error("{column} of launch {row} is '{value}', which is no number")]
    Value {
        /// The column.
        column: &'static str,
        /// The row, from 0.
        row: usize,
        /// What stands there.
        value: String,
    },
    /// A line of the program that names no launch.
    #[error("'{0}' names no launch; expected: launch N: SHAPE TYPE tilewise KERNEL ORDER SCHEDULE")]
    Launch(String),
    /// As many rows as launches are needed.
    #[error("it counted {counted} launches of {launched}")]
    Count {
        /// Launches that the program printed.
        launched: usize,
        /// Rows of the table.
        counted: usize,
    },
    /// The kernel of a row is not that of the launch.
    #[error("launch {row} was of {launched}, and it counted {counted}")]
    Kernel {
        /// The row, from 0.
        row: usize,
        /// What the program launched.
        launched: String,
        /// What the row names.
        counted: String,
    },
}

impl Error {
    /// An [`Error::Io`] about `path`.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// What the driver function `call` answered, as a result.
///
/// # Errors
/// Any answer but success.
pub fn driver(call: &'static str, code: cust::sys::CUresult) -> Result<(), Error> {
    match code {
        cust::sys::CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Error::Driver { call, code }),
    }
}
