//! Kernels in other instantiations than those of the library, which go through all
//! that the sources unroll: sixteen chunks a thread, eight steps a block.

use gpu_kernels::element::{F16, Tf32};
use gpu_kernels::kernel::{AlongK, AlongMn, Kernel};
use gpu_kernels::kernels::{tensor_core::TensorCore, tiled::Tiled};
use gpu_kernels::{DType, GemmParams, Operand, OutputType, Schedule, TileOrder};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tilewise_emulator::{Memory, Options};

use crate::{LaunchConfig, run_with};

/// Rows by columns, and which index moves by one element.
struct Stored {
    rows: u32,
    columns: u32,
    by_rows: bool,
}

impl Stored {
    fn operand(&self, address: u64) -> Operand {
        let (row_stride, col_stride) = match self.by_rows {
            true => (self.columns.into(), 1),
            false => (1, self.rows.into()),
        };
        Operand {
            address,
            row_stride,
            col_stride,
        }
    }

    fn index(&self, row: u32, column: u32) -> usize {
        let Operand {
            row_stride,
            col_stride,
            ..
        } = self.operand(0);
        (u64::from(row) * row_stride + u64::from(column) * col_stride) as usize
    }
}

/// Has kernel `K` multiply matrices of small integers, whose product is exact, stored
/// so; C is f32.
fn product_is_exact<K: Kernel>(k: u32, a_by_rows: bool, b_by_rows: bool) {
    let info = K::INFO;
    // A tile, and the edge of another.
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
    let c_address = memory.allocate(u64::from(4 * m * n));
    let params = GemmParams {
        a: a.operand(a_address),
        b: b.operand(b_address),
        c: Operand {
            address: c_address,
            row_stride: n.into(),
            col_stride: 1,
        },
        tensor_maps: 0,
        workspace: 0,
        m,
        n,
        k,
        output: OutputType::F32,
        order: TileOrder::RowMajor,
        schedule: Schedule::Grid1d,
        store_by_tma: 0,
        sharers: 0,
    };
    let config = LaunchConfig {
        ctas: 2,
        ctas_per_cluster: 1,
        threads: info.threads,
        shared_bytes: info.shared_bytes,
    };
    run_with(&mut memory, config, &Options::default(), || {
        // SAFETY: launched as `INFO` says; every access is looked up.
        unsafe { K::run(&params) };
    })
    .unwrap_or_else(|reports| panic!("{reports:?}"));
    let found = memory.read(c_address, u64::from(4 * m * n)).unwrap();
    let found = found.as_chunks::<4>().0;
    for (row, column) in (0..m).flat_map(|row| (0..n).map(move |column| (row, column))) {
        let terms = (0..k).map(|at| {
            let (a, b) = (a_values[a.index(row, at)], b_values[b.index(at, column)]);
            i32::from(a) * i32::from(b)
        });
        let expected = terms.sum::<i32>() as f32;
        let found = f32::from_le_bytes(found[(row * n + column) as usize]);
        assert_eq!(found, expected, "C({row}, {column})");
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
    type Deep<A, B> = TensorCore<Tf32, A, B, 128, 128, 64, 64, 64, 2>;
    product_is_exact::<Deep<AlongK, AlongK>>(192, true, false);
    product_is_exact::<Deep<AlongMn, AlongMn>>(192, false, true);
}

#[test]
fn tiled_with_sixteen_elements_a_thread() {
    type Deep = Tiled<F16, 128, 128, 32>;
    for k in [64, 37] {
        product_is_exact::<Deep>(k, true, true);
        product_is_exact::<Deep>(k, false, false);
    }
}
