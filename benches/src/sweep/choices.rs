//! What the library would launch on problems, by the rule of this build alone: no GPU is asked, and
//! nothing is measured. Rows of an earlier build show where a change to the rule changes the choice.

use crate::candidates::candidate::{CHOSEN, launch_name};
use crate::modelled::selection::{self, GpuDescription};
use crate::problem::names::{Placement, schedule_name};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::sweep::row::SweepRow;
use crate::text_table::Table;
use std::collections::BTreeMap;

/// The library's choice for each of `problems` on `gpu`, as rows without times.
///
/// # Errors
/// The library refuses a problem.
pub fn rows(problems: &[ProblemSpec], gpu: &GpuDescription) -> Result<Vec<SweepRow>, String> {
    let row = |&problem: &ProblemSpec| {
        let choice = selection::choose(problem, None, Placement::default(), &gpu.target)?;
        Ok(SweepRow {
            device: gpu.name.to_owned(),
            m: problem.shape.m,
            n: problem.shape.n,
            k: problem.shape.k,
            dtype: problem.dtype.name().to_owned(),
            layout: problem.layout.to_string(),
            implementation: CHOSEN.to_owned(),
            kernel: choice.kernel.name.to_owned(),
            order: choice.order.to_string(),
            schedule: schedule_name(choice.schedule).to_owned(),
            line_classes: (choice.line_classes > 1).then_some(choice.line_classes),
            cold_ms: None,
            sustained_ms: None,
        })
    };
    problems.iter().map(row).collect()
}

/// The rows of `before` and of `now` that are of other launches. Both have the same problems, in the same
/// order.
pub fn changes<'a>(
    before: &'a [SweepRow],
    now: &'a [SweepRow],
) -> Vec<(&'a SweepRow, &'a SweepRow)> {
    let pairs = before.iter().zip(now);
    pairs
        .filter(|(before, now)| launch(before) != launch(now))
        .collect()
}

/// The launch of `row` in words.
fn launch(row: &SweepRow) -> String {
    let classes = row.line_classes;
    let classes = classes.map_or(String::new(), |classes| format!(" classes {classes}"));
    launch_name("", &row.kernel, &row.order, &row.schedule) + &classes
}

/// A table of `changes`, and the options by which `bench` measures these problems.
pub fn render(changes: &[(&SweepRow, &SweepRow)]) -> String {
    let mut table = Table::of("problem | before | now");
    let mut shapes: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (before, now) in changes {
        let SweepRow {
            m,
            n,
            k,
            dtype,
            layout,
            ..
        } = now;
        let shape = GemmShape::new(*m, *n, *k).to_string();
        let problem = format!("{shape} {dtype} {layout}");
        table.row([problem, launch(before), launch(now)]);
        shapes.entry((dtype, layout)).or_default().push(shape);
    }
    let mut text = table.render();
    for ((dtype, layout), shapes) in shapes {
        let shapes = shapes.join(",");
        text += &format!("--dtypes {dtype} --layouts {layout} --shapes {shapes}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modelled::selection::H200;
    use crate::problem::shape::BlasLayout;
    use gpu_kernels::{DType, OutputType};

    fn rows_of(shapes: &[[usize; 3]]) -> Vec<SweepRow> {
        let problem = |&[m, n, k]: &[usize; 3]| ProblemSpec {
            shape: GemmShape::new(m, n, k),
            layout: BlasLayout::NT,
            dtype: DType::F16,
            output: OutputType::Input,
        };
        let problems: Vec<_> = shapes.iter().map(problem).collect();
        rows(&problems, &H200).unwrap()
    }

    #[test]
    fn one_rule_changes_nothing() {
        let rows = rows_of(&[[4096, 4096, 4096], [77, 333, 1001]]);
        assert!(rows[0].kernel.starts_with("hopper_f16_ak_bk_"));
        assert!(changes(&rows, &rows).is_empty());
    }

    #[test]
    fn changed_launches_of_the_same_problems_are_listed_with_options_for_bench() {
        let now = rows_of(&[[4096, 4096, 4096], [64, 512, 512], [512, 64, 512]]);
        let mut before = now.clone();
        before[1].order = "row".to_owned();
        let changes = changes(&before, &now);
        let shapes: Vec<_> = changes.iter().map(|(_, now)| (now.m, now.n)).collect();
        assert_eq!(shapes, [(64, 512)]);
        let text = render(&changes);
        let options = "--dtypes f16 --layouts nt --shapes 64x512x512\n";
        assert!(text.ends_with(options), "{text}");
        assert!(text.contains(" row persistent"), "{text}");
    }
}
