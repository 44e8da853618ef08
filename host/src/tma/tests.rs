//! What TMA can read, and the boxes that it copies.

use super::*;
use crate::epilogue_form::EpilogueForm;
use crate::problem::{Problem, Strides};
use gpu_kernels::entry::KERNELS;
use gpu_kernels::kernels::hopper::{box_rows, last_box_rows};
use gpu_kernels::{DType, Family, KernelInfo, Major, OutputType};

/// f16, A 300×200, B 200×104 and C 300×104.
fn problem(a: (u64, u64), b: (u64, u64), c: (u64, u64)) -> Problem {
    let operand = |(row_stride, col_stride)| Strides::new(row_stride, col_stride);
    Problem {
        m: 300,
        n: 104,
        k: 200,
        batches: 1,
        input: DType::F16,
        output: OutputType::Input,
        a: operand(a),
        b: operand(b),
        c: operand(c),
        epilogue: EpilogueForm::PLAIN,
    }
}

/// Kernels that write C along N and along M.
fn c_kernels() -> [&'static KernelInfo; 2] {
    [false, true].map(|along_m| {
        let is =
            |kernel: &&KernelInfo| kernel.family == Family::Hopper && kernel.c_along_m == along_m;
        KERNELS.iter().find(is).unwrap()
    })
}

#[test]
fn lines_follow_the_contiguous_direction() {
    let rows = problem((200, 1), (104, 1), (104, 1));
    let a = GlobalTensor::of_a(&rows, Major::K).unwrap();
    assert_eq!((a.dims, a.pitch_bytes), ([200, 300], 400));
    let b = GlobalTensor::of_b(&rows, Major::Mn).unwrap();
    assert_eq!((b.dims, b.pitch_bytes), ([104, 200], 208));
    let [along_n, along_m] = c_kernels();
    let c = GlobalTensor::of_c(&rows, along_n).unwrap();
    assert_eq!((c.dims, c.pitch_bytes), ([104, 300], 208));
    assert_eq!(GlobalTensor::of_c(&rows, along_m), None);

    let columns = problem((1, 304), (1, 200), (1, 300));
    let a = GlobalTensor::of_a(&columns, Major::Mn).unwrap();
    assert_eq!((a.dims, a.pitch_bytes), ([300, 200], 608));
    let b = GlobalTensor::of_b(&columns, Major::K).unwrap();
    assert_eq!((b.dims, b.pitch_bytes), ([200, 104], 400));
    assert_eq!(GlobalTensor::of_c(&columns, along_n), None);
    let padded = Problem {
        c: Strides::new(1, 304),
        output: OutputType::F32,
        ..columns
    };
    let c = GlobalTensor::of_c(&padded, along_m).unwrap();
    assert_eq!((c.dims, c.pitch_bytes), ([300, 104], 1216));
    let ragged = Problem { m: 299, ..padded };
    assert_eq!(GlobalTensor::of_c(&ragged, along_m), None, "1196 bytes");
}

#[test]
fn what_tma_cannot_read_is_named() {
    let lines = |a| GlobalTensor::of_a(&problem(a, (104, 1), (104, 1)), Major::K);
    assert_eq!(
        lines((1, 300)).unwrap_err(),
        Unreadable::Stride {
            direction: "K",
            stride: 300
        }
    );
    for stride in [201, 192, 0, u64::MAX] {
        let pitch = stride.saturating_mul(2);
        assert_eq!(
            lines((stride, 1)).unwrap_err(),
            Unreadable::Pitch { pitch, line: 400 }
        );
    }
    let mut moved = problem((200, 1), (104, 1), (104, 1));
    moved.a.alignment = 8;
    assert_eq!(
        GlobalTensor::of_a(&moved, Major::K).unwrap_err(),
        Unreadable::Alignment { alignment: 8 }
    );
}

#[test]
fn strides_over_one_element_do_not_matter() {
    let mut row = problem((3, 1), (104, 1), (104, 1));
    row.m = 1;
    let a = GlobalTensor::of_a(&row, Major::K).unwrap();
    assert_eq!((a.dims, a.pitch_bytes), ([200, 1], 400));
    row.a.col_stride = 7;
    row.k = 1;
    let a = GlobalTensor::of_a(&row, Major::K).unwrap();
    assert_eq!((a.dims, a.pitch_bytes), ([1, 1], 16));
}

#[test]
fn c_is_written_through_tma_in_lines_of_multiples_of_16_bytes() {
    let mut problem = problem((200, 1), (104, 1), (104, 1));
    problem.n = 100;
    let [kernel, _] = c_kernels();
    assert_eq!(GlobalTensor::of_c(&problem, kernel), None, "200 bytes");
    problem.output = OutputType::F32;
    let c = GlobalTensor::of_c(&problem, kernel).unwrap();
    assert_eq!((c.dims, c.pitch_bytes), ([100, 300], 416));
}

#[test]
fn tf32_operands_give_an_f32_c() {
    let mut problem = problem((200, 1), (1, 200), (104, 1));
    problem.input = DType::Tf32;
    let a = GlobalTensor::of_a(&problem, Major::K).unwrap();
    assert_eq!((a.dims, a.pitch_bytes), ([200, 300], 800));
    for output in [OutputType::Input, OutputType::F32] {
        problem.output = output;
        assert_eq!(problem.output_dtype(), DType::F32);
    }
}

/// A problem whose B has 4096 columns.
fn wide() -> Problem {
    Problem {
        n: 4096,
        ..problem((200, 1), (4096, 1), (4096, 1))
    }
}

#[test]
fn boxes_are_128_bytes_wide() {
    let of = |input| {
        let hopper =
            |kernel: &&KernelInfo| kernel.family == Family::Hopper && kernel.input == input;
        let kernel = KERNELS.iter().find(hopper).unwrap();
        let wide = wide();
        let boxes = [
            a_box(kernel, Major::K, 4096),
            b_box(kernel, Major::K, &wide),
        ];
        (kernel.block, boxes)
    };
    let (block, boxes) = of(DType::F16);
    assert_eq!(boxes, [[64, block.m], [64, block.n]]);
    let (block, boxes) = of(DType::Tf32);
    assert_eq!(boxes, [[32, block.m], [32, block.n]]);
}

#[test]
fn boxes_are_one_swizzle_atom_wide_and_deep() {
    let named = |name| KERNELS.iter().find(|kernel| kernel.name == name).unwrap();
    for name in ["hopper_f16_am_bn_64x64x128", "hopper_f16_am_bn_64x128x64"] {
        let kernel = named(name);
        assert_eq!(a_box(kernel, Major::Mn, 4096), [64, 64], "{name}");
        assert_eq!(b_box(kernel, Major::Mn, &wide()), [64, 64], "{name}");
    }
    let tf32 = named("hopper_tf32_am_bk_cm_128x256x32");
    assert_eq!(a_box(tf32, Major::Mn, 4096), [32, 32]);
    assert_eq!(last_a_box(tf32, Major::Mn, 4095), None);
    assert_eq!(c_box(tf32, DType::F32), [32, 32]);
}

#[test]
fn ctas_that_split_k_store_the_rows_of_a_warp() {
    for (name, lines) in [
        ("hopper_f16_ak_bk_64x64x128", 64),
        ("hopper_f16_ak_bk_64x64x64_split2", 16),
    ] {
        let kernel = KERNELS.iter().find(|k| k.name == name).unwrap();
        assert_eq!(c_box(kernel, DType::F16), [64, lines], "{name}");
        assert_eq!(c_box(kernel, DType::F32), [32, lines], "{name}");
        assert_eq!(last_c_box(kernel, DType::F16), None, "{name}");
    }
}

#[test]
fn the_last_columns_of_a_tile_leave_in_boxes_of_their_own() {
    let of = |name| {
        let kernel = KERNELS.iter().find(|k| k.name == name).unwrap();
        (c_box(kernel, DType::F16), last_c_box(kernel, DType::F16))
    };
    // 136 columns are two staged tiles of 64, and eight.
    let (all, last) = of("hopper_f16_ak_bk_128x136x64_cluster1x2");
    assert_eq!((all, last), ([64, 64], Some([8, 64])));
    let (all, last) = of("hopper_f16_ak_bk_cm_128x136x64_cluster1x2");
    assert_eq!((all, last), ([64, 64], Some([64, 8])));
}

#[test]
fn short_operands_take_short_boxes_of_whole_atoms() {
    // One CTA copies 64 lines; the matrix has 1, 8, 9, 63 or 65 lines.
    let cut = [1, 8, 9, 63, 65].map(|extent| box_rows(64, 1, extent));
    assert_eq!(cut, [8, 8, 16, 64, 64]);
    // Two CTAs share the lines: each copies half of them, however many there are.
    assert_eq!(box_rows(256, 2, 1), 128);
    // The last of several tiles.
    let last = [64, 65, 72, 73, 127, 128, 129].map(|extent| last_box_rows(64, 1, extent));
    assert_eq!(
        last,
        [None, Some(8), Some(8), Some(16), Some(64), None, Some(8)]
    );
    // Two CTAs load half of the rows each, also of the only tile.
    let shared = [40, 64, 65, 97, 127].map(|extent| last_box_rows(64, 2, extent));
    assert_eq!(shared, [Some(20), None, Some(1), Some(17), Some(32)]);
}
