//! Records as a table for a terminal, as JSON and as CSV.

use crate::error::Error;
use crate::file;
use crate::record::{Record, Status};
use crate::table::Table;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// The table of every problem among `records`, in the order they were measured.
pub fn render(records: &[Record]) -> String {
    let mut text = String::new();
    for problem in problems(records) {
        let first = problem[0];
        let _ = writeln!(
            text,
            "\n{}  {} -> {}  layout {}",
            first.shape(),
            first.dtype,
            first.output,
            first.layout
        );
        text += &table(&problem).render();
        // The same in each regime, said once.
        let mut notes: Vec<String> = Vec::new();
        for record in problem.iter().filter(|record| !record.note.is_empty()) {
            let verdict = match record.status {
                Status::Timed => "note",
                Status::Wrong => "WRONG RESULT, not timed",
                Status::Skipped => "not run",
            };
            let note = shorten(&record.note);
            let note = format!("  {verdict}: {}: {note}\n", label(record));
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        text.extend(notes);
    }
    text
}

/// Records grouped by problem; groups and members keep their first order.
pub(crate) fn problems(records: &[Record]) -> Vec<Vec<&Record>> {
    let mut groups: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        match groups
            .iter_mut()
            .find(|group| group[0].same_problem(record))
        {
            Some(group) => group.push(record),
            None => groups.push(vec![record]),
        }
    }
    groups
}

/// The beginning of a long text. (The library names every kernel it rejected;
/// the records keep that, a terminal need not.)
pub fn shorten(text: &str) -> String {
    const CHARACTERS: usize = 160;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

fn label(record: &Record) -> String {
    [
        record.implementation.as_str(),
        &record.kernel,
        &record.order,
        &record.schedule,
    ]
    .into_iter()
    .filter(|part| !part.is_empty())
    .collect::<Vec<_>>()
    .join(" ")
}

fn table(records: &[&Record]) -> Table {
    let mut table = Table::new([
        "regime",
        "implementation",
        "kernel",
        "order",
        "schedule",
        "CTAs",
        "median ms",
        "q1-q3",
        "TFLOP/s",
        "% peak",
        "x row",
        "x cuBLASLt",
        "model GB",
        "MHz",
        "W",
        "throttle",
    ]);
    let number = |value: Option<f64>, digits: usize| {
        value.map_or(String::new(), |value| format!("{value:.digits$}"))
    };
    for record in records.iter().filter(|r| r.status == Status::Timed) {
        let mut implementation = record.implementation.clone();
        if !record.interleaved {
            implementation.push('*');
        }
        let mut regime = record.regime.name().to_owned();
        if record.products_per_graph.is_some() {
            regime.push('+');
        }
        let spread = match (record.q1_ms, record.q3_ms) {
            (Some(q1), Some(q3)) => format!("{q1:.4}-{q3:.4}"),
            _ => String::new(),
        };
        table.row([
            regime,
            implementation,
            record.kernel.clone(),
            record.order.clone(),
            record.schedule.clone(),
            record.ctas.map_or(String::new(), |ctas| ctas.to_string()),
            number(record.median_ms, 4),
            spread,
            number(
                record.tflops,
                if record.tflops < Some(10.0) { 3 } else { 1 },
            ),
            number(record.share_of_peak.map(|share| share * 100.0), 1),
            number(record.speedup_over_row_major, 3),
            number(record.over_cublaslt(), 3),
            number(record.modelled_dram_gb, 3),
            number(record.sm_clock_mhz, 0),
            number(record.power_w, 0),
            record.throttle.clone(),
        ]);
    }
    table
}

/// How to read the tables, printed once below them.
pub const LEGEND: &str = "\
median ms: one product. q1-q3: quartiles. TFLOP/s: 2MNK / median.
x row: speedup over row-major order, same kernel and schedule: ratio of medians.
x cuBLASLt: speedup over cuBLASLt in the same round, median over rounds (with a *: ratio of medians).
tilewise (chosen): nothing forced; (tuned): measured by the tuner. model GB: DRAM traffic by the L2 model, not measured.
cold: L2 overwritten before each launch. sustained: back to back, in slices. Each round in its own random order.
sustained+: short products (under 50 us), all of the problem launched from CUDA graphs: the host's launch is not measured.
   tilewise's short launches overlap the end of the one ahead there, as in a stream; cuBLASLt's default launches do not.
*: timed in its own process by its own script (sustained: from a CUDA graph), not interleaved with the rest.";

/// Writes records as a JSON array.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(records: &[Record], path: &Path) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(records).map_err(Error::Json)?;
    file::write(path, (text + "\n").as_bytes())
}

/// Writes records, or rows of another kind, as CSV with a head line.
///
/// # Errors
/// The file cannot be written.
pub fn write_csv(records: &[impl Serialize], path: &Path) -> Result<(), Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for record in records {
        writer.serialize(record)?;
    }
    let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error);
    file::write(path, &bytes.map_err(|source| Error::io(path, source))?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::sample;
    use std::fs;

    fn samples() -> Vec<Record> {
        let mut skipped = sample("tilewise", "col", 1.0);
        skipped.status = Status::Skipped;
        skipped.note = "pitch of A is odd".to_owned();
        (skipped.median_ms, skipped.tflops) = (None, None);
        let mut other = sample("Triton 3.6", "", 0.3);
        other.interleaved = false;
        other.n = 512;
        vec![sample("tilewise", "row", 0.1875), skipped, other]
    }

    #[test]
    fn json_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.json");
        write_json(&samples(), &path).unwrap();
        let read: Vec<Record> = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(read, samples());
    }

    #[test]
    fn csv_round_trip() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.csv");
        write_csv(&samples(), &path).unwrap();
        let read: Vec<Record> = csv::Reader::from_path(&path)
            .unwrap()
            .deserialize()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(read, samples());
    }

    #[test]
    fn a_missing_folder_is_named() {
        let path = Path::new("no-such-folder/records.json");
        let message = write_json(&samples(), path).unwrap_err().to_string();
        assert!(message.contains("no-such-folder"), "{message}");
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shorten("short"), "short");
        let cut = shorten(&"é".repeat(500));
        assert_eq!(cut, "é".repeat(160) + "...");
    }

    #[test]
    fn a_note_of_both_regimes_is_said_once() {
        let mut cold = sample("tilewise (tuned)", "row", 1.0);
        cold.note = "from the cache".to_owned();
        let mut sustained = cold.clone();
        sustained.regime = crate::record::Regime::Sustained;
        let text = render(&[cold, sustained]);
        assert_eq!(text.matches("from the cache").count(), 1, "{text}");
    }

    #[test]
    fn launches_from_graphs_are_marked_in_tables_and_files() {
        let mut record = sample("tilewise", "row", 0.004);
        record.regime = crate::record::Regime::Sustained;
        assert!(!render(&[record.clone()]).contains("sustained+"));
        record.products_per_graph = Some(250);
        record.add_note("from the cache");
        record.add_note("odd");
        let text = render(&[record.clone()]);
        assert!(text.contains("sustained+  tilewise"), "{text}");
        assert!(text.contains("persistent: from the cache; odd"), "{text}");
        assert!(LEGEND.contains("sustained+"));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.csv");
        write_csv(&[record], &path).unwrap();
        let mut reader = csv::Reader::from_path(&path).unwrap();
        let heads = reader.headers().unwrap().clone();
        let row = reader.records().next().unwrap().unwrap();
        let at = heads.iter().position(|head| head == "products_per_graph");
        assert_eq!(row.get(at.unwrap()), Some("250"));
    }

    #[test]
    fn files_keep_the_whole_reason_that_tables_cut() {
        let mut records = samples();
        records[1].note = "because ".repeat(100);
        assert!(!render(&records).contains(&records[1].note));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("records.json");
        write_json(&records, &path).unwrap();
        assert!(
            fs::read_to_string(&path)
                .unwrap()
                .contains(&records[1].note)
        );
    }

    #[test]
    fn the_ratio_shown_is_the_paired_one() {
        let mut record = sample("tilewise", "row", 1.0);
        record.speedup_over_cublaslt = Some(0.611);
        assert!(render(&[record.clone()]).contains("0.611"));
        record.set_pairs(&[1.0], &[2.0]);
        let text = render(&[record]);
        assert!(text.contains("0.500") && !text.contains("0.611"), "{text}");
    }

    #[test]
    fn tables_show_times_and_reasons() {
        let text = render(&samples());
        assert!(text.contains("4096x4096x4096  f16 -> f16  layout nn"));
        assert!(text.contains("0.1875"), "{text}");
        assert!(text.contains("not run: tilewise kernel col persistent: pitch of A is odd"));
        assert!(text.contains("Triton 3.6*"), "{text}");
    }
}
