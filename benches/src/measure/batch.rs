//! What the sustained regime enqueues at once: one product or, where products are short, a
//! CUDA graph of many.
//!
//! Where a launch takes longer on the host than on the GPU, launches one by one measure the
//! host. A graph is enqueued once for all its launches, so the GPU has the next launch at
//! hand when one ends, which is what a model replayed from a graph gets too. Triton's
//! `do_bench_cudagraph` measures in this way.
//!
//! - The way is chosen for a problem, not for a candidate: all in graphs if any
//!   is short ([`SHORT_MS`]), so that a ratio never compares two ways.
//! - If one candidate cannot be captured, none is, and its record says why.
//! - A graph keeps how its launches follow each other. Short launches of
//!   tilewise may start while the one ahead still runs ("programmatic stream
//!   serialization"), in a graph by programmatic edges; cuBLASLt's, by default,
//!   wait for its end. Both are what a user of that library gets.
//! - Graphs themselves do not overlap: every candidate pays a handover of a microsecond or
//!   two for [`GRAPH_MS`] of launches.

use crate::error::Error;
use crate::measure::cuda_graph::{Executable, Graph};
use crate::measure::watch::Watched;
use cust::stream::Stream;

/// Enqueues (GPU) or makes (CPU) one product of the candidate of this number.
pub type Launch<'a> = &'a mut dyn FnMut(usize) -> Result<(), Error>;

/// Products below this many milliseconds are short. A launch takes the host 2 to
/// 10 µs ([`crate::commands::host_cost`] measures tilewise's): five times that, so that a
/// slow host, or one that pauses, still keeps the stream's queue full. The time
/// it is compared with is a cold one, which is longer than a sustained one:
/// products just below are captured without need, which changes nothing.
pub const SHORT_MS: f64 = 0.05;

/// About how many milliseconds of launches make a graph: enough that its
/// handover is lost in them (0.2 %), and far more than `cuGraphLaunch` takes on
/// the host.
pub const GRAPH_MS: f64 = 1.0;

/// Fewest and most products in a graph. The fewest are for the slow candidates
/// of a problem with a short one.
const PRODUCTS: std::ops::RangeInclusive<usize> = 10..=1000;

/// Whether a problem is launched from graphs, by the expected time of a product
/// of each candidate, ms.
pub fn is_short(expected_ms: &[f64]) -> bool {
    expected_ms.iter().any(|&expected| expected < SHORT_MS)
}

/// Products in the graph of a candidate that takes `expected_ms` for one.
pub fn products_per_graph(expected_ms: f64) -> usize {
    let products = (GRAPH_MS / expected_ms).ceil() as usize;
    products.clamp(*PRODUCTS.start(), *PRODUCTS.end())
}

/// The candidates of a problem, each with what is enqueued of it at once.
pub struct Batches<'a> {
    launch: Launch<'a>,
    /// One for each candidate; none where products are launched one by one.
    graphs: Vec<Batch<Executable<'a>>>,
    refusal: Option<Refusal>,
}

/// A graph of some products.
#[derive(Debug, PartialEq)]
struct Batch<G> {
    graph: G,
    products: usize,
}

/// The candidate that could not be captured, and the reason.
#[derive(Debug, PartialEq)]
struct Refusal {
    candidate: usize,
    why: String,
}

impl<'a> Batches<'a> {
    /// Batches of products that take about `expected_ms`, a candidate each; all
    /// have run before. Graphs have been launched once, which uploads them.
    ///
    /// # Errors
    /// A launch failed. A capture that fails is no error: see [`Self::refusal`].
    pub fn new(
        stream: &'a Stream,
        watched: &Watched,
        expected_ms: &[f64],
        launch: Launch<'a>,
    ) -> Result<Self, Error> {
        let (graphs, refusal) = graphs(expected_ms, |candidate, products| {
            watched.wait("as a graph", candidate, products);
            let captured =
                Graph::captured(stream, || (0..products).try_for_each(|_| launch(candidate)));
            let graph = captured?.instantiate(stream)?;
            // SAFETY: `launch` borrows what its launches work on, for 'a; and
            // the next line waits for the stream.
            unsafe { graph.launch() }?;
            stream.synchronize()?;
            Ok(graph)
        });
        // An error here has nothing to do with the capture.
        stream.synchronize()?;
        Ok(Batches {
            launch,
            graphs,
            refusal,
        })
    }

    /// Products of `candidate` in a graph; `None` where they are launched one
    /// by one.
    pub fn per_graph(&self, candidate: usize) -> Option<usize> {
        self.graphs.get(candidate).map(|batch| batch.products)
    }

    /// Why `candidate` could not be captured, if its capture failed.
    pub fn refusal(&self, candidate: usize) -> Option<&str> {
        let refusal = self.refusal.as_ref()?;
        (refusal.candidate == candidate).then_some(refusal.why.as_str())
    }

    /// Enqueues one batch of `candidate`.
    ///
    /// # Errors
    /// The launch failed.
    pub fn enqueue(&mut self, candidate: usize) -> Result<(), Error> {
        match self.graphs.get(candidate) {
            // SAFETY: `launch` borrows what its launches work on, for 'a, which outlives
            // this value; the code that ends 'a waits for the stream, as after launches one
            // by one.
            Some(batch) => unsafe { batch.graph.launch() },
            None => (self.launch)(candidate),
        }
    }
}

/// A graph of every candidate by `capture(candidate, products)`; none, if none
/// is short or one refuses.
fn graphs<G>(
    expected_ms: &[f64],
    mut capture: impl FnMut(usize, usize) -> Result<G, Error>,
) -> (Vec<Batch<G>>, Option<Refusal>) {
    if !is_short(expected_ms) {
        return (Vec::new(), None);
    }
    let mut batches = Vec::with_capacity(expected_ms.len());
    for (candidate, &expected) in expected_ms.iter().enumerate() {
        let products = products_per_graph(expected);
        match capture(candidate, products) {
            Ok(graph) => batches.push(Batch { graph, products }),
            Err(error) => {
                let why = format!("not captured, so all were launched one by one: {error}");
                return (Vec::new(), Some(Refusal { candidate, why }));
            }
        }
    }
    (batches, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_short_candidate_puts_all_in_graphs() {
        assert!(is_short(&[0.004, 3.0]));
        assert!(is_short(&[0.3, 0.0499]));
        assert!(!is_short(&[0.05, 3.0]));
        assert!(!is_short(&[]));
        let (graphs, refusal) = graphs(&[0.004, 3.0], |candidate, _| Ok(candidate));
        let sizes: Vec<_> = graphs.iter().map(|batch| batch.products).collect();
        assert_eq!(sizes, [250, 10]);
        assert_eq!((graphs[1].graph, refusal), (1, None));
    }

    #[test]
    fn a_graph_is_a_millisecond_of_ten_products_or_more() {
        assert_eq!(products_per_graph(0.04), 25);
        assert_eq!(products_per_graph(0.03), 34);
        assert_eq!(products_per_graph(0.1), 10);
        assert_eq!(products_per_graph(20.0), 10);
        // Events have a resolution: a time of zero must not make an endless graph.
        assert_eq!(products_per_graph(0.0), 1000);
    }

    #[test]
    fn long_products_are_not_captured() {
        let (graphs, refusal) = graphs(&[0.05, 0.06], |_, _| -> Result<(), Error> {
            panic!("captured")
        });
        assert_eq!((graphs, refusal), (Vec::new(), None));
    }

    #[test]
    fn if_one_refuses_none_is_in_a_graph() {
        let mut captured = Vec::new();
        let (graphs, refusal) = graphs(&[0.01; 3], |candidate, _| {
            captured.push(candidate);
            match candidate {
                1 => Err(Error::Usage("it waits".to_owned())),
                _ => Ok(()),
            }
        });
        assert_eq!(captured, [0, 1]);
        assert!(graphs.is_empty());
        let refusal = refusal.unwrap();
        assert_eq!(refusal.candidate, 1);
        assert!(refusal.why.ends_with("one by one: it waits"), "{refusal:?}");
    }

    #[test]
    fn without_graphs_products_are_launched_one_by_one() {
        let mut launched = Vec::new();
        let mut launch = |candidate| {
            launched.push(candidate);
            Ok(())
        };
        let mut batches = Batches {
            launch: &mut launch,
            graphs: Vec::new(),
            refusal: Some(Refusal {
                candidate: 1,
                why: "it waits".to_owned(),
            }),
        };
        assert_eq!((batches.per_graph(0), batches.per_graph(1)), (None, None));
        assert_eq!(batches.refusal(0), None);
        assert_eq!(batches.refusal(1), Some("it waits"));
        for candidate in [1, 0, 1] {
            batches.enqueue(candidate).unwrap();
        }
        drop(batches);
        assert_eq!(launched, [1, 0, 1]);
    }
}
