//! `predict`: the picture of a program over time, and its estimate.

use std::process::ExitCode;
use std::time::Duration;

use super::operations::operation;
use tilewise_parallel::Error;
use tilewise_parallel::estimate::{self, Span};
use tilewise_parallel::program::{Buffer, Operation, Part, Program, Queue, Shards, Work};

use super::bench::shape;

/// FLOP a second of large bf16 products on an H200 at its power limit (docs/benchmarks.md).
const RATE: f64 = 670e12;

/// Bytes of an element.
const BYTES: usize = 2;

/// Columns of the picture.
const WIDTH: usize = 72;

/// What to predict.
#[derive(clap::Args)]
pub struct Arguments {
    /// The operation
    #[arg(long, value_parser = operation(), default_value = "all-gather")]
    operation: Operation,
    /// The layer, MxNxK over all ranks
    #[arg(long, value_parser = shape, default_value = "8192x8192x8192")]
    shape: [usize; 3],
    /// Number of ranks
    #[arg(long, default_value_t = 4)]
    ranks: usize,
    /// Number of chunks
    #[arg(long, default_value_t = 1)]
    chunks: usize,
}

/// Prints the picture and the estimate.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let Arguments {
        operation,
        shape: [m, n, k],
        ranks,
        chunks,
    } = *arguments;
    let ranks = ranks.max(1);
    let part = |rank: usize| m * (rank + 1) / ranks - m * rank / ranks;
    let Some(rows) = Shards::new((0..ranks).map(part)) else {
        return Err(Error::NoRanks);
    };
    let (n, k) = match operation {
        Operation::AllGather => (n / ranks, k),
        Operation::ReduceScatter | Operation::AllReduce => (n, k / ranks),
    };
    let program = operation.program(&rows, chunks);
    let product = |rows: usize| Duration::from_secs_f64(2.0 * (rows * n) as f64 * k as f64 / RATE);
    let spans = estimate::timeline(&program, |step| match &program.steps[step].work {
        Work::Start | Work::End => Duration::ZERO,
        Work::Product { a, .. } => product(a.rows.len()),
        Work::Copy { from, .. } => {
            let cols = match from.buffer {
                Buffer::A { .. } => k,
                _ => n,
            };
            estimate::transfer((from.rows.len() * cols * BYTES) as u64)
        }
    });
    let (total, alone) = (estimate::total(&spans), product(m));
    for rank in 0..ranks {
        for copies in [false, true] {
            let line = line(operation, &program, &spans, &rows, (rank, copies));
            println!("{line}");
        }
    }
    println!(
        "\nestimated: {:.3} ms, {:.2} × the product alone ({:.3} ms at {:.0} TFLOP/s); not measured",
        total.as_secs_f64() * 1e3,
        total.as_secs_f64() / alone.as_secs_f64(),
        alone.as_secs_f64() * 1e3,
        RATE / 1e12
    );
    Ok(ExitCode::SUCCESS)
}

/// The products of a rank, or its copies, each drawn by the number of the rank that owns its
/// rows.
fn line(
    operation: Operation,
    program: &Program,
    spans: &[Span],
    rows: &Shards,
    (rank, copies): (usize, bool),
) -> String {
    let total = estimate::total(spans).as_secs_f64();
    let mut picture = vec![' '; WIDTH + 1];
    for (step, span) in program.steps.iter().zip(spans) {
        let owner = match &step.work {
            Work::Product { a, .. } => owner(operation, rows, a),
            Work::Copy { from, .. } => owner(operation, rows, from),
            Work::Start | Work::End => continue,
        };
        if step.rank != rank || (step.queue == Queue::Copy) != copies {
            continue;
        }
        let column = |time: Duration| (time.as_secs_f64() / total * WIDTH as f64).round() as usize;
        let (begin, end) = (column(span.begin), column(span.end));
        let digit = char::from_digit(owner as u32 % 36, 36).unwrap_or('?');
        for place in &mut picture[begin..end.max(begin + 1).min(WIDTH)] {
            *place = digit;
        }
        picture[begin] = '│';
        picture[end.min(WIDTH)] = '│';
    }
    let name = match copies {
        true => "copies ".to_owned(),
        false => format!("rank {rank:<2}"),
    };
    let picture: String = picture.into_iter().collect();
    format!("{name} {}", picture.trim_end())
}

/// The rank that owns some rows: of A in an all-gather, of C in a sum over ranks.
fn owner(operation: Operation, rows: &Shards, part: &Part) -> usize {
    let of_row = |row: usize| (0..rows.ranks()).find(|&rank| rows.range(rank).contains(&row));
    match (operation, part.buffer) {
        (_, Buffer::Gathered { from, .. }) => from,
        (Operation::AllGather, buffer) => buffer.rank(),
        // A ring: the rows of rank d start on rank d + 1.
        (_, Buffer::Made { rank, hop }) => (2 * rows.ranks() + rank - 1 - hop) % rows.ranks(),
        _ => of_row(part.rows.start).unwrap_or(0),
    }
}
