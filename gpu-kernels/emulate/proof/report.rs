//! The report: Markdown, to be pasted into `docs/emulator.md`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tilewise::Device;

use crate::tally::Tally;

/// Collects rows, and prints them as they come.
pub struct Report {
    heading: Option<&'static str>,
    failures: Vec<String>,
    rows: usize,
}

impl Report {
    /// Prints the head: where and when this is measured, and how to repeat it.
    pub fn new(device: &Device, seed: u64) -> Self {
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
            heading: None,
            failures: Vec::new(),
            rows: 0,
        }
    }

    /// Prints one row, under `heading`.
    pub fn add(&mut self, heading: &'static str, tally: &Tally) {
        if self.heading != Some(heading) {
            self.heading = Some(heading);
            println!("\n### {heading}\n");
            println!("| what | operands | results | identical bits | within the bound | beyond |");
            println!("|---|---|---:|---:|---:|---:|");
        }
        self.rows += 1;
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            tally.subject,
            tally.case,
            tally.values,
            tally.identical,
            tally.within,
            tally.wrong()
        );
        if !tally.passed() {
            let reason = tally.failure.as_deref().unwrap_or("nothing was compared");
            self.failures
                .push(format!("{}, {}: {reason}", tally.subject, tally.case));
        }
    }

    /// Prints what failed. Returns whether nothing did.
    pub fn finish(self) -> bool {
        println!(
            "\n{} of {} rows hold.",
            self.rows - self.failures.len(),
            self.rows
        );
        for failure in &self.failures {
            println!("\n- FAILED: {failure}");
        }
        self.failures.is_empty() && self.rows > 0
    }
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
