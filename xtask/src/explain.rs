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
use std::str::FromStr;

use anyhow::{Result, ensure};

/// Rows and columns of a block that are printed without `--full`.
const SHOWN: u64 = 8;

/// `M×N×K` of a problem, or of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    m: u64,
    n: u64,
    k: u64,
}

impl FromStr for Extents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [m, n, k] = numbers(text, 'x', "MxNxK, three numbers from 1 to 2147483647")?;
        if [m, n, k].contains(&0) {
            return Err(format!("'{text}' has an extent of 0; accepted: 1 and more"));
        }
        Ok(Extents { m, n, k })
    }
}

/// A tile of C, in tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileIndex {
    m: u64,
    n: u64,
}

impl FromStr for TileIndex {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let [m, n] = numbers(text, ',', "M,N, two numbers from 0 to 2147483647")?;
        Ok(TileIndex { m, n })
    }
}

/// Elements from one row, and one column, of each matrix to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strides {
    a: [u64; 2],
    b: [u64; 2],
    c: [u64; 2],
}

impl FromStr for Strides {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let accepted = "AM,AK,BK,BN,CM,CN, six numbers from 0 to 2147483647";
        let [am, ak, bk, bn, cm, cn] = numbers(text, ',', accepted)?;
        Ok(Strides {
            a: [am, ak],
            b: [bk, bn],
            c: [cm, cn],
        })
    }
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
    #[arg(long, value_name = "M,N", default_value = "0,0")]
    tile: TileIndex,
    /// Rows and columns of a tile of C, and the depth of a k-block: BLOCK_M, BLOCK_N, BLOCK_K
    #[arg(long, value_name = "MxNxK", default_value = "16x16x16")]
    block: Extents,
    /// The problem
    #[arg(long, value_name = "MxNxK", default_value = "64x64x64")]
    shape: Extents,
    /// Elements between neighbours, as Triton names them: stride_am, stride_ak and so on [default: row-major]
    #[arg(long, value_name = "AM,AK,BK,BN,CM,CN")]
    strides: Option<Strides>,
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
        tile,
        block,
        shape,
        k_block,
        full,
        ..
    } = *arguments;
    let strides = arguments.strides.unwrap_or(Strides {
        a: [shape.k, 1],
        b: [shape.n, 1],
        c: [shape.n, 1],
    });
    let (tiles_m, tiles_n) = (shape.m.div_ceil(block.m), shape.n.div_ceil(block.n));
    let k_blocks = shape.k.div_ceil(block.k);
    ensure!(
        tile.m < tiles_m && tile.n < tiles_n,
        "--tile {},{}: C is {tiles_m}×{tiles_n} tiles; accepted: 0,0 to {},{}",
        tile.m,
        tile.n,
        tiles_m - 1,
        tiles_n - 1
    );
    let k_block = u64::from(k_block);
    ensure!(
        k_block < k_blocks,
        "--k-block {k_block}: K has {k_blocks} k-blocks; accepted: 0 to {}",
        k_blocks - 1
    );

    let span = |index: u64, length: u64| index * length..(index + 1) * length;
    let rows = span(tile.m, block.m);
    let cols = span(tile.n, block.n);
    let depth = span(k_block, block.k);
    let mut text = format!(
        "tile ({}, {}) of {tiles_m}×{tiles_n}: C[{}, {}] = A[{}, :] · B[:, {}], in {k_blocks} k-blocks of {}\n",
        tile.m,
        tile.n,
        slice(&rows),
        slice(&cols),
        slice(&rows),
        slice(&cols),
        block.k
    );
    let blocks = [
        (
            "A",
            rows.clone(),
            depth.clone(),
            [shape.m, shape.k],
            strides.a,
        ),
        ("B", depth, cols.clone(), [shape.k, shape.n], strides.b),
        ("C", rows, cols, [shape.m, shape.n], strides.c),
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
        block.k * strides.a[1],
        block.k * strides.b[0]
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
    let lines: Vec<Vec<String>> = rows
        .iter()
        .map(|row| {
            cols.iter()
                .map(|col| match (row, col) {
                    (Some(row), Some(col)) if *row < extent[0] && *col < extent[1] => {
                        (row * strides[0] + col * strides[1]).to_string()
                    }
                    (Some(_), Some(_)) => "·".to_owned(),
                    _ => "…".to_owned(),
                })
                .collect()
        })
        .collect();
    let cells = lines.iter().flatten();
    let width = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        for cell in line {
            let _ = write!(text, " {cell:>width$}");
        }
        text.push('\n');
    }
    text
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
            tile: tile.parse().unwrap(),
            block: block.parse().unwrap(),
            shape: shape.parse().unwrap(),
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
        arguments.strides = Some("1,3,10,1,10,1".parse().unwrap());
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
            assert!(text.parse::<Extents>().is_err(), "{text}");
        }
        assert!("1,2,3,4,5".parse::<Strides>().is_err());
        assert!("1".parse::<TileIndex>().is_err());
    }
}
