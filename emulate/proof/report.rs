//! The report: Markdown, to be pasted into `docs/emulator.md`.

use tilewise::Device;
use tilewise_benches::measure::{machine, power};

use crate::tally::Tally;

/// Collects comparisons, and prints the tables.
pub struct Report {
    /// Whether every comparison has a row, or only every subject.
    details: bool,
    failures: Vec<String>,
    comparisons: usize,
}

impl Report {
    /// Prints the head: where and when this is measured, and how to repeat it.
    pub fn new(device: &Device, seed: u64, details: bool) -> Self {
        let cuda = device.gpu_info().map_or((0, 0), |info| info.driver_version);
        println!("- GPU: {}", device.name());
        println!(
            "- driver: {} (CUDA {}.{})",
            power::driver_version().unwrap_or_else(|| "version unknown".into()),
            cuda.0,
            cuda.1
        );
        println!("- date: {}", machine::today());
        println!("- kernels compiled by: {}", toolchain());
        println!("- seed: {seed}");
        Report {
            details,
            failures: Vec::new(),
            comparisons: 0,
        }
    }

    /// Prints the table of one section.
    pub fn add(&mut self, heading: &str, tallies: Vec<Tally>) {
        self.comparisons += tallies.len();
        for tally in tallies.iter().filter(|tally| !tally.passed()) {
            let reason = tally.failure.as_deref().unwrap_or("nothing was compared");
            let (subject, case) = (&tally.subject, &tally.case);
            self.failures
                .push(format!("{heading}: {subject}, {case}: {reason}"));
        }
        let rows = if self.details {
            tallies
        } else {
            by_subject(tallies)
        };
        println!("\n### {heading}\n");
        println!("| what | operands | results | identical bits | within the bound | beyond |");
        println!("|---|---|---:|---:|---:|---:|");
        for row in &rows {
            let (subject, case) = (&row.subject, &row.case);
            let (values, identical, within) = (row.values, row.identical, row.within);
            let beyond = row.beyond();
            println!("| {subject} | {case} | {values} | {identical} | {within} | {beyond} |");
        }
        if self.details {
            for row in rows.iter().filter(|row| !row.differences.is_empty()) {
                println!("\n{}, {}, the first that differ:\n", row.subject, row.case);
                for difference in &row.differences {
                    println!("- {difference}");
                }
            }
        }
    }

    /// Prints the failures. Returns whether there were none.
    pub fn finish(self) -> bool {
        let failed = self.failures.len();
        println!(
            "\n{} of {} comparisons hold.",
            self.comparisons - failed,
            self.comparisons
        );
        for failure in &self.failures {
            println!("\n- FAILED: {failure}");
        }
        failed == 0 && self.comparisons > 0
    }
}

/// Merges the rows with the same subject into one row, in the order of first appearance.
fn by_subject(tallies: Vec<Tally>) -> Vec<Tally> {
    let mut rows: Vec<(usize, Tally)> = Vec::new();
    for tally in tallies {
        match rows
            .iter_mut()
            .find(|(_, row)| row.subject == tally.subject)
        {
            Some((count, row)) => {
                *count += 1;
                row.add(tally);
            }
            None => rows.push((1, tally)),
        }
    }
    rows.into_iter()
        .map(|(count, mut row)| {
            if count > 1 {
                row.case = format!("{count} kinds");
            }
            row
        })
        .collect()
}

fn toolchain() -> &'static str {
    tilewise::build_info().toolchain.unwrap_or("nothing")
}
