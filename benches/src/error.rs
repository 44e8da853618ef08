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
        /// Its answer.
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
    /// `order` cannot model or draw the product, or cannot write a file; the text says what
    /// is accepted.
    #[error("{0}")]
    Order(String),
    /// A file does not hold what it should, or cannot be made.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what would be right.
        reason: String,
    },
    /// The counters of Nsight Compute could not be read.
    #[error("ncu: {0}")]
    Counters(String),
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

impl Error {
    /// An [`Error::Io`] about `path`.
    pub fn io(path: &Path, source: io::Error) -> Self {
        Error::Io {
            path: path.to_owned(),
            source,
        }
    }
}

/// The answer of the driver function `call` as a result.
///
/// # Errors
/// Any answer but success.
pub fn driver(call: &'static str, code: cust::sys::CUresult) -> Result<(), Error> {
    match code {
        cust::sys::CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(Error::Driver { call, code }),
    }
}
