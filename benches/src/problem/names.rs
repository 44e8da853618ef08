//! How kernels, schedules and types are named on the command line and in reports:
//! one parser and one printer each. (Orders name themselves: `TileOrder` has both.)

use gpu_kernels::entry::KERNELS;
use gpu_kernels::{DType, Family, KernelInfo, OutputType, Schedule, TileOrder};
use std::fmt;
use std::str::FromStr;

/// Which kernel to run: any of a family, or one entry point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelChoice {
    /// The kernel that `tilewise::select` picks from a family.
    Family(Family),
    /// The entry point of this name.
    Entry(&'static str),
}

impl KernelChoice {
    /// The kernels that a run measures by default: those made for the type.
    pub fn defaults(dtype: DType) -> &'static [KernelChoice] {
        match dtype {
            DType::F16 | DType::Bf16 => &[
                KernelChoice::Family(Family::Hopper),
                KernelChoice::Family(Family::TensorCore),
            ],
            DType::Tf32 => &[KernelChoice::Family(Family::TensorCore)],
            DType::F16x3 => &[
                KernelChoice::Family(Family::Hopper),
                KernelChoice::Family(Family::Tiled),
            ],
            DType::F32 => &[KernelChoice::Family(Family::Tiled)],
        }
    }
}

impl fmt::Display for KernelChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KernelChoice::Family(family) => family.name(),
            KernelChoice::Entry(name) => name,
        })
    }
}

impl FromStr for KernelChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const FAMILIES: [Family; 4] = [
            Family::Naive,
            Family::Tiled,
            Family::TensorCore,
            Family::Hopper,
        ];
        let family = named(text, "kernel family", &FAMILIES, Family::name);
        match (family, kernel_named(text)) {
            (Ok(family), _) => Ok(KernelChoice::Family(family)),
            (_, Some(kernel)) => Ok(KernelChoice::Entry(kernel.name)),
            (Err(refusal), None) => {
                let unknown = tilewise::Error::UnknownKernel {
                    name: text.into(),
                    known: KERNELS.iter().map(|kernel| kernel.name).collect(),
                };
                Err(format!("{refusal}; and {unknown}"))
            }
        }
    }
}

/// The kernel of this name.
pub fn kernel_named(name: &str) -> Option<&'static KernelInfo> {
    KERNELS.iter().find(|kernel| kernel.name == name)
}

/// The value whose name is `text`; a refusal lists all names.
pub fn named<T: Copy>(
    text: &str,
    what: &str,
    values: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<T, String> {
    let mut found = values.iter().copied();
    found.find(|&value| name(value) == text).ok_or_else(|| {
        let names: Vec<_> = values.iter().map(|&value| name(value)).collect();
        format!("'{text}' is not a {what}; accepted: {}", names.join(", "))
    })
}

/// `grid2d`, `grid1d`, `persistent`, `stream-k` or `split-k`.
pub fn parse_schedule(text: &str) -> Result<Schedule, String> {
    use Schedule::{Grid1d, Grid2d, Persistent, SplitK, StreamK};
    let schedules = [Grid2d, Grid1d, Persistent, StreamK, SplitK];
    named(text, "schedule", &schedules, schedule_name)
}

/// The text that [`parse_schedule`] reads.
pub fn schedule_name(schedule: Schedule) -> &'static str {
    match schedule {
        Schedule::Grid2d => "grid2d",
        Schedule::Grid1d => "grid1d",
        Schedule::Persistent => "persistent",
        Schedule::StreamK => "stream-k",
        Schedule::SplitK => "split-k",
    }
}

/// `f16`, `bf16`, `tf32`, `f16x3` or `f32`.
pub fn parse_dtype(text: &str) -> Result<DType, String> {
    let dtypes = [
        DType::F16,
        DType::Bf16,
        DType::Tf32,
        DType::F16x3,
        DType::F32,
    ];
    named(text, "type", &dtypes, DType::name)
}

/// `input` (the type of A and B) or `f32`.
pub fn parse_output(text: &str) -> Result<OutputType, String> {
    // The types that the peers have too.
    let outputs = [OutputType::Input, OutputType::F32];
    named(text, "type of C", &outputs, |output| match output {
        OutputType::Input => "input",
        OutputType::F32 => "f32",
        OutputType::F16 => "f16",
        OutputType::Bf16 => "bf16",
    })
}

/// The type of C.
pub fn output_name(input: DType, output: OutputType) -> &'static str {
    output.dtype(input).name()
}

/// What a candidate forces; `None` leaves it to `tilewise::select`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// Tile order.
    pub order: Option<TileOrder>,
    /// Schedule.
    pub schedule: Option<Schedule>,
    /// Number of classes of lines.
    pub line_classes: Option<u32>,
}

/// The combinations to compare. Without orders and schedules they are the library's choice,
/// row-major order, and each of two schedules, with the rest left to the library; else every
/// combination of the given ones, and what is not given is left to the library.
pub fn placements(orders: &[TileOrder], schedules: &[Schedule]) -> Vec<Placement> {
    if orders.is_empty() && schedules.is_empty() {
        return [
            (Some(TileOrder::RowMajor), None),
            (None, None),
            (None, Some(Schedule::Persistent)),
            (None, Some(Schedule::Grid1d)),
        ]
        .map(|(order, schedule)| Placement {
            order,
            schedule,
            line_classes: None,
        })
        .to_vec();
    }
    let mut all = Vec::new();
    for order in or_open(orders) {
        for schedule in or_open(schedules) {
            // The hardware orders a 2-D grid; none can be forced.
            let order = order.filter(|_| schedule != Some(Schedule::Grid2d));
            let placement = Placement {
                order,
                schedule,
                line_classes: None,
            };
            if !all.contains(&placement) {
                all.push(placement);
            }
        }
    }
    all
}

/// Each of `choices`, or `None` once where there are none.
fn or_open<T: Copy>(choices: &[T]) -> Vec<Option<T>> {
    match choices {
        [] => vec![None],
        choices => choices.iter().copied().map(Some).collect(),
    }
}

/// The end of a hopper kernel's name, from its tile on: it tells the kernels of one type and
/// layout apart. Other kernels keep their name.
pub fn short_kernel<'a>(kernel: &'a str, dtype: &str) -> &'a str {
    let of_type = kernel
        .strip_prefix("hopper_")
        .and_then(|rest| rest.strip_prefix(dtype));
    let tile = of_type.and_then(|rest| Some(&rest[rest.find(|c: char| c.is_ascii_digit())?..]));
    tile.unwrap_or(kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_and_types_survive_their_text() {
        for text in ["grid2d", "grid1d", "persistent", "stream-k", "split-k"] {
            assert_eq!(schedule_name(parse_schedule(text).unwrap()), text);
        }
        for text in ["f32", "tf32", "f16", "bf16"] {
            assert_eq!(parse_dtype(text).unwrap().name(), text);
        }
        assert!(parse_schedule("split").is_err());
        assert!(parse_dtype("f64").is_err());
    }

    #[test]
    fn every_kernel_has_a_name_that_parses() {
        for kernel in KERNELS {
            assert_eq!(kernel.name.parse(), Ok(KernelChoice::Entry(kernel.name)));
        }
        assert_eq!("hopper".parse(), Ok(KernelChoice::Family(Family::Hopper)));
        let refusal = "warp9".parse::<KernelChoice>().unwrap_err();
        assert!(refusal.contains("tensor_core"), "{refusal}");
    }

    #[test]
    fn tf32_writes_f32() {
        assert_eq!(output_name(DType::Tf32, OutputType::Input), "f32");
        assert_eq!(output_name(DType::F16, OutputType::Input), "f16");
        assert_eq!(output_name(DType::Bf16, OutputType::F32), "f32");
    }

    #[test]
    fn flags_give_the_full_product_and_grid2d_no_order() {
        let orders = [TileOrder::ColumnMajor, TileOrder::GroupedM { size: 4 }];
        let schedules = [Schedule::Grid2d, Schedule::Grid1d];
        let pairs: Vec<_> = placements(&orders, &schedules)
            .into_iter()
            .map(|placement| (placement.order, placement.schedule))
            .collect();
        assert_eq!(
            pairs,
            [
                (None, Some(Schedule::Grid2d)),
                (Some(orders[0]), Some(Schedule::Grid1d)),
                (Some(orders[1]), Some(Schedule::Grid1d)),
            ]
        );
        assert_eq!(placements(&[], &schedules).len(), 2);
        assert_eq!(placements(&orders, &[]).len(), 2);
    }

    #[test]
    fn the_default_compares_row_major_and_both_schedules_with_the_librarys_choice() {
        let defaults = placements(&[], &[]);
        assert!(defaults.contains(&Placement::default()));
        assert!(
            defaults
                .iter()
                .any(|p| p.order == Some(TileOrder::RowMajor))
        );
        for schedule in [Schedule::Persistent, Schedule::Grid1d] {
            assert!(defaults.iter().any(|p| p.schedule == Some(schedule)));
        }
    }

    #[test]
    fn kernels_of_one_type_and_layout_keep_different_names() {
        assert_eq!(
            short_kernel("hopper_f16_ak_bn_128x256x64_stages4", "f16"),
            "128x256x64_stages4"
        );
        assert_eq!(short_kernel("naive_f16", "f16"), "naive_f16");
        let layout = |name: &str| {
            name.split('_')
                .filter(|part| part.len() == 2)
                .collect::<String>()
        };
        for (at, kernel) in KERNELS.iter().enumerate() {
            let short = |kernel: &gpu_kernels::KernelInfo| {
                let short = short_kernel(kernel.name, kernel.input.name());
                (kernel.input, layout(kernel.name), short.to_owned())
            };
            let mut before = KERNELS[..at].iter().map(short);
            assert!(
                before.all(|other| other != short(kernel)),
                "{}",
                kernel.name
            );
        }
    }
}
