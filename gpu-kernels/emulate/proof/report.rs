//! The report: Markdown, to be pasted into `docs/emulator.md`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tilewise::Device;

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
            kernel_module_version().unwrap_or_else(|| "version unknown".into()),
            cuda.0,
            cuda.1
        );
        println!("- date: {}", date(SystemTime::now()));
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

    /// Prints what failed. Returns whether nothing did.
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

/// One row for all that have a subject, in the order of the first.
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

/// The version of NVIDIA's kernel module, as it says itself.
fn kernel_module_version() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |word: &&str| {
        word.contains('.')
            && word
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let word = text.split_whitespace().find(is_version)?;
    Some(word.to_owned())
}

fn toolchain() -> &'static str {
    tilewise::build_info().toolchain.unwrap_or("nothing")
}

/// The date in UTC, `2026-01-31` (Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms", `civil_from_days`).
fn date(now: SystemTime) -> String {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let days = since.as_secs() / 86_400 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02}")
}
