//! Kernels in instantiations that the library does not have. They execute every unrolled
//! iteration of the sources (sixteen chunks a thread, eight steps a block), and every
//! family runs with an epilogue that is not the identity.

use gpu_kernels::dtype::{AlongK, AlongMn};
use gpu_kernels::element::{F16, F32, Tf32};
use gpu_kernels::epilogue::{BiasAxis, SourceUse};
use gpu_kernels::kernel::Kernel;
use gpu_kernels::kernels::hopper::{Cooperative, Hopper, PingPong, box_rows, last_box_rows};
use gpu_kernels::kernels::naive::Naive;
use gpu_kernels::kernels::tensor_core::{Multistage, Pipelined, TensorCore};
use gpu_kernels::kernels::tiled::Tiled;
use gpu_kernels::problem::MapAddress;
use gpu_kernels::{
    DType, EpilogueArguments, Family, Form, GemmParams, Raster, TensorRef, TileGrid, TileOrder,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise_emulator::semantics::convert::f16_from_f32;
use tilewise_emulator::semantics::swizzle::Swizzle;
use tilewise_emulator::semantics::tensor_map::TensorMap;
use tilewise_emulator::{Memory, Options};

use crate::{LaunchConfig, run_with};

/// A matrix of rows by columns, contiguous along rows or along columns.
struct Stored {
    rows: u32,
    columns: u32,
    by_rows: bool,
}

impl Stored {
    fn operand(&self, address: u64) -> TensorRef {
        let (row_stride, col_stride) = match self.by_rows {
            true => (self.columns.into(), 1),
            false => (1, self.rows.into()),
        };
        TensorRef {
            address,
            row_stride,
            col_stride,
            batch_stride: 0,
        }
    }

    fn index(&self, row: u32, column: u32) -> usize {
        let TensorRef {
            row_stride,
            col_stride,
            ..
        } = self.operand(0);
        (u64::from(row) * row_stride + u64::from(column) * col_stride) as usize
    }
}

/// Runs kernel `K` on matrices of small integers in these layouts, whose product is
/// exact; C is f32.
fn product_is_exact<K: Kernel>(k: u32, a_by_rows: bool, b_by_rows: bool) {
    product_is::<K>(k, a_by_rows, b_by_rows, DType::F32, false);
}

/// The tensor map that a hopper kernel needs for an f16 operand contiguous along K, with
/// `rows` rows (B: columns) and tiles of 64 rows.
fn map_along_k(address: u64, rows: u32, k: u32, box_rows: u32) -> Vec<u8> {
    let map = TensorMap {
        address,
        dtype: DType::F16.into(),
        dims: [k.into(), rows.into()],
        pitch_bytes: 2 * u64::from(k),
        planes: None,
        box_dims: [64, box_rows],
        swizzle: Swizzle::Bytes128,
    };
    map.encode().unwrap().to_vec()
}

/// Runs kernel `K` on matrices of small integers in these layouts, with C of type `output`;
/// if `is_sloped`, with an epilogue whose values depend on the row and the column
/// ([`sloped`]).
fn product_is<K: Kernel>(k: u32, a_by_rows: bool, b_by_rows: bool, output: DType, is_sloped: bool) {
    let info = K::INFO;
    // One tile, and the edge of another.
    let (m, n) = (info.block.m + 8, info.block.n);
    let a = Stored {
        rows: m,
        columns: k,
        by_rows: a_by_rows,
    };
    let b = Stored {
        rows: k,
        columns: n,
        by_rows: b_by_rows,
    };
    let mut random = StdRng::seed_from_u64(1);
    let mut integers =
        |count: u32| -> Vec<i8> { (0..count).map(|_| random.random_range(-4..=4)).collect() };
    let (a_values, b_values) = (integers(m * k), integers(k * n));
    let bytes = |values: &[i8]| -> Vec<u8> {
        let element = |&value: &i8| match info.input {
            DType::F16 => half_bits(value).to_le_bytes().to_vec(),
            _ => f32::from(value).to_le_bytes().to_vec(),
        };
        values.iter().flat_map(element).collect()
    };
    let mut memory = Memory::new();
    let mut place = |bytes: &[u8]| {
        let address = memory.allocate(bytes.len() as u64);
        memory.write(address, bytes).unwrap();
        address
    };
    let (a_address, b_address) = (place(&bytes(&a_values)), place(&bytes(&b_values)));
    let maps = match info.family {
        Family::Hopper => {
            let last_rows = last_box_rows(64, 1, m).expect("M is no multiple of the tile");
            let none = vec![0; 128];
            let maps = [
                map_along_k(a_address, m, k, box_rows(64, 1, m)),
                map_along_k(b_address, n, k, box_rows(64, 1, n)),
                none.clone(),
                none.clone(),
                map_along_k(a_address, m, k, last_rows),
                none,
            ];
            place(&maps.concat())
        }
        _ => 0,
    };
    let c_bytes = output.bytes();
    let rounded = |value: f32| match output {
        DType::F16 => f16_from_f32(value).to_le_bytes().to_vec(),
        _ => value.to_le_bytes().to_vec(),
    };
    let rows: Vec<u8> = (0..m).flat_map(|row| rounded(row as f32)).collect();
    let columns: Vec<u8> = (0..m * n).flat_map(|at| rounded((at % n) as f32)).collect();
    let (bias, source) = (place(&rows), place(&columns));
    let c_address = memory.allocate(u64::from(c_bytes * m * n));
    let form = Form {
        scaled: 1,
        bias: BiasAxis::PerRow,
        source: SourceUse::Add,
        ..Form::plain(output)
    };
    let params = GemmParams {
        form: if is_sloped { form } else { Form::plain(output) },
        m,
        n,
        k,
        raster: Raster::new(
            TileOrder::RowMajor,
            TileGrid::cover(m, n, info.block.m, info.block.n),
        ),
        epilogue: EpilogueArguments {
            source: TensorRef {
                address: source,
                row_stride: n.into(),
                col_stride: 1,
                batch_stride: 0,
            },
            bias,
            alpha: 2.0,
            beta: -3.0,
            ..EpilogueArguments::NONE
        },
        a: a.operand(a_address),
        b: b.operand(b_address),
        c: TensorRef {
            address: c_address,
            row_stride: n.into(),
            col_stride: 1,
            batch_stride: 0,
        },
        ..GemmParams::NONE
    };
    let config = LaunchConfig {
        ctas: 2,
        ctas_per_cluster: 1,
        threads: info.threads,
        shared_bytes: info.shared_bytes,
    };
    run_with(&mut memory, config, &Options::default(), || {
        // SAFETY: launched as `INFO` says; the emulator checks every access.
        unsafe { K::run(&params, MapAddress::new(maps)) };
    })
    .unwrap_or_else(|reports| panic!("{reports:?}"));
    let found = memory.read(c_address, u64::from(c_bytes * m * n)).unwrap();
    let found: Vec<&[u8]> = found.chunks(c_bytes as usize).collect();
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let terms = (0..k).map(|at| {
            let (a, b) = (a_values[a.index(row, at)], b_values[b.index(at, column)]);
            i32::from(a) * i32::from(b)
        });
        let sum = terms.sum::<i32>() as f32;
        let expected = if is_sloped {
            sloped(sum, row, column)
        } else {
            sum
        };
        let bits = rounded(expected);
        let found = found[(row * n + column) as usize];
        assert_eq!(found, bits, "C({row}, {column}) is not {expected}");
    }
}

/// A small integer as f16: sign, exponent, and at most three digits.
fn half_bits(value: i8) -> u16 {
    let magnitude = f32::from(value.unsigned_abs()).to_bits();
    let sign = u16::from(value < 0) << 15;
    match magnitude {
        0 => sign,
        bits => sign | ((bits >> 13) - ((127 - 15) << 10)) as u16,
    }
}

#[test]
fn tensor_core_with_eight_steps_and_sixteen_chunks() {
    type Deep<A, B> = TensorCore<Tf32, A, B, 128, 128, 64, 64, 64, Multistage<2>>;
    product_is_exact::<Deep<AlongK, AlongK>>(192, true, false);
    product_is_exact::<Deep<AlongMn, AlongMn>>(192, false, true);
}

#[test]
fn tensor_core_through_registers_with_eight_steps_and_one_stored_part() {
    type Deep<A, B> = TensorCore<F16, A, B, 64, 64, 64, 32, 32, Pipelined<1>>;
    product_is_exact::<Deep<AlongK, AlongK>>(200, true, false);
    product_is_exact::<Deep<AlongMn, AlongK>>(200, false, false);
    product_is_exact::<Deep<AlongK, AlongMn>>(200, true, true);
    // Read element by element, and the last block in part.
    product_is_exact::<Deep<AlongK, AlongK>>(67, false, true);
    product_is_exact::<Deep<AlongMn, AlongMn>>(67, true, false);
}

#[test]
fn tiled_with_sixteen_elements_a_thread() {
    type Deep = Tiled<F16, 128, 128, 32>;
    for k in [64, 37] {
        product_is_exact::<Deep>(k, true, true);
        product_is_exact::<Deep>(k, false, false);
    }
}

/// An element of C with α = 2, β = −3, the index of the row as bias and the index of the
/// column as source.
fn sloped(sum: f32, row: u32, col: u32) -> f32 {
    2.0 * sum + row as f32 - 3.0 * col as f32
}

#[test]
fn every_family_applies_its_epilogue_at_the_right_place() {
    let f16 = DType::F16;
    product_is::<Naive<F32>>(40, true, true, DType::F32, true);
    for output in [DType::F32, f16] {
        product_is::<Naive<F16>>(40, true, true, output, true);
        product_is::<Tiled<F16, 64, 64, 16>>(40, true, true, output, true);
        type Warps<A, B> = TensorCore<F16, A, B, 64, 64, 64, 32, 32, Multistage<4>>;
        product_is::<Warps<AlongK, AlongK>>(72, true, false, output, true);
        type InParts<A, B> = TensorCore<F16, A, B, 128, 128, 32, 64, 64, Pipelined<2>>;
        product_is::<InParts<AlongMn, AlongMn>>(72, false, true, output, true);
        type Together = Hopper<F16, AlongK, AlongK, 64, 64, 64, 4, Cooperative>;
        product_is::<Together>(72, true, false, output, true);
        type Alternating = Hopper<F16, AlongK, AlongK, 64, 64, 64, 4, PingPong>;
        product_is::<Alternating>(72, true, false, output, true);
    }
}
