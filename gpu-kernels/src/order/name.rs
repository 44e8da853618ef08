//! The names of orders, as the command line and reports write them.

use alloc::borrow::ToOwned as _;
use alloc::format;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use super::TileOrder;

impl TileOrder {
    /// The name without the group's size.
    fn name(self) -> &'static str {
        match self {
            TileOrder::RowMajor => "row",
            TileOrder::ColumnMajor => "col",
            TileOrder::GroupedM { .. } => "grouped",
            TileOrder::GroupedN { .. } => "groupedn",
            TileOrder::SerpentineM { .. } => "serpentine",
            TileOrder::SerpentineN { .. } => "serpentinen",
            TileOrder::Morton => "morton",
            TileOrder::Hilbert => "hilbert",
        }
    }

    /// The group's size, where there are groups.
    fn size(self) -> Option<u32> {
        match self {
            TileOrder::GroupedM { size }
            | TileOrder::GroupedN { size }
            | TileOrder::SerpentineM { size }
            | TileOrder::SerpentineN { size } => Some(size),
            TileOrder::RowMajor
            | TileOrder::ColumnMajor
            | TileOrder::Morton
            | TileOrder::Hilbert => None,
        }
    }
}

/// Writes `row` or `grouped:8`, for example; [`TileOrder::from_str`] reads it.
impl fmt::Display for TileOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size() {
            Some(size) => write!(f, "{}:{size}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

/// Reads the name of an order; groups have a size of at least 1.
///
/// ```
/// use gpu_kernels::TileOrder;
/// assert_eq!("grouped:8".parse(), Ok(TileOrder::GroupedM { size: 8 }));
/// assert_eq!("hilbert".parse(), Ok(TileOrder::Hilbert));
/// assert_eq!(
///     "zigzag".parse::<TileOrder>().unwrap_err().to_string(),
///     "'zigzag' is no order; accepted: row, col, grouped:SIZE, groupedn:SIZE, \
///      serpentine:SIZE, serpentinen:SIZE, morton, hilbert, with a SIZE of at least 1"
/// );
/// ```
impl FromStr for TileOrder {
    type Err = ParseOrderError;

    fn from_str(text: &str) -> Result<TileOrder, ParseOrderError> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, size.parse().ok().filter(|size| *size > 0)),
            None => (text, None),
        };
        let sized = text.contains(':');
        TileOrder::all(size.unwrap_or(1))
            .into_iter()
            .find(|order| order.name() == name && order.size().is_some() == sized)
            .filter(|_| size.is_some() == sized)
            .ok_or_else(|| ParseOrderError {
                text: text.to_owned(),
            })
    }
}

/// A text that names no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseOrderError {
    text: String,
}

impl fmt::Display for ParseOrderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let accepted = TileOrder::all(1).map(|order| match order.size() {
            Some(_) => format!("{}:SIZE", order.name()),
            None => order.name().to_owned(),
        });
        write!(
            f,
            "'{}' is no order; accepted: {}, with a SIZE of at least 1",
            self.text,
            accepted.join(", ")
        )
    }
}

impl core::error::Error for ParseOrderError {}
