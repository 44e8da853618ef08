//! `cargo xtask explain`: which elements of A, B and C one tile touches.
//!
//! Triton's matmul tutorial builds a block of pointers from a row of offsets and a
//! column of offsets, times the strides, and masks what lies past the edges:
//!
//! ```text
//! offset(row, col) = row · row_stride + col · col_stride
//! ```
//!
//! This prints those blocks as numbers, for any shape, block and strides, so that a
//! kernel's address arithmetic can be checked with pencil and paper. Masked elements
//! are dots: loads get zeros there, and stores do nothing.

use std::fmt::Write as _;
use std::ops::Range;

use anyhow::{Result, ensure};
use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Rows and columns of a block that are printed without `--full`.
const SHOWN: u64 = 8;

/// M, N, K of a problem, or of a block.
fn extents(text: &str) -> Result<[u64; 3], String> {
    let extents = numbers(text, 'x', "MxNxK, three numbers from 1 to 2147483647")?;
    if extents.contains(&0) {
        return Err(format!("'{text}' has an extent of 0; accepted: 1 and more"));
    }
    Ok(extents)
}

/// A tile of C, in tiles along M and N.
fn tile(text: &str) -> Result<[u64; 2], String> {
    numbers(text, ',', "M,N, two numbers from 0 to 2147483647")
}

/// Elements from one row, and one column, of each matrix to the next.
fn strides(text: &str) -> Result<[u64; 6], String> {
    let accepted = "AM,AK,BK,BN,CM,CN, six numbers from 0 to 2147483647";
    numbers(text, ',', accepted)
}

/// `COUNT` numbers below 2³¹, so that no product of two of them overflows.
fn numbers<const COUNT: usize>(
    text: &str,
    separator: char,
    accepted: &str,
) -> Result<[u64; COUNT], String> {
    let parsed: Option<Vec<u64>> = text
        .split(separator)
        .map(|part| part.trim().parse::<i32>().ok()?.try_into().ok())
        .collect();
    parsed
        .and_then(|numbers| numbers.try_into().ok())
        .ok_or_else(|| format!("'{text}' is not {accepted}"))
}

/// What to explain.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct Arguments {
    /// The tile of C, in tiles along M and N
    #[arg(long, value_name = "M,N", default_value = "0,0", value_parser = tile)]
    tile: [u64; 2],
    /// Rows and columns of a tile of C, and the depth of a k-block: BLOCK_M, BLOCK_N, BLOCK_K
    #[arg(long, value_name = "MxNxK", default_value = "16x16x16", value_parser = extents)]
    block: [u64; 3],
    /// The problem
    #[arg(long, value_name = "MxNxK", default_value = "64x64x64", value_parser = extents)]
    shape: [u64; 3],
    /// Elements between neighbours, as Triton names them: stride_am, stride_ak and so on [default: row-major]
    #[arg(long, value_name = "AM,AK,BK,BN,CM,CN", value_parser = strides)]
    strides: Option<[u64; 6]>,
    /// The k-block
    #[arg(long, default_value_t = 0)]
    k_block: u32,
    /// Print whole blocks, however large
    #[arg(long)]
    full: bool,
}

/// Prints the explanation.
pub fn run(arguments: &Arguments) -> Result<()> {
    print!("{}", explain(arguments)?);
    Ok(())
}

fn explain(arguments: &Arguments) -> Result<String> {
    let Arguments {
        tile: [tile_m, tile_n],
        block: [block_m, block_n, block_k],
        shape: [m, n, k],
        full,
        ..
    } = *arguments;
    let [am, ak, bk, bn, cm, cn] = arguments.strides.unwrap_or([k, 1, n, 1, n, 1]);
    let (tiles_m, tiles_n) = (m.div_ceil(block_m), n.div_ceil(block_n));
    let k_blocks = k.div_ceil(block_k);
    ensure!(
        tile_m < tiles_m && tile_n < tiles_n,
        "--tile {tile_m},{tile_n}: C is {tiles_m}×{tiles_n} tiles; accepted: 0,0 to {},{}",
        tiles_m - 1,
        tiles_n - 1
    );
    let k_block = u64::from(arguments.k_block);
    ensure!(
        k_block < k_blocks,
        "--k-block {k_block}: K has {k_blocks} k-blocks; accepted: 0 to {}",
        k_blocks - 1
    );

    let span = |index: u64, length: u64| index * length..(index + 1) * length;
    let rows = span(tile_m, block_m);
    let cols = span(tile_n, block_n);
    let depth = span(k_block, block_k);
    let (c_rows, c_cols) = (slice(&rows), slice(&cols));
    let mut text = format!(
        "tile ({tile_m}, {tile_n}) of {tiles_m}×{tiles_n}: C[{c_rows}, {c_cols}] = A[{c_rows}, :] · \
         B[:, {c_cols}], in {k_blocks} k-blocks of {block_k}\n"
    );
    let blocks = [
        ("A", rows.clone(), depth.clone(), [m, k], [am, ak]),
        ("B", depth, cols.clone(), [k, n], [bk, bn]),
        ("C", rows, cols, [m, n], [cm, cn]),
    ];
    for (name, rows, cols, extent, strides) in blocks {
        let when = if name == "C" {
            String::new()
        } else {
            format!(", k-block {k_block}")
        };
        let _ = writeln!(
            text,
            "\n{name}[{}, {}]{when}: offset = row · {} + col · {}; {}",
            slice(&rows),
            slice(&cols),
            strides[0],
            strides[1],
            mask(&rows, &cols, extent)
        );
        text += &table(&rows, &cols, extent, strides, full);
    }
    let _ = writeln!(
        text,
        "\nFrom one k-block to the next the offsets grow by {} in A and {} in B.",
        block_k * ak,
        block_k * bk
    );
    Ok(text)
}

/// A range as NumPy and Python write it.
fn slice(range: &Range<u64>) -> String {
    format!("{}:{}", range.start, range.end)
}

/// How much of a block lies inside.
fn mask(rows: &Range<u64>, cols: &Range<u64>, extent: [u64; 2]) -> String {
    let inside = |range: &Range<u64>, end: u64| range.end.min(end) - range.start;
    let (row, col) = (inside(rows, extent[0]), inside(cols, extent[1]));
    let (height, width) = (rows.end - rows.start, cols.end - cols.start);
    if (row, col) == (height, width) {
        "nothing masked".to_owned()
    } else {
        format!(
            "mask: row < {} and col < {}, {} of {} elements inside",
            extent[0],
            extent[1],
            row * col,
            height * width
        )
    }
}

/// The offsets of a block, a line a row; masked ones as dots, and where it is long
/// the middle left out.
fn table(
    rows: &Range<u64>,
    cols: &Range<u64>,
    extent: [u64; 2],
    strides: [u64; 2],
    full: bool,
) -> String {
    let (rows, cols) = (shown(rows, full), shown(cols, full));
    let cell = |row: &Option<u64>, col: &Option<u64>| match (row, col) {
        (Some(row), Some(col)) if *row < extent[0] && *col < extent[1] => {
            (row * strides[0] + col * strides[1]).to_string()
        }
        (Some(_), Some(_)) => "·".to_owned(),
        _ => "…".to_owned(),
    };
    let mut table = Table::new();
    table.load_style(NOTHING);
    for row in &rows {
        table.add_row(cols.iter().map(|col| cell(row, col)));
    }
    for column in table.column_iter_mut() {
        column
            .set_padding((1, 0))
            .set_cell_alignment(CellAlignment::Right);
    }
    format!("{table}\n")
}

/// The indices that are printed; `None` where some are left out.
fn shown(range: &Range<u64>, full: bool) -> Vec<Option<u64>> {
    let length = range.end - range.start;
    if full || length <= SHOWN {
        return range.clone().map(Some).collect();
    }
    let head = range.start..range.start + SHOWN - 2;
    head.map(Some).chain([None, Some(range.end - 1)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(tile: &str, block: &str, shape: &str) -> Arguments {
        Arguments {
            tile: super::tile(tile).unwrap(),
            block: extents(block).unwrap(),
            shape: extents(shape).unwrap(),
            strides: None,
            k_block: 0,
            full: false,
        }
    }

    #[test]
    fn a_tile_inside() {
        let text = explain(&arguments("0,1", "2x2x2", "4x4x4")).unwrap();
        let expected = "\
tile (0, 1) of 2×2: C[0:2, 2:4] = A[0:2, :] · B[:, 2:4], in 2 k-blocks of 2

A[0:2, 0:2], k-block 0: offset = row · 4 + col · 1; nothing masked
 0 1
 4 5

B[0:2, 2:4], k-block 0: offset = row · 4 + col · 1; nothing masked
 2 3
 6 7

C[0:2, 2:4]: offset = row · 4 + col · 1; nothing masked
 2 3
 6 7

From one k-block to the next the offsets grow by 2 in A and 8 in B.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn past_the_edge_is_masked_and_strides_are_the_callers() {
        let mut arguments = arguments("1,0", "2x2x2", "3x2x3");
        arguments.k_block = 1;
        // A transposed, B and C with padded rows.
        arguments.strides = Some([1, 3, 10, 1, 10, 1]);
        let text = explain(&arguments).unwrap();
        assert!(
            text.contains("A[2:4, 2:4], k-block 1: offset = row · 1 + col · 3; mask: row < 3 and col < 3, 1 of 4 elements inside\n 8 ·\n · ·\n"),
            "{text}"
        );
        assert!(text.contains("B[2:4, 0:2], k-block 1"), "{text}");
        assert!(text.contains("\n 20 21\n  ·  ·\n"), "{text}");
    }

    #[test]
    fn long_blocks_lose_their_middle_only() {
        assert_eq!(shown(&(8..16), false).len(), 8);
        let cut = shown(&(0..128), false);
        assert_eq!(
            (cut[0], cut[5], cut[6], cut[7]),
            (Some(0), Some(5), None, Some(127))
        );
        assert_eq!(shown(&(0..128), true).len(), 128);
    }

    #[test]
    fn what_does_not_exist_is_refused_by_name() {
        let refusal = |arguments: &Arguments| explain(arguments).unwrap_err().to_string();
        let text = refusal(&arguments("4,0", "16x16x8", "64x64x64"));
        assert_eq!(text, "--tile 4,0: C is 4×4 tiles; accepted: 0,0 to 3,3");
        let mut late = arguments("0,0", "16x16x8", "64x64x64");
        late.k_block = 8;
        assert_eq!(
            refusal(&late),
            "--k-block 8: K has 8 k-blocks; accepted: 0 to 7"
        );
        for text in ["16x16", "16x16x0", "16x16x-1", "axbxc", "1x1x4294967296"] {
            assert!(extents(text).is_err(), "{text}");
        }
        assert!(strides("1,2,3,4,5").is_err());
        assert!(tile("1").is_err());
    }
}
