//! `predict`: the picture of a program over time, and its estimate.

use std::process::ExitCode;
use std::time::Duration;

use tilewise_parallel::Error;
use tilewise_parallel::program::{Operation, Queue};
use tilewise_program::predict::{LARGEST, Layer, Prediction, RATE};

use super::bench::shape;
use super::operations::operation;

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
    /// Number of chunks; the estimate chooses where it is not given
    #[arg(long)]
    chunks: Option<usize>,
}

/// Prints the picture and the estimate.
pub fn run(arguments: &Arguments) -> Result<ExitCode, Error> {
    let layer = Layer {
        operation: arguments.operation,
        shape: arguments.shape,
        ranks: arguments.ranks,
    };
    let predicted = layer.predict(arguments.chunks);
    let predicted = predicted.ok_or_else(|| Error::System {
        what: "predicting".into(),
        why: format!("there is at least one rank, and sides are {LARGEST} at most"),
    })?;
    for rank in 0..arguments.ranks {
        for copies in [false, true] {
            println!("{}", line(&predicted, rank, copies));
        }
    }
    let (total, alone) = (predicted.total(), predicted.alone);
    println!(
        "\nestimated, in {} chunks: {:.3} ms, {:.2} × the product alone ({:.3} ms at {:.0} TFLOP/s); \
         not measured",
        predicted.chunks,
        total.as_secs_f64() * 1e3,
        total.as_secs_f64() / alone.as_secs_f64(),
        alone.as_secs_f64() * 1e3,
        RATE / 1e12
    );
    Ok(ExitCode::SUCCESS)
}

/// The products of a rank, or its copies, each drawn by the number of the rank that owns its
/// rows.
fn line(predicted: &Prediction, rank: usize, copies: bool) -> String {
    let total = predicted.total().as_secs_f64();
    let mut picture = vec![' '; WIDTH + 1];
    for (step, span) in predicted.program.steps.iter().zip(&predicted.spans) {
        let Some(owner) = predicted.owner(step) else {
            continue;
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
