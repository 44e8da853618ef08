//! Comparisons as a table that fits a terminal.

use crate::problem::names::short_kernel;
use crate::records::comparison::Comparison;
use crate::text_table::{Table, TableLine, text_or_empty, three_digits, under_headings};

/// Stands in place of the table where nothing can be compared.
const ABSENT: &str = "\
Row-major order was not timed beside another order. --row-major times it in a suite and with
--choice; where orders are named, row must be among them.";

/// How to read the table, printed once below it.
const LEGEND: &str = "\
kernel: the end of a hopper kernel's name. ms: medians. x: speedup over row-major order.
GB: bytes from and to DRAM by the model of L2, not measured. Everything else is in the tables below.";

/// Place of the column that wraps where a table is too wide.
const KERNEL: usize = 1;

const HEADS: [&str; 11] = [
    "\nshape",
    "\nkernel",
    "\norder",
    "cold\nrow",
    "ms\norder",
    "\nx",
    "sust.\nrow",
    "ms\norder",
    "\nx",
    "DRAM\nrow",
    "GB\norder",
];

/// Columns that the next one belongs to: within cold, sustained and bytes.
const CLOSE: [usize; 5] = [3, 4, 6, 7, 9];

/// A line for each comparison, in a table for each combination of types and layout.
pub fn render(comparisons: &[Comparison]) -> String {
    let Some(first) = comparisons.first() else {
        return format!("\n{ABSENT}\n");
    };
    let against = match first.chosen {
        true => "the library's choice",
        false => "the orders asked for",
    };
    let empty = Table::new(HEADS).close(CLOSE);
    let tables = under_headings(&empty, KERNEL, comparisons.iter().map(line).collect());
    format!(
        "\nRow-major order against {against}: same kernel, same schedule.\n{tables}\n{LEGEND}\n"
    )
}

fn line(comparison: &Comparison) -> TableLine {
    let Comparison {
        m,
        n,
        k,
        dtype,
        output,
        layout,
        ..
    } = comparison;
    let mut cells = vec![
        format!("{m}x{n}x{k}"),
        short_kernel(&comparison.kernel, dtype).to_owned(),
        comparison.order.clone(),
    ];
    for times in [comparison.cold, comparison.sustained] {
        cells.extend(times.map_or_else(Default::default, |times| {
            [
                three_digits(times.row_major_ms),
                three_digits(times.order_ms),
                format!("{:.2}", times.speedup),
            ]
        }));
    }
    let gigabytes = [comparison.row_major_gb, comparison.order_gb];
    cells.extend(gigabytes.map(|gb| text_or_empty(gb.map(three_digits))));
    TableLine {
        heading: format!("{dtype} -> {output}  layout {layout}"),
        cells,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::comparison::comparisons;
    use crate::records::comparison::tests::run;
    use crate::text_table::TERMINAL;
    use gpu_kernels::entry::KERNELS;

    #[test]
    fn a_line_has_both_orders_in_both_regimes_and_their_bytes() {
        let text = render(&comparisons(&run()));
        let line = text
            .lines()
            .find(|line| line.starts_with("4096x4096x4096"))
            .unwrap_or_else(|| panic!("{text}"));
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            cells,
            [
                "4096x4096x4096",
                "kernel",
                "grouped:16",
                "0.300",
                "0.250",
                "1.20",
                "0.600",
                "0.500",
                "1.20",
                "66.2",
                "17.2"
            ]
        );
        assert!(text.contains("the library's choice"), "{text}");
        assert!(text.contains("f16 -> f16  layout nn"), "{text}");
    }

    #[test]
    fn no_line_is_wider_than_a_terminal_whatever_is_compared() {
        let [comparison] = &comparisons(&run())[..] else {
            panic!("one product");
        };
        let longest = KERNELS.iter().max_by_key(|kernel| kernel.name.len());
        let mut wide = comparison.clone();
        (wide.m, wide.n, wide.k) = (16384, 16384, 16384);
        (wide.dtype, wide.kernel) = ("bf16".to_owned(), longest.unwrap().name.to_owned());
        wide.order = "serpentinen:16".to_owned();
        let mut small = comparison.clone();
        small.kernel = "tensor_core_bf16_ak_bk_128x256x64".to_owned();
        small.dtype = wide.dtype.clone();
        for times in [&mut small.cold, &mut small.sustained]
            .into_iter()
            .flatten()
        {
            (times.row_major_ms, times.order_ms) = (0.0123, 0.0111);
        }
        let text = render(&[wide, small]);
        assert!(text.contains("0.0123"), "{text}");
        for line in text.lines().chain(ABSENT.lines()) {
            let width = line.chars().count();
            assert!(width <= usize::from(TERMINAL), "{width}: {text}");
        }
    }

    #[test]
    fn types_and_layouts_have_tables_of_their_own() {
        let [comparison] = &comparisons(&run())[..] else {
            panic!("one product");
        };
        let mut other = comparison.clone();
        other.layout = "nt".to_owned();
        let text = render(&[comparison.clone(), other, comparison.clone()]);
        assert_eq!(text.matches("layout nn").count(), 1, "{text}");
        assert_eq!(text.matches("layout nt").count(), 1, "{text}");
    }

    #[test]
    fn without_row_major_order_the_reader_learns_how_to_get_it() {
        assert!(render(&[]).contains("--row-major"));
    }
}
