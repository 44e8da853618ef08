//! Batch-invariant results, bit by bit, with the arithmetic of the tensor cores as it was
//! measured (`emulator/src/semantics/dot.rs`): over the number of rows, all kernels that the
//! selection may take, layouts, batches and epilogues.

use gpu_kernels::entry::KERNELS;
use tilewise::emulator::EmulatedGpu;
use tilewise::select::{Catalog, SumOrder};
use tilewise::{
    Activation, Bias, DType, Device, Element, Epilogue, Error, Family, Gated, Gemm, Inputs,
    KernelInfo, Layout, Matrix, MatrixView, Output, Precision, bf16, f16,
};

use crate::common::Random;

/// Rows of the largest product.
const ROWS: usize = 300;

/// A GPU of a few SMs; kernels are checked elsewhere.
fn gpu(compute_capability: (u32, u32), sms: u32) -> Device {
    let gpu = EmulatedGpu {
        compute_capability,
        sms,
        checks: false,
        ..EmulatedGpu::default()
    };
    Device::emulated(gpu).unwrap()
}

/// A matrix on `device`, by rows or by columns; elements are dense, so that another order of
/// sums gives other bits.
fn operand<T: Element>(
    device: &Device,
    elements: &[T],
    (rows, cols): (usize, usize),
    by_rows: bool,
) -> Matrix<T> {
    let (row_stride, col_stride) = if by_rows { (cols, 1) } else { (1, rows) };
    let mut matrix = (device.zeros_strided(rows, cols, row_stride, col_stride)).unwrap();
    matrix.copy_from_slice(elements).unwrap();
    matrix
}

fn elements<T: Element>(random: &mut Random, rows: usize, cols: usize) -> Vec<T> {
    let matrix = random.matrix::<T>(&Device::cpu(), rows, cols);
    matrix.to_vec().unwrap()
}

/// The product as `gemm` computes it, row by row.
fn product<T: Element, O: Output<T>>(
    device: &Device,
    gemm: &Gemm,
    a: MatrixView<T>,
    b: MatrixView<T>,
) -> Result<Vec<O>, Error> {
    let mut c = device.zeros::<O>(a.rows(), b.cols()).unwrap();
    gemm.plan(a, b, &mut c)?.run(a, b, &mut c)?;
    c.to_vec()
}

fn same_bits<T: Element>(found: &[T], expected: &[T]) -> bool {
    bytemuck::cast_slice::<T, u8>(found) == bytemuck::cast_slice::<T, u8>(expected)
}

/// What the library chooses for 1 to 300 rows, from any row on, has the bits of the same rows
/// in the whole product. Returns how many products would have others without the flag, of
/// `free` that are tried.
fn rows_are_the_same<T: Element>(
    precision: Precision,
    (n, k): (usize, usize),
    step: usize,
    free: usize,
) -> usize
where
    f32: Output<T>,
{
    // As many SMs as an H200 has, so that the selection takes the tiles that it takes there.
    let device = gpu((9, 0), 132);
    let mut random = Random::new(18);
    let open = Gemm::new(&device).precision(precision);
    let gemm = open.clone().batch_invariant(true);
    let a = operand::<T>(&device, &elements(&mut random, ROWS, k), (ROWS, k), true);
    let b = operand::<T>(&device, &elements(&mut random, k, n), (k, n), true);
    let whole = product::<T, f32>(&device, &gemm, a.view(), b.view()).unwrap();
    let mut differing = 0;
    for (index, m) in (1..=ROWS).step_by(step).enumerate() {
        let first = random.below(ROWS - m + 1);
        let rows = a.view().slice(first..first + m, 0..k).unwrap();
        let part = |gemm| product::<T, f32>(&device, gemm, rows, b.view()).unwrap();
        let expected = &whole[first * n..][..m * n];
        assert!(same_bits(&part(&gemm), expected), "{m} rows from {first}");
        differing += usize::from(index < free && !same_bits(&part(&open), expected));
    }
    differing
}

#[test]
fn a_row_has_the_same_bits_in_products_of_1_to_300_rows() {
    rows_are_the_same::<f16>(Precision::Ieee, (40, 200), 1, 0);
    rows_are_the_same::<bf16>(Precision::Ieee, (264, 136), 7, 0);
    rows_are_the_same::<f32>(Precision::Tf32, (40, 72), 7, 0);
    rows_are_the_same::<f32>(Precision::F16x3, (40, 136), 17, 0);
    rows_are_the_same::<f32>(Precision::Ieee, (24, 40), 23, 0);
    // Deep enough that the library splits K where it may.
    let differing = rows_are_the_same::<f16>(Precision::Ieee, (72, 2048), 43, 4);
    assert!(differing > 0, "without the flag, the bits are others");
}

/// Whether the selection may take `kernel` for batch-invariant products on `device`.
fn may_be_taken(device: &Device, kernel: &KernelInfo, k: usize) -> bool {
    let catalog = Catalog {
        kernels: KERNELS,
        is_built: |_| true,
    };
    let target = device.gpu_info().unwrap().target();
    let order = SumOrder::invariant(catalog, kernel.input, k as u32, &target);
    SumOrder::of(kernel, k as u32) == order
}

/// The names of the kernels that have the bits of all others, and of those that are refused
/// and have other bits.
struct Compared {
    same: Vec<&'static str>,
    refused: Vec<&'static str>,
}

/// Every kernel of `family` for `input`, forced, over numbers of rows and layouts.
fn every_kernel<T: Element>(device: &Device, family: Family, input: DType) -> Compared
where
    f32: Output<T>,
{
    // Four k-blocks of 64, two of 128, and columns that no tile divides.
    let (n, k) = (136, 200);
    let mut random = Random::new(19);
    let (a, b) = (
        elements::<T>(&mut random, ROWS, k),
        elements::<T>(&mut random, k, n),
    );
    let precision = Precision::from(input);
    let free = Gemm::new(device).precision(precision);
    let whole = {
        let a = operand(device, &a, (ROWS, k), true);
        let b = operand(device, &b, (k, n), true);
        let gemm = free.clone().batch_invariant(true);
        product::<T, f32>(device, &gemm, a.view(), b.view()).unwrap()
    };
    let mut compared = Compared {
        same: Vec::new(),
        refused: Vec::new(),
    };
    let (major, minor) = device.gpu_info().unwrap().compute_capability;
    let kernels = KERNELS.iter().filter(|kernel| {
        (kernel.family, kernel.input) == (family, input) && kernel.arch.runs_on(major, minor)
    });
    for (index, kernel) in kernels.enumerate() {
        let taken = may_be_taken(device, kernel, k);
        // A few rows, more than a tile, and all; of kernels with other sums, so many that stream-K shares
        // tiles.
        let sizes: &[usize] = if taken {
            &[1 + index % 16, 130]
        } else {
            &[130]
        };
        let mut differs = false;
        for &m in sizes {
            let first = random.below(ROWS - m + 1);
            // Both directions of both operands: in place and packed.
            let a = &a[first * k..][..m * k];
            let a = operand(device, a, (m, k), random.below(2) == 0);
            let b = operand(device, &b, (k, n), random.below(2) == 0);
            let expected = &whole[first * n..][..m * n];
            let gemm = free.clone().kernel(kernel.name);
            let invariant = gemm.clone().batch_invariant(taken);
            let same = if kernel.c_by_tma_only {
                let rounded: Vec<T> = expected
                    .iter()
                    .map(|&sum| T::from_f64(sum.into()))
                    .collect();
                let found = product::<T, T>(device, &invariant, a.view(), b.view()).unwrap();
                same_bits(&found, &rounded)
            } else {
                let found = product::<T, f32>(device, &invariant, a.view(), b.view()).unwrap();
                same_bits(&found, expected)
            };
            assert!(same || !taken, "{}: {m} rows from {first}", kernel.name);
            differs |= !same;
            let strict = gemm.batch_invariant(true);
            let refused = strict.plan_for::<T, T>(a.layout(), b.layout(), Layout::row_major(m, n));
            assert_eq!(refused.is_err(), !taken, "{}", kernel.name);
        }
        match taken {
            true => compared.same.push(kernel.name),
            false if differs => compared.refused.push(kernel.name),
            false => {}
        }
    }
    compared
}

#[test]
fn all_tiles_that_may_be_taken_have_the_same_bits() {
    let hopper = gpu((9, 0), 3);
    let f16 = every_kernel::<f16>(&hopper, Family::Hopper, DType::F16);
    // Each shape of clusters counts: 52 in every layout; 110 more where B lies along K, 54 of them with C
    // along M; 42 more where B lies along N, 21 of them with C along M.
    let of_16_bits = 4 * 52 + 2 * 110 + 2 * 42;
    assert_eq!(f16.same.len(), of_16_bits);
    // The comparison tells apart: kernels that split K have other bits, and so has stream-K
    // where tiles are shared.
    assert_eq!(
        f16.refused
            .iter()
            .filter(|name| name.contains("split") && !name.contains("splitk"))
            .count(),
        38
    );
    assert!(f16.refused.iter().any(|name| name.ends_with("streamk")));
    assert_eq!(
        every_kernel::<bf16>(&hopper, Family::Hopper, DType::Bf16)
            .same
            .len(),
        of_16_bits
    );
    // All but the k-blocks of 64, which add zeros up to 256 where the others end at 224.
    assert_eq!(
        every_kernel::<f32>(&hopper, Family::Hopper, DType::Tf32)
            .same
            .len(),
        19
    );
    let parts = every_kernel::<f32>(&hopper, Family::Hopper, DType::F16x3);
    assert_eq!((parts.same.len(), parts.refused.len()), (4, 2));

    let ampere = gpu((8, 0), 3);
    for (count, input) in [(12, DType::F16), (12, DType::Tf32)] {
        let compared = match input {
            DType::F16 => every_kernel::<f16>(&ampere, Family::TensorCore, input),
            _ => every_kernel::<f32>(&ampere, Family::TensorCore, input),
        };
        assert_eq!(compared.same.len(), count);
    }
    let parts = every_kernel::<f32>(&ampere, Family::TensorCore, DType::F16x3);
    assert_eq!((parts.same.len(), parts.refused.len()), (2, 0));
    let turing = gpu((7, 5), 3);
    assert_eq!(
        every_kernel::<f32>(&turing, Family::Tiled, DType::F32)
            .same
            .len(),
        2
    );
    assert_eq!(
        every_kernel::<bf16>(&turing, Family::Tiled, DType::Bf16)
            .same
            .len(),
        2
    );
    assert_eq!(
        every_kernel::<f16>(&turing, Family::TensorCore, DType::F16)
            .same
            .len(),
        8
    );
}

/// A product with an epilogue, and its operands for 300 rows.
struct Layer<'d> {
    device: &'d Device,
    epilogue: Epilogue,
    is_gated: bool,
    a: Vec<f16>,
    b: Matrix<f16>,
    source: Vec<f32>,
    bias: Matrix<f32>,
    row_scale: Vec<f32>,
    col_scale: Matrix<f32>,
}

/// How the first rows are computed, and how C is stored.
#[derive(Clone, Copy, Debug)]
struct Launch {
    rows: usize,
    /// Products, which all have the same A.
    batches: usize,
    by_rows: bool,
}

impl Layer<'_> {
    /// The rows of C, and whether the plan takes two launches.
    fn rows(&self, launch: Launch) -> (Vec<f32>, bool) {
        let Launch {
            rows,
            batches,
            by_rows,
        } = launch;
        let (k, n) = (self.b.rows(), self.b.cols());
        let cols = if self.is_gated { n / 2 } else { n };
        let a = (self.device.from_slice(&self.a[..rows * k], rows, k)).unwrap();
        let source = (self.device.from_slice(&self.source[..rows * n], rows, n)).unwrap();
        let row_scale = (self.device.from_slice(&self.row_scale[..rows], rows, 1)).unwrap();
        let mut inputs = Inputs::new().bias(self.bias.view());
        inputs = inputs.col_scale(self.col_scale.view());
        if !self.is_gated {
            inputs = inputs.source(source.view()).row_scale(row_scale.view());
        }
        let layout = match by_rows {
            true => Layout::row_major(rows, cols),
            false => Layout::row_major(cols, rows).transposed(),
        };
        let mut memory = self.device.zeros::<f32>(1, batches * rows * cols).unwrap();
        let batch = layout.batched(batches);
        let c = || memory.view().with_layout(batch).unwrap();
        let gemm = Gemm::new(self.device)
            .epilogue(self.epilogue)
            .batch_invariant(true);
        let shared = a.layout().batched_by(batches, 0);
        let a = a.view().with_layout(shared).unwrap();
        let mut plan = gemm.plan_for::<f16, f32>(a.layout(), self.b.layout(), c().layout());
        let plan = plan.as_mut().unwrap();
        let info = *plan.info().gpu().unwrap();
        // Scales of rows and of columns would be applied in the other order.
        assert!(self.is_gated || !info.transposed);
        let c = memory.view_mut().with_layout(batch).unwrap();
        plan.run_with(a, &self.b, c, &inputs).unwrap();
        let last = memory.view().with_layout(batch).unwrap().batch(batches - 1);
        (last.unwrap().to_vec().unwrap(), info.two_launches)
    }
}

/// All parts of an epilogue, C by rows and by columns, alone and in a batch, in one launch and
/// in two: the bits of a row are the same.
#[test]
fn epilogues_have_the_same_bits_in_all_launches() {
    let (device, mut random) = (gpu((9, 0), 4), Random::new(20));
    let (n, k) = (256, 72);
    let all = Epilogue::new()
        .alpha(0.7)
        .beta(1.3)
        .row_scale()
        .col_scale()
        .bias(Bias::PerColumn)
        .activation(Activation::Gelu);
    let pairs = Epilogue::new()
        .alpha(0.7)
        .col_scale()
        .bias(Bias::PerColumn)
        .activation(Activation::Silu);
    let halves = pairs.gated(Gated::Halves);
    let interleaved = pairs.gated(Gated::Interleaved);
    for (epilogue, is_gated) in [(all, false), (halves, true), (interleaved, true)] {
        let vector = |random: &mut Random| {
            let values = elements::<f32>(random, 1, n);
            device.from_slice(&values, 1, n).unwrap()
        };
        let b = elements(&mut random, k, n);
        let layer = Layer {
            device: &device,
            epilogue,
            is_gated,
            a: elements(&mut random, ROWS, k),
            b: device.from_slice(&b, k, n).unwrap(),
            source: elements(&mut random, ROWS, n),
            bias: vector(&mut random),
            row_scale: elements(&mut random, ROWS, 1),
            col_scale: vector(&mut random),
        };
        let launch = |rows, batches, by_rows| Launch {
            rows,
            batches,
            by_rows,
        };
        let (whole, _) = layer.rows(launch(ROWS, 1, true));
        let mut in_two = 0;
        for rows in [1, 16, 129] {
            for (batches, by_rows) in [(1, true), (1, false), (2, true)] {
                let launch = launch(rows, batches, by_rows);
                let (part, two_launches) = layer.rows(launch);
                assert!(
                    same_bits(&part, &whole[..part.len()]),
                    "{launch:?}: {epilogue:?}"
                );
                in_two += u32::from(two_launches);
            }
        }
        assert_eq!(in_two, if is_gated { 3 } else { 0 });
    }
}

/// The zeros past K count: a sum that has underflowed to −0 becomes +0 when zeros are added.
/// So a kernel with deeper k-blocks is no substitute where it adds more of them.
#[test]
fn zeros_past_the_end_of_k_can_change_a_sum() {
    let device = gpu((9, 0), 3);
    let tiny = 2_f64.powi(-75);
    let a: Vec<bf16> = (0..64)
        .map(|k| bf16::from_f64(if k == 63 { -tiny } else { 0.0 }))
        .collect();
    let a = device.from_slice(&a, 1, 64).unwrap();
    let b = device
        .from_slice(&vec![bf16::from_f64(tiny); 64 * 8], 64, 8)
        .unwrap();
    let signs = |gemm: &Gemm| {
        let c = product::<bf16, f32>(&device, gemm, a.view(), b.view()).unwrap();
        c.iter().map(|sum| sum.to_bits()).collect::<Vec<u32>>()
    };
    let free = Gemm::new(&device);
    let kernel = |name: &str| free.clone().kernel(name);
    let whole = signs(&kernel("hopper_bf16_ak_bn_128x128x64"));
    assert_eq!(whole, [(-0.0_f32).to_bits(); 8]);
    assert_eq!(signs(&kernel("hopper_bf16_ak_bn_64x64x128")), [0; 8]);
    assert_eq!(signs(&free.batch_invariant(true)), whole);
}
