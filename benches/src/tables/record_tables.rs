//! Records as tables for a terminal: everything that was measured, a table a problem.

use crate::records::record::{Record, Status, by_problem};
use crate::text_table::{Table, decimals, shorten, text_or_empty};
use std::fmt::Write as _;

/// The table of every problem among `records`, in the order they were measured.
pub fn render(records: &[Record]) -> String {
    let mut text = String::new();
    for problem in by_problem(records) {
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
                Status::Modelled => "modelled",
            };
            let note = shorten(&record.note);
            let note = format!("  {verdict}: {}: {note}\n", record.launch_name());
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        text.extend(notes);
    }
    text
}

fn table(records: &[&Record]) -> Table {
    let mut table = Table::of(
        "regime | implementation | kernel | order | schedule | CTAs | median ms | \
         q1-q3 | TFLOP/s | % peak | x row | x cuBLASLt | model GB | MHz | W | \
         throttle",
    );
    for record in records.iter().filter(|r| r.status == Status::Timed) {
        let plus = if record.products_per_graph.is_some() {
            "+"
        } else {
            ""
        };
        let star = if record.interleaved { "" } else { "*" };
        let spread = record.q1_ms.zip(record.q3_ms);
        table.row([
            format!("{}{plus}", record.regime.name()),
            format!("{}{star}", record.implementation),
            record.kernel.clone(),
            record.order.clone(),
            record.schedule.clone(),
            text_or_empty(record.ctas),
            decimals(record.median_ms, 4),
            text_or_empty(spread.map(|(q1, q3)| format!("{q1:.4}-{q3:.4}"))),
            decimals(
                record.tflops,
                if record.tflops < Some(10.0) { 3 } else { 1 },
            ),
            decimals(record.share_of_peak.map(|share| share * 100.0), 1),
            decimals(record.speedup_over_row_major, 3),
            decimals(record.over_cublaslt(), 3),
            decimals(record.modelled_dram_gb, 3),
            decimals(record.sm_clock_mhz, 0),
            decimals(record.power_w, 0),
            record.throttle.clone(),
        ]);
    }
    table
}

/// How to read the tables, printed once below them.
pub const LEGEND: &str = "\
median ms: one product. q1-q3: quartiles. TFLOP/s: 2MNK / median.
x row: speedup over row-major order by the same kernel and schedule: ratio of medians.
x cuBLASLt: speedup over cuBLASLt in the same round, median over rounds (*: ratio of medians).
tilewise: kernel, order or schedule forced; (chosen): nothing forced; (tuned): the tuner's plan.
(batch-invariant): chosen so that the bits of a row do not depend on the number of rows.
model GB: DRAM traffic by the model of L2, not measured.
cold: L2 overwritten before each launch. sustained: back to back, in slices.
Each round has its own random order of candidates.
sustained+: a product of the problem is short (under 50 us), so all are launched from CUDA graphs,
   which hide the host. tilewise's short launches overlap the end of the launch before, as in a
   stream; cuBLASLt's default launches do not.
*: timed in its own process by its own script (sustained: from a CUDA graph), not interleaved.";

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::records::files::{write_csv, write_json};
    use crate::records::record::tests::sample;
    use crate::text_table::TERMINAL;
    use std::fs;

    pub(crate) fn samples() -> Vec<Record> {
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
    fn a_note_of_both_regimes_is_said_once() {
        let mut cold = sample("tilewise (tuned)", "row", 1.0);
        cold.note = "from the cache".to_owned();
        let mut sustained = cold.clone();
        sustained.regime = crate::measure::regime::Regime::Sustained;
        let text = render(&[cold, sustained]);
        assert_eq!(text.matches("from the cache").count(), 1, "{text}");
    }

    #[test]
    fn launches_from_graphs_are_marked_in_tables_and_files() {
        let mut record = sample("tilewise", "row", 0.004);
        record.regime = crate::measure::regime::Regime::Sustained;
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
    fn the_legend_fits_a_terminal() {
        for line in LEGEND.lines() {
            assert!(line.len() <= usize::from(TERMINAL), "{line}");
        }
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
