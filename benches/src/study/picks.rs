//! The orders that rules pick: the library's choice, CUTLASS's heuristic, the model.

use crate::modelled::selection::choose;
use crate::problem::names::{KernelChoice, Placement, kernel_named, parse_schedule};
use crate::problem::shape::GemmShape;
use crate::problem::spec::ProblemSpec;
use crate::study::gpus;
use crate::study::groups::{RowGroup, are_compared, groups};
use crate::study::products::FITTED;
use crate::study::row::{CHOOSER, CUTLASS, MODEL, StudyRow, TUNER};
use gpu_kernels::{KernelInfo, Schedule, TileOrder};
use tilewise::select::{self, Target};

/// The largest swizzle of CUTLASS, and what its profiler's sweeps end with.
const CUTLASS_MAX_SWIZZLE: u32 = 8;

/// The orders that rules pick for one product, kernel and schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picks {
    /// `tilewise::select`, with the kernel and the schedule forced.
    pub chooser: TileOrder,
    /// [`TileOrder::cutlass`] with swizzles up to 8.
    pub cutlass: TileOrder,
}

impl Picks {
    /// Asks the rules; needs no GPU.
    ///
    /// # Errors
    /// `target` cannot run the kernel so.
    pub fn of(
        problem: ProblemSpec,
        kernel: &KernelInfo,
        schedule: Schedule,
        target: &Target,
    ) -> Result<Picks, String> {
        let placement = Placement {
            line_classes: None,
            order: None,
            schedule: Some(schedule),
        };
        let choice = choose(
            problem,
            Some(KernelChoice::Entry(kernel.name)),
            placement,
            target,
        )?;
        let GemmShape { m, n, .. } = problem.shape;
        let grid = select::tile_grid(kernel, m as u32, n as u32);
        Ok(Picks {
            chooser: choice.order,
            cutlass: TileOrder::cutlass(grid, CUTLASS_MAX_SWIZZLE),
        })
    }
}

/// Writes into [`StudyRow::picked_by`] which rules pick the row's order by today's library
/// and the row's predictions; the tuner's picks stay. Rows of an unknown GPU get no other
/// picks. Also marks the products that the model was fitted on.
pub fn mark_picks(rows: &mut [StudyRow]) {
    let groups = groups(rows);
    let decided: Vec<(Option<Picks>, Option<&str>)> = groups
        .iter()
        .map(|group| (picks(group.rows[0]), least_by_model(group)))
        .collect();
    let marks: Vec<String> = rows
        .iter()
        .map(|row| {
            let at = groups
                .iter()
                .position(|group| are_compared(group.rows[0], row));
            let (picks, by_model) = decided[at.expect("each row is in a group")];
            let order = row.order.parse::<TileOrder>().ok();
            let rules = [
                (
                    CHOOSER,
                    picks.is_some_and(|picks| order == Some(picks.chooser)),
                ),
                (
                    CUTLASS,
                    picks.is_some_and(|picks| order == Some(picks.cutlass)),
                ),
                (MODEL, by_model == Some(row.order.as_str())),
                (TUNER, row.is_picked_by(TUNER)),
            ];
            let picking = rules.iter().filter(|rule| rule.1).map(|rule| rule.0);
            picking.collect::<Vec<_>>().join("+")
        })
        .collect();
    for (row, mark) in rows.iter_mut().zip(marks) {
        row.fitted = FITTED.contains(&row.shape());
        row.picked_by = mark;
    }
}

fn picks(row: &StudyRow) -> Option<Picks> {
    let kernel = kernel_named(&row.kernel)?;
    let schedule = parse_schedule(&row.schedule).ok()?;
    let target = gpus::target(row)?;
    Picks::of(
        ProblemSpec::row_major(row.shape(), kernel.input),
        kernel,
        schedule,
        &target,
    )
    .ok()
}

fn least_by_model<'a>(group: &RowGroup<'a>) -> Option<&'a str> {
    let cost = |row: &StudyRow| {
        let bytes = row.model_dram_read_bytes? + row.model_dram_write_bytes?;
        Some((row.model_us?, bytes))
    };
    let predicted = group.rows.iter().filter_map(|&row| Some((cost(row)?, row)));
    let least = predicted.min_by(|((a_us, a_bytes), _), ((b_us, b_bytes), _)| {
        a_us.total_cmp(b_us).then(a_bytes.total_cmp(b_bytes))
    });
    least.map(|(_, row)| row.order.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::groups::tests::row;

    #[test]
    fn rules_mark_what_they_pick() {
        let measured = |order: &str, us, bytes| StudyRow {
            kernel: "hopper_f16_ak_bn_128x256x64".to_owned(),
            model_us: Some(us),
            model_dram_read_bytes: Some(bytes),
            model_dram_write_bytes: Some(1.0),
            ..row(8192, order)
        };
        let mut rows = vec![
            measured("row", 5.0, 9.0),
            measured("hilbert", 4.0, 3.0),
            measured("morton", 4.0, 2.0),
        ];
        let cutlass = picks(&rows[0]).unwrap().cutlass;
        rows.push(measured(&cutlass.to_string(), 6.0, 1.0));
        rows[0].picked_by = "tuner+model+other".to_owned();
        mark_picks(&mut rows);
        assert!(rows[0].fitted);
        assert!(rows[0].is_picked_by(TUNER) && !rows[0].is_picked_by(MODEL));
        assert!(!rows[1].is_picked_by(MODEL) && rows[2].is_picked_by(MODEL));
        assert!(rows[3].is_picked_by(CUTLASS));
    }
}
