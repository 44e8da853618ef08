//! `tilewise-bench order`: a tile order drawn, and what the model of L2 says of it.

use crate::atomic_file;
use crate::error::Error;
use crate::page::data::{PageData, Start};
use crate::page::html;
use crate::problem::shape::GemmShape;
use crate::tile_order::analysis::{OrderAnalysis, OrderArgs};
use crate::tile_order::picture;
use std::io::IsTerminal as _;
use tilewise::l2::gpu::GPUS;

/// Draws and counts; returns what to print.
///
/// # Errors
/// The product is too large, or the file cannot be written.
pub fn run(args: &OrderArgs) -> Result<String, Error> {
    let analysis = OrderAnalysis::new(args)?;
    if let Some(path) = &args.svg {
        atomic_file::write(path, picture::svg(&analysis)?.as_bytes())?;
    }
    if let Some(path) = &args.html {
        let page = PageData {
            start: start(&analysis),
            ..PageData::default()
        };
        html::write(&page, path)?;
    }
    if args.json {
        return Ok(format!("{:#}\n", analysis.figures()));
    }
    let coloured = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    Ok(format!(
        "{}\n\n{}\n{}",
        analysis.title(),
        picture::text(&analysis, coloured),
        analysis.summary()
    ))
}

/// Where the explorer of a page starts.
fn start(analysis: &OrderAnalysis) -> Start {
    let GemmShape { m, n, k } = analysis.args.shape;
    let tile = analysis.args.tile;
    Start {
        m,
        n,
        k,
        tile: format!("{}x{}", tile.m, tile.n),
        block_k: tile.k,
        element_bytes: analysis.args.dtype.bytes(),
        order: analysis.order.to_string(),
        gpu: GPUS
            .iter()
            .position(|gpu| gpu.name == analysis.args.gpu.name)
            .expect("a GPU by name is one of the table"),
        sms: analysis.ctas,
    }
}

#[cfg(test)]
mod tests;
