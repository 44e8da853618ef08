//! Tests which functions of the driver the library calls, with which arguments and in which
//! order.

use std::{env, fs};

use tilewise::{Device, Family, Gemm, Precision, Schedule, TileOrder, f16};

use super::{has_kernels, with_driver};

/// The calls that the fake driver has logged since the last call of this function, without
/// those that only ask.
pub(super) fn calls(seen: &mut usize) -> Vec<String> {
    let mut calls = all_calls(seen);
    calls.retain(|call| !call.starts_with('?'));
    calls
}

/// The calls that the fake driver has logged since the last call of this function.
pub(super) fn all_calls(seen: &mut usize) -> Vec<String> {
    let path = env::var_os("FAKE_DRIVER_LOG").unwrap();
    let text = fs::read_to_string(path).unwrap_or_default();
    let new: Vec<String> = text.lines().skip(*seen).map(str::to_owned).collect();
    *seen += new.len();
    new
}

#[test]
fn copies_and_fills() {
    with_driver("calls::copies_and_fills", "fine", || {
        let seen = &mut 0;
        let device = Device::gpu(0).unwrap();
        let mut matrix = device.zeros::<f32>(3, 4).unwrap();
        assert_eq!(calls(seen), ["cuMemAlloc 48", "cuMemsetD8Async 0 x 48"]);
        matrix.view_mut().fill(1.0).unwrap();
        let mut columns = matrix.view_mut().slice(0..3, 1..3).unwrap();
        columns.fill(2.0).unwrap();
        assert_eq!(
            calls(seen),
            [
                "cuMemsetD32Async 0x3f800000 x 12",
                "cuStreamSynchronize",
                "cuMemsetD2D32Async 0x40000000 x 2 x 3 pitch 16",
                "cuStreamSynchronize",
            ]
        );
        let row = [1.0, 2.0, 2.0, 1.0];
        assert_eq!(matrix.to_vec().unwrap(), row.repeat(3));
        assert_eq!(calls(seen), ["cuMemcpyDtoHAsync 48", "cuStreamSynchronize"]);
        drop(matrix);
        assert_eq!(calls(seen), ["cuStreamSynchronize", "cuMemFree"]);

        let mut halves = device.zeros_strided::<f16>(2, 3, 7, 2).unwrap();
        calls(seen);
        halves.view_mut().fill(f16::ONE).unwrap();
        assert_eq!(
            calls(seen),
            [
                "cuMemsetD2D16Async 0x3c00 x 1 x 3 pitch 4",
                "cuMemsetD2D16Async 0x3c00 x 1 x 3 pitch 4",
                "cuStreamSynchronize",
            ]
        );
        assert_eq!(halves.to_vec().unwrap(), [f16::ONE; 6]);
    });
}

/// Both operands are packed, then multiplied; a second run encodes no tensor maps.
#[test]
fn a_product_through_tma() {
    with_driver("calls::a_product_through_tma", "fine", || {
        if !has_kernels() {
            return;
        }
        let seen = &mut 0;
        let device = Device::gpu(0).unwrap();
        let (m, n, k) = (70, 52, 33);
        let a = device.zeros::<f32>(m, k).unwrap();
        let b = device.zeros::<f32>(k, n).unwrap();
        let mut c = device.zeros::<f32>(m, n).unwrap();
        calls(seen);
        let gemm = Gemm::new(&device)
            .kernel("hopper_tf32_ak_bk_64x64x32")
            .order(TileOrder::RowMajor)
            .schedule(Schedule::Grid1d)
            .precision(Precision::Tf32);
        let mut plan = gemm.plan(&a, &b, &mut c).unwrap();
        // One workspace for both copies, of 64 floats a line.
        assert_eq!(calls(seen), ["cuMemAlloc 31232"]);
        let shared = plan.info().gpu().unwrap().shared_bytes;
        plan.run(&a, &b, &mut c).unwrap();
        let map = |rest: &str| format!("cuTensorMapEncodeTiled type {rest}");
        let constants = "steps [1, 1] interleave 0 swizzle 3 promotion 2 fill 0";
        let launches = [
            "cuLaunchKernel pack_32 3x1 threads 256 shared 16640".to_owned(),
            format!("cuLaunchKernel hopper_tf32_ak_bk_64x64x32 2x1 threads 256 shared {shared}"),
        ];
        let mut expected = vec![
            map(&format!(
                "11 dims [33, 70] pitch 256 box [32, 64] {constants}"
            )),
            map(&format!(
                "11 dims [33, 52] pitch 256 box [32, 56] {constants}"
            )),
            map(&format!(
                "7 dims [52, 70] pitch 208 box [32, 64] {constants}"
            )),
            // The last six rows of A.
            map(&format!(
                "11 dims [33, 70] pitch 256 box [32, 8] {constants}"
            )),
        ];
        expected.extend(launches.clone());
        assert_eq!(calls(seen), expected);
        plan.run(&a, &b, &mut c).unwrap();
        assert_eq!(calls(seen), launches);
        assert!(Family::Hopper == plan.info().gpu().unwrap().kernel.family);
    });
}
