//! `bench`, `order_figure` and `traffic`: the programs' figures for a notebook. They return
//! JSON, which the package turns into lists and dictionaries.

use clap::Parser as _;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use serde_json::json;
use tilewise_benches::cli::{Cli, Command};
use tilewise_benches::commands::rows;
use tilewise_benches::error::Error;
use tilewise_benches::tile_order::analysis::{OrderAnalysis, OrderArgs};
use tilewise_benches::tile_order::picture;

/// The records of `tilewise-bench bench` with these options, and why no GPU was measured.
#[pyfunction]
pub fn bench(py: Python, options: Vec<String>) -> PyResult<String> {
    let Command::Bench(args) = parse("bench", options)? else {
        unreachable!("the command is named");
    };
    let files = [&args.json, &args.csv, &args.html];
    if args.ncu || files.into_iter().any(Option::is_some) {
        return Err(PyValueError::new_err(
            "ncu, json, csv, html: accepted by `tilewise-bench bench` only",
        ));
    }
    let measured = py.detach(|| rows::measure(&args)).map_err(to_python)?;
    Ok(json!({ "rows": measured.records, "no_gpu": measured.no_gpu }).to_string())
}

/// The picture of a tile order, as SVG.
#[pyfunction]
pub fn order_figure(options: Vec<String>) -> PyResult<String> {
    let analysis = OrderAnalysis::new(&order_options(options)?).map_err(to_python)?;
    picture::svg(&analysis).map_err(to_python)
}

/// What the model of L2 says of a tile order.
#[pyfunction]
pub fn traffic(options: Vec<String>) -> PyResult<String> {
    let analysis = OrderAnalysis::new(&order_options(options)?).map_err(to_python)?;
    Ok(analysis.figures().to_string())
}

fn order_options(options: Vec<String>) -> PyResult<OrderArgs> {
    let Command::Order(args) = parse("order", options)? else {
        unreachable!("the command is named");
    };
    if args.json || args.svg.is_some() || args.html.is_some() {
        return Err(PyValueError::new_err(
            "json, svg, html: accepted by `tilewise-bench order` only",
        ));
    }
    Ok(args)
}

/// The options of a command of `tilewise-bench`, as the program reads them.
fn parse(command: &str, options: Vec<String>) -> PyResult<Command> {
    let words = ["tilewise-bench".to_owned(), command.to_owned()];
    match Cli::try_parse_from(words.into_iter().chain(options)) {
        Ok(cli) => Ok(cli.command),
        Err(error) => Err(PyValueError::new_err(error.to_string())),
    }
}

/// `RuntimeError` for what a device or its driver did, else `ValueError`.
fn to_python(error: Error) -> PyErr {
    match error {
        Error::Tilewise(error) => crate::error::to_python(error),
        Error::Cuda(_) | Error::Driver { .. } | Error::CublasLt { .. } => {
            PyRuntimeError::new_err(error.to_string())
        }
        other => PyValueError::new_err(other.to_string()),
    }
}
