//! Text tables for a terminal: `comfy-table` without lines, in this project's habits.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Column, ColumnConstraint, ContentArrangement};
use std::fmt::Display;

/// Spaces between two columns.
const GAP: u16 = 2;

/// The width that a reader's terminal may be expected to have.
pub const TERMINAL: u16 = 100;

/// A text table whose columns are as wide as they must be.
#[derive(Clone, Debug)]
pub struct Table {
    table: comfy_table::Table,
    /// Columns that the next one stands close to.
    close: Vec<usize>,
}

impl Table {
    /// A table with these column heads. A head may have several lines.
    pub fn new<S: Into<String>>(heads: impl IntoIterator<Item = S>) -> Self {
        let mut table = comfy_table::Table::new();
        table
            .load_style(NOTHING)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(heads.into_iter().map(Into::into));
        Table {
            table,
            close: Vec::new(),
        }
    }

    /// A table with these column heads, separated by ` | `.
    pub fn of(heads: &str) -> Self {
        Table::new(heads.split(" | "))
    }

    /// With one space in place of two after these columns: they belong to the next one.
    pub fn close(self, columns: impl IntoIterator<Item = usize>) -> Self {
        Table {
            close: columns.into_iter().collect(),
            ..self
        }
    }

    /// Adds a row; short rows leave their last columns empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.table.add_row(cells.into_iter().map(Into::into));
    }

    /// The table, numbers to the right, text to the left, two spaces between.
    /// Columns without a cell are left out.
    pub fn render(&self) -> String {
        self.arranged(|_| {})
    }

    /// The same, no wider than [`TERMINAL`]: long cells of the column `flexible` continue on
    /// further lines, cut at underscores.
    pub fn render_in_terminal(&self, flexible: usize) -> String {
        self.arranged(|table| {
            table
                .set_content_arrangement(ContentArrangement::Dynamic)
                // The last column is padded like the others.
                .set_width(TERMINAL + GAP);
            for (index, column) in table.column_iter_mut().enumerate() {
                if index == flexible {
                    column.set_delimiter('_');
                } else if !column.is_hidden() {
                    column.set_constraint(ColumnConstraint::ContentWidth);
                }
            }
        })
    }

    fn arranged(&self, arrange: impl FnOnce(&mut comfy_table::Table)) -> String {
        let mut table = self.table.clone();
        let columns: Vec<Vec<String>> = (0..table.column_count())
            .map(|column| self.cells(column))
            .collect();
        for (index, (column, cells)) in table.column_iter_mut().zip(columns).enumerate() {
            let gap = if self.close.contains(&index) { 1 } else { GAP };
            column.set_padding((0, gap));
            dress(column, &cells);
        }
        arrange(&mut table);
        table.trim_fmt() + "\n"
    }

    /// What stands below the head of a column.
    fn cells(&self, column: usize) -> Vec<String> {
        let cells = self.table.column_cells_iter(column).flatten();
        let text = cells.map(comfy_table::Cell::content);
        text.filter(|text| !text.is_empty()).collect()
    }
}

/// A line of a table among several with the same columns, and the heading of its table.
pub struct TableLine {
    /// Says what is the same in all lines of a table.
    pub heading: String,
    /// What stands in the columns.
    pub cells: Vec<String>,
}

/// A table for each heading, in the order in which they first come, each with `lines` below
/// the column heads of `empty` and no wider than [`TERMINAL`].
pub fn under_headings(empty: &Table, flexible: usize, lines: Vec<TableLine>) -> String {
    let mut tables: Vec<(String, Table)> = Vec::new();
    for TableLine { heading, cells } in lines {
        let at = tables.iter().position(|(known, _)| *known == heading);
        let at = at.unwrap_or_else(|| {
            tables.push((heading, empty.clone()));
            tables.len() - 1
        });
        tables[at].1.row(cells);
    }
    let text = |(heading, table): (String, Table)| {
        format!("\n{heading}\n{}", table.render_in_terminal(flexible))
    };
    tables.into_iter().map(text).collect()
}

fn dress(column: &mut Column, cells: &[String]) {
    // Ranges and percentages too; sizes such as 128x256 are text.
    let is_number = |cell: &String| {
        let is_part = |c: char| c.is_ascii_digit() || ".- %*".contains(c);
        cell.starts_with(|c: char| c.is_ascii_digit() || c == '-') && cell.chars().all(is_part)
    };
    if cells.is_empty() {
        column.set_constraint(ColumnConstraint::Hidden);
    } else if cells.iter().all(is_number) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// The text of a value; without a value, an empty one.
pub fn text_or_empty(value: Option<impl Display>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// A number with this many digits after the point; without a number, an empty text.
pub fn decimals(value: Option<f64>, digits: usize) -> String {
    text_or_empty(value.map(|value| format!("{value:.digits$}")))
}

/// Three significant digits, and no more than four after the point.
pub fn three_digits(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    let decimals = (2.0 - magnitude).clamp(0.0, 4.0) as usize;
    format!("{value:.decimals$}")
}

/// The beginning of a long text. (The library names every kernel that it rejected, which is
/// too long for a terminal; the records keep it all.)
pub fn shorten(text: &str) -> String {
    const CHARACTERS: usize = 160;
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_numbers_stand_right() {
        let mut table = Table::of("name | unused | ms");
        table.row(["a", "", "1.0"]);
        table.row(["longer", "", "100.0"]);
        assert_eq!(
            table.render(),
            "name       ms\na         1.0\nlonger  100.0\n"
        );
    }

    #[test]
    fn sizes_are_text_and_ranges_are_numbers() {
        let mut table = Table::new(["tile", "q1-q3"]);
        table.row(["128x256", "0.1-0.2"]);
        table.row(["64x64", "10.1-10.2"]);
        assert_eq!(
            table.render(),
            "tile         q1-q3\n128x256    0.1-0.2\n64x64    10.1-10.2\n"
        );
    }

    #[test]
    fn columns_that_belong_together_stand_close() {
        let mut table = Table::new(["row", "order", "x"]).close([0]);
        table.row(["1.0", "0.5", "2.00"]);
        assert_eq!(table.render(), "row order     x\n1.0   0.5  2.00\n");
    }

    #[test]
    fn short_rows_end_early() {
        let mut table = Table::new(["name", "ms", "note"]);
        table.row(["a", "1.0", "slow"]);
        table.row(["b"]);
        assert_eq!(table.render(), "name   ms  note\na     1.0  slow\nb\n");
    }

    #[test]
    fn lines_gather_under_their_headings() {
        let line = |heading: &str, cell: &str| TableLine {
            heading: heading.to_owned(),
            cells: vec![cell.to_owned()],
        };
        let lines = vec![line("b", "one"), line("a", "two"), line("b", "three")];
        let text = under_headings(&Table::new(["name"]), 0, lines);
        assert_eq!(text, "\nb\nname\none\nthree\n\na\nname\ntwo\n");
    }

    #[test]
    fn one_column_gives_way_where_a_terminal_is_too_narrow() {
        let mut table = Table::new(["name", "kernel", "ms"]);
        let (name, kernel) = ("n".repeat(60), "hopper_f16_ak_bn_128x256x64_stages4");
        table.row([&name, kernel, "1.0"]);
        assert!(table.render().lines().any(|line| line.len() > 100));
        let text = table.render_in_terminal(1);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
        assert!(text.contains(&name), "{text}");
        let kernel = kernel.split('_');
        assert!(kernel.clone().all(|part| text.contains(part)), "{text}");
        // What fits is left as it is.
        let mut table = Table::new(["name", "kernel", "ms"]);
        table.row(["n", "128x256x64", "1.0"]);
        assert_eq!(table.render_in_terminal(1), table.render());
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        assert_eq!(shorten("short"), "short");
        let cut = shorten(&"é".repeat(500));
        assert_eq!(cut, "é".repeat(160) + "...");
    }

    #[test]
    fn numbers_have_three_digits() {
        let texts = [123.4, 12.34, 1.234, 0.1234, 0.01234, 0.0001].map(three_digits);
        assert_eq!(texts, ["123", "12.3", "1.23", "0.123", "0.0123", "0.0001"]);
        assert_eq!(three_digits(0.0), "0.0000");
    }
}
