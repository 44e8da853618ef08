//! The tiles of C in the order they run, coloured by wave: as text and as SVG.

use std::fmt::Write as _;

use gpu_kernels::{Raster, TileGrid};

use crate::error::Error;
use crate::tile_order::analysis::OrderAnalysis;

/// Most tiles that an SVG shows.
const MOST_CELLS: u64 = 1 << 15;

/// Columns and lines of a terminal that a picture takes.
const TEXT_SIZE: (usize, usize) = (100, 48);

/// A colour of an SVG, light and dark, and its place in the 256-colour palette of ANSI
/// terminals.
type Colour = (&'static str, &'static str, u8);

/// Waves take these in turns.
const COLOURS: [Colour; 6] = [
    ("#9ecae9", "#1f4e79", 117),
    ("#ffd8a8", "#7a4a12", 223),
    ("#b2dfb0", "#255c2b", 151),
    ("#f4b6c2", "#7a2740", 217),
    ("#d3c4ec", "#4a3a7a", 183),
    ("#e0dca0", "#5c571c", 187),
];

/// The id of each tile where it lies, row by row.
fn ids(analysis: &OrderAnalysis) -> Vec<Vec<u32>> {
    let TileGrid { tiles_m, tiles_n } = analysis.grid;
    let mut ids = vec![vec![0; tiles_n as usize]; tiles_m as usize];
    let raster = Raster::new(analysis.order, analysis.grid);
    for id in 0..analysis.grid.tiles() {
        let tile = raster.tile(id);
        ids[tile.m as usize][tile.n as usize] = id;
    }
    ids
}

/// For a terminal: the ids where they fit, else a character for the wave. A large grid is
/// thinned out to every n-th tile each way.
pub fn text(analysis: &OrderAnalysis, coloured: bool) -> String {
    let (columns, lines) = TEXT_SIZE;
    let (rows, cols) = (
        analysis.grid.tiles_m as usize,
        analysis.grid.tiles_n as usize,
    );
    let digits = analysis.grid.tiles().saturating_sub(1).to_string().len();
    let with_ids = cols * (digits + 1) <= columns && rows <= lines;
    let every = if with_ids {
        1
    } else {
        cols.div_ceil(columns).max(rows.div_ceil(lines))
    };
    let mut text = String::new();
    for row in ids(analysis).iter().step_by(every) {
        for id in row.iter().step_by(every) {
            let wave = id / analysis.ctas;
            let cell = if with_ids {
                format!("{id:>digits$} ")
            } else {
                char::from_digit(wave % 36, 36).unwrap_or('?').to_string()
            };
            if coloured {
                let (_, _, colour) = COLOURS[wave as usize % COLOURS.len()];
                let _ = write!(text, "\x1b[30;48;5;{colour}m{cell}\x1b[0m");
            } else {
                text += &cell;
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    if !with_ids {
        text += "A tile a character, its wave modulo 36";
        if every > 1 {
            let _ = write!(text, "; one of {every} tiles each way");
        }
        text += "\n";
    }
    text
}

/// A self-contained SVG, light or dark as the reader prefers.
///
/// # Errors
/// More tiles than a picture can show.
pub fn svg(analysis: &OrderAnalysis) -> Result<String, Error> {
    let TileGrid { tiles_m, tiles_n } = analysis.grid;
    let tiles = u64::from(analysis.grid.tiles());
    if tiles > MOST_CELLS {
        return Err(Error::Order(format!(
            "--svg: {tiles} tiles; accepted: at most {MOST_CELLS}"
        )));
    }
    let digits = tiles.saturating_sub(1).to_string().len() as u32;
    let cell = (960 / tiles_n.max(tiles_m).max(1)).clamp(4, 32);
    // A digit of 10-pixel sans-serif is 6 pixels wide.
    let with_ids = cell >= 6 * digits + 4;
    let (margin, line) = (16, 18);
    let lines = analysis.wave_lines();
    let top = margin + line + 8;
    let height = top + tiles_m * cell + 8 + line * lines.len() as u32 + margin;
    let width = (tiles_n * cell + 2 * margin).max(720);
    let (title, description) = (analysis.title(), lines.join("; "));
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">{title}</title>\n<desc id=\"description\">{description}</desc>\n{}\
         <rect class=\"page\" width=\"{width}\" height=\"{height}\"/>\n<text x=\"{margin}\" y=\"{}\">{title}</text>\n",
        style(),
        margin + 12
    );
    for (row, ids) in (0_u32..).zip(ids(analysis)) {
        for (col, id) in (0_u32..).zip(ids) {
            let (x, y) = (margin + col * cell, top + row * cell);
            let colour = (id / analysis.ctas) as usize % COLOURS.len();
            let _ = writeln!(
                svg,
                "<rect class=\"tile w{colour}\" x=\"{x}\" y=\"{y}\" width=\"{cell}\" height=\"{cell}\"/>"
            );
            if with_ids {
                let (x, y) = (x + cell / 2, y + cell / 2 + 4);
                let _ = writeln!(svg, "<text class=\"id\" x=\"{x}\" y=\"{y}\">{id}</text>");
            }
        }
    }
    let mut y = top + tiles_m * cell + 8;
    for text in lines {
        y += line;
        let _ = writeln!(svg, "<text x=\"{margin}\" y=\"{y}\">{text}</text>");
    }
    svg += "</svg>\n";
    Ok(svg)
}

/// The style sheet of an SVG: the waves' colours, `.w0` and on, for light and dark.
fn style() -> String {
    let (mut light, mut dark) = (String::new(), String::new());
    for (index, (on_light, on_dark, _)) in COLOURS.iter().enumerate() {
        let _ = writeln!(light, ".w{index} {{ fill: {on_light} }}");
        let _ = writeln!(dark, ".w{index} {{ fill: {on_dark} }}");
    }
    format!(
        "<style>\n\
         text {{ font: 13px sans-serif; fill: #1a1a1a }}\n.id {{ font-size: 10px; text-anchor: middle }}\n\
         .page {{ fill: #ffffff }}\n.tile {{ stroke: #ffffff; stroke-width: 1 }}\n{light}\
         @media (prefers-color-scheme: dark) {{\ntext {{ fill: #e6e6e6 }}\n.page {{ fill: #16181c }}\n\
         .tile {{ stroke: #16181c }}\n{dark}}}\n</style>\n"
    )
}
