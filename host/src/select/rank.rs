//! Steps 1 to 4 of the rule: the kernels that can run, best first.

use std::cmp::Reverse;
use std::slice;

use gpu_kernels::{Arch, DType, Family, KernelInfo, Major, Schedule};

use super::check;
use super::choice::{Fit, Request};
use super::cost::{self, Cost, Task};
use super::line_classes;
use super::preferred;
use super::when_to_pack;
use crate::error::Error;
use crate::problem::{Catalog, Problem, Strides, Target, serves};
use crate::rejection::{Rejected, Rejection};
use crate::sum_order::SumOrder;

/// The number of rows or columns of C up to which both the problem and its transpose are
/// worth measuring: such a C has few elements compared to A or B, and the direction of
/// its writes matters little.
const NARROW: u32 = 64;

/// The 1000ths by which a kernel has to be estimated better with two classes of lines than without: where
/// the gain is less, 32 products drawn for this take 0.6 % longer with them. Between kernels there is no such
/// margin; with 38 there, other 32 products took 2 % longer (`docs/perf-log.md`, "Clusters in one deep
/// wave").
const TWO_CLASSES_MARGIN: u64 = 30;

/// The kernels worth running, best first, and how each can run the problem. There is at
/// least one.
///
/// # Errors
/// [`Error::UnknownKernel`], [`Error::KernelCannotRun`], [`Error::NoKernel`].
pub(super) fn ranked(
    catalog: Catalog,
    problem: &Problem,
    target: &Target,
    request: &Request,
) -> Result<Vec<(KernelInfo, Fit)>, Error> {
    let flipped = problem.transposed();
    // The transposed problem applies the scales of rows and of columns in the other order, and
    // adds the corrections of f16x3 in the other order.
    let has_an_order =
        problem.epilogue.row_scale && problem.epilogue.col_scale || problem.input == DType::F16x3;
    let may_flip = !(request.batch_invariant && has_an_order);
    // A hopper kernel writes C along N, or along M, so it computes one of the two.
    let flips = |kernel: &KernelInfo| {
        let (
            Strides {
                col_stride,
                row_stride,
                ..
            },
            along_m,
        ) = (problem.c, kernel.c_along_m);
        let (along, across) = match along_m {
            true => (row_stride, col_stride),
            false => (col_stride, row_stride),
        };
        kernel.family == Family::Hopper && may_flip && along != 1 && across == 1
    };
    let accepted = SumOrder::invariant(catalog, problem.input, problem.k, target);
    let allows = |kernel: &KernelInfo| {
        check::check_request(kernel, request)?;
        check::check_split_k(catalog, kernel, problem, request)?;
        match request.batch_invariant {
            true => check::check_sum_order(kernel, problem.k, accepted),
            false => Ok(()),
        }
    };
    let seen = |kernel: &KernelInfo, transposed| {
        // Pairs of columns would be pairs of rows.
        if transposed && problem.epilogue.gated.is_some() {
            return Err(Rejection::Gated);
        }
        let problem = if transposed { &flipped } else { problem };
        let packed = when_to_pack::needed(catalog, kernel, problem, target, request)?;
        let classes = request.line_classes.unwrap_or(1);
        line_classes::check(kernel, problem, packed, classes)?;
        if classes > 1 && request.batch_invariant {
            return Err(Rejection::LineClasses {
                classes,
                reason: "batch_invariant forbids that the bits of a row depend on its class",
            });
        }
        if classes > 1 && request.schedule == Some(Schedule::SplitK) {
            return Err(Rejection::Schedule {
                schedule: Schedule::SplitK,
            });
        }
        Ok::<_, Rejection>(Fit {
            transposed,
            packed,
            classes,
        })
    };
    let fit = |kernel: &KernelInfo| -> Result<Fit, Rejection> {
        allows(kernel)?;
        let as_it_is = seen(kernel, false);
        if !flips(kernel) {
            return as_it_is;
        }
        match (seen(kernel, true), as_it_is) {
            (Ok(turned), Ok(straight)) => {
                let more = turned.packed.elements(&flipped) > straight.packed.elements(problem);
                Ok(if more { straight } else { turned })
            }
            (turned, straight) => turned.or(straight),
        }
    };
    // The launch that adds sums under split-K knows no classes.
    let schedule = |kernel: &KernelInfo, classes| match kernel.stream_k_bytes {
        0 => request.schedule,
        _ if classes > 1 || catalog.reduce_for(kernel).is_none() => Some(Schedule::StreamK),
        _ => request.schedule,
    };
    let sees = |fit: &Fit| if fit.transposed { &flipped } else { problem };
    // Without classes, or in as many as cost least. The bits of a row would depend on its class.
    let is_open = request.line_classes.is_none()
        && !request.batch_invariant
        && request.schedule != Some(Schedule::SplitK);
    let costed = |kernel: &KernelInfo, fit: Fit| {
        let seen = sees(&fit);
        let cost = |fit: Fit| {
            let task = Task::of(kernel, seen, fit.packed, fit.classes);
            let cost = cost::under(schedule(kernel, fit.classes), kernel, &task, target);
            (cost, *kernel, fit)
        };
        let counts = line_classes::counts(kernel, seen, fit.packed).filter(|_| is_open);
        let in_classes = counts.map(|classes| cost(Fit { classes, ..fit }));
        // Of equal costs, the last is taken, which is without classes.
        let each = in_classes.chain([cost(fit)]);
        let with_margin = |cost: Cost, classes| match classes {
            2 => cost.mean.saturating_mul(1000 + TWO_CLASSES_MARGIN) / 1000,
            _ => cost.mean,
        };
        each.max_by_key(|(cost, _, fit)| Reverse((with_margin(*cost, fit.classes), *cost)))
            .expect("one has no classes")
    };
    let may_gain = |kernel: &KernelInfo, fit: &Fit| {
        let grid = line_classes::grid(kernel, sees(fit), fit.classes);
        request.kernel.is_some()
            || request.schedule.is_some()
            || cost::can_gain(kernel, grid, problem.batches, target)
    };

    let kernels = allowed(catalog, request)?;
    let rank = |kernel, fit: Fit, usual| (Rank::of(kernel, sees(&fit), fit, usual), kernel, fit);
    let mut ranked: Vec<_> = kernels
        .iter()
        .filter_map(|kernel| Some(rank(kernel, fit(kernel).ok()?, true)))
        .collect();
    if ranked.is_empty() {
        return Err(why_none(catalog, problem, request, fit));
    }
    let best = ranked.iter().map(|(rank, ..)| rank.family).max();
    if best == Some(Family::Hopper) && may_flip && problem.m.min(problem.n) <= NARROW {
        let other_ways = kernels.iter().filter_map(|kernel| {
            allows(kernel).ok()?;
            let other = seen(kernel, !flips(kernel)).ok()?;
            let is_usual = fit(kernel).is_ok_and(|fit| fit.transposed == other.transposed);
            let wanted = kernel.family == Family::Hopper && !other.packed.any() && !is_usual;
            wanted.then(|| rank(kernel, other, false))
        });
        ranked.extend(other_ways);
    }
    // The sorts are stable: kernels of equal rank and cost stay in the catalog's order.
    ranked.sort_by_key(|(rank, ..)| Reverse(*rank));
    let mut first_of_group: Option<Rank> = None;
    let mut worth_running = Vec::new();
    for equals in ranked.chunk_by(|(one, ..), (other, ..)| one == other) {
        let rank = equals[0].0;
        if first_of_group.is_some_and(|first| rank.reads_worse_than(first)) {
            continue;
        }
        let mut equals: Vec<_> = equals
            .iter()
            .map(|&(_, kernel, fit)| costed(kernel, fit))
            .filter(|(_, kernel, fit)| may_gain(kernel, fit))
            .collect();
        equals.sort_by_key(|(cost, ..)| *cost);
        if !equals.is_empty() {
            first_of_group = Some(rank);
            preferred::put_first(&mut equals, target, sees);
        }
        worth_running.extend(equals.into_iter().map(|(_, kernel, fit)| (kernel, fit)));
    }
    Ok(worth_running)
}

/// The kernels of the catalog, or the one that `request` names.
fn allowed<'a>(catalog: Catalog<'a>, request: &Request) -> Result<&'a [KernelInfo], Error> {
    let Some(name) = &request.kernel else {
        return Ok(catalog.kernels);
    };
    let named = catalog.kernels.iter().find(|kernel| kernel.name == name);
    named
        .map(slice::from_ref)
        .ok_or_else(|| Error::UnknownKernel {
            name: name.clone(),
            known: catalog.kernels.iter().map(|kernel| kernel.name).collect(),
        })
}

/// The error when no kernel can run the problem.
fn why_none(
    catalog: Catalog,
    problem: &Problem,
    request: &Request,
    fit: impl Fn(&KernelInfo) -> Result<Fit, Rejection>,
) -> Error {
    if let Ok([kernel]) = allowed(catalog, request)
        && request.kernel.is_some()
        && let Err(reason) = fit(kernel)
    {
        return Error::KernelCannotRun {
            kernel: kernel.name,
            reason,
        };
    }
    Error::NoKernel {
        asked: asked(problem, request),
        rejected: catalog
            .kernels
            .iter()
            .filter(|kernel| kernel.family.multiplies() && serves(kernel.input, problem.input))
            .filter_map(|kernel| {
                Some(Rejected {
                    kernel: kernel.name,
                    family: kernel.family,
                    reason: fit(kernel).err()?,
                })
            })
            .collect(),
    }
}

/// The request in words, for the error.
fn asked(problem: &Problem, request: &Request) -> String {
    let mut asked = format!("{} elements", problem.input.name());
    if let Some(family) = request.family {
        asked += &format!(", family {}", family.name());
    }
    if let Some(block) = request.block {
        asked += &format!(", block {}×{}×{}", block.m, block.n, block.k);
    }
    if let Some(schedule) = request.schedule {
        asked += &format!(", schedule {schedule:?}");
    }
    if request.batch_invariant {
        asked += ", batch-invariant";
    }
    asked
}

/// The rank of a kernel that can run, before the costs of equals are compared; greater is better.
/// Fields are compared in the order of their declaration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    family: Family,
    /// Its target: where a family has kernels for several, those for the newest that the device
    /// runs are the fastest.
    arch: Arch,
    /// Whether the kernel runs the problem transposed or not as step 3 of the rule says.
    usual: bool,
    /// Number of packed elements; fewer are better.
    packed: Reverse<u64>,
    /// Whether C is contiguous in the direction in which hopper kernels write it, which is fastest
    /// for them.
    writes_along_lines: bool,
    /// Number of operands whose contiguous direction matches the kernel's.
    layouts: u32,
}

impl Rank {
    fn of(kernel: &KernelInfo, problem: &Problem, fit: Fit, usual: bool) -> Rank {
        let packed = fit.packed;
        // A copy in the direction of an operand's lines is faster than one that turns them. Elements
        // without lines are copied along K, and so are those of 4 bytes, which `wgmma` reads along
        // K alone.
        let wide = problem.input.factor().bytes() == 4;
        let matches = |reads: Option<Major>, is: Major, packed, strides: Strides| {
            let has_lines = strides.row_stride == 1 || strides.col_stride == 1;
            let best = if packed && (wide || !has_lines) {
                Major::K
            } else {
                is
            };
            u32::from(reads == Some(best))
        };
        Rank {
            family: kernel.family,
            arch: kernel.arch,
            usual,
            packed: Reverse(packed.elements(problem)),
            writes_along_lines: match (kernel.family, kernel.c_along_m) {
                (Family::Hopper, false) => problem.c.col_stride == 1,
                (Family::Hopper, true) => problem.c.row_stride == 1,
                _ => true,
            },
            layouts: matches(kernel.a_major, problem.a_major(), packed.a, problem.a)
                + matches(kernel.b_major, problem.b_major(), packed.b, problem.b),
        }
    }

    /// Whether this rank, which is not greater than `best`, is of the same family and direction, and
    /// lower.
    fn reads_worse_than(self, best: Rank) -> bool {
        (self.family, self.usual) == (best.family, best.usual) && self != best
    }
}
