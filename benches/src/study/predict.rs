//! The predictions of the model of L2 for a row.

use std::thread;

use gpu_kernels::TileOrder;
use tilewise::l2;

use crate::modelled::selection::seen_by_l2;
use crate::problem::names::kernel_named;
use crate::problem::spec::ProblemSpec;
use crate::study::gpus;
use crate::study::row::StudyRow;

/// Fills in the model's columns; empties them where the model does not know the GPU, the
/// kernel or the order.
pub fn predict(row: &mut StudyRow) {
    row.model_l2_read_bytes = None;
    row.model_l2_hit_rate = None;
    row.model_l2_fabric_bytes = None;
    row.model_dram_read_bytes = None;
    row.model_dram_write_bytes = None;
    row.model_us = None;
    let (Some(gpu), Some(target), Some(kernel), Ok(order)) = (
        gpus::gpu(row),
        gpus::target(row),
        kernel_named(&row.kernel),
        row.order.parse::<TileOrder>(),
    ) else {
        return;
    };
    let problem = ProblemSpec::row_major(row.shape(), kernel.input);
    let product = seen_by_l2(problem, kernel, false);
    let traffic = l2::traffic(&product, order, target.machine(kernel));
    row.model_l2_read_bytes = Some(traffic.l2_to_sm_bytes as f64);
    row.model_l2_hit_rate = Some(traffic.hit_rate());
    row.model_l2_fabric_bytes = Some(traffic.between_partitions_bytes as f64);
    row.model_dram_read_bytes = Some(traffic.dram_read_bytes as f64);
    row.model_dram_write_bytes = Some(traffic.c_write_bytes as f64);
    row.model_us = Some(l2::bound(&product, &traffic, &gpu).seconds * 1e6);
}

/// [`predict`] for all rows, on all cores.
pub fn predict_all(rows: &mut [StudyRow]) {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    // Neighbours are of one product, so that rows in turn share out the large ones.
    let mut shares: Vec<Vec<&mut StudyRow>> = (0..threads).map(|_| Vec::new()).collect();
    for (at, row) in rows.iter_mut().enumerate() {
        shares[at % threads].push(row);
    }
    thread::scope(|scope| {
        for share in shares {
            scope.spawn(move || share.into_iter().for_each(predict));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::sweep::KERNELS_MEASURED;

    fn row(device: &str) -> StudyRow {
        StudyRow {
            device: device.to_owned(),
            peak_tflops: Some(1000.0),
            m: 1024,
            n: 2048,
            k: 512,
            kernel: KERNELS_MEASURED[0].to_owned(),
            order: "row".to_owned(),
            model_us: Some(1e9),
            ..StudyRow::default()
        }
    }

    #[test]
    fn what_fits_in_l2_is_read_once() {
        let mut rows = [row("NVIDIA H200"), row("NVIDIA H100 80GB HBM3")];
        predict_all(&mut rows);
        for row in &rows {
            let operands = f64::from(2 * (1024 * 512 + 512 * 2048));
            let read = row.model_dram_read_bytes.unwrap();
            assert!((read / operands - 1.0).abs() < 0.05, "{read}");
            assert!(row.model_us.unwrap() < 100.0);
        }
    }

    #[test]
    fn an_unknown_gpu_kernel_or_order_has_no_prediction() {
        let mut rows = [row("NVIDIA L40S"), row("NVIDIA H200"), row("NVIDIA H200")];
        rows[1].kernel = "other".to_owned();
        rows[2].order = "zigzag".to_owned();
        predict_all(&mut rows);
        for row in &rows {
            assert_eq!((row.model_us, row.model_dram_read_bytes), (None, None));
        }
    }
}
