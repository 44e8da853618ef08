//! Products on several streams, and in graphs.

use std::sync::Arc;

use tilewise_cudarc::Blas;
use tilewise_cudarc::cudarc::driver::{CudaContext, CudaSlice, CudaStream, sys};
use tilewise_cudarc::tilewise::{bf16, f16};

use crate::Verdict;
use crate::matmul::{dense, operands};
use crate::reference::{Sum, assert_close, random};

/// Keeps a stream busy for some milliseconds.
struct Busy {
    blas: Blas,
    operands: [CudaSlice<bf16>; 3],
}

const BUSY: usize = 4096;

impl Busy {
    fn new(stream: &Arc<CudaStream>) -> Result<Busy, Box<dyn std::error::Error>> {
        let zeros = || stream.alloc_zeros::<bf16>(BUSY * BUSY);
        Ok(Busy {
            blas: Blas::new(stream.clone())?,
            operands: [zeros()?, zeros()?, zeros()?],
        })
    }

    fn enqueue(&mut self) -> Verdict {
        let [a, b, c] = &mut self.operands;
        for _ in 0..10 {
            let config = dense(BUSY, BUSY, BUSY);
            self.blas.matmul(config, &*a, &*b, c, None, None)?;
        }
        Ok(())
    }
}

/// A is written, and overwritten, on another stream than the product's; C is read on another.
pub fn other_streams(context: &Arc<CudaContext>) -> Verdict {
    let (writer, stream) = (context.new_stream()?, context.new_stream()?);
    let blas = Blas::new(stream.clone())?;
    let (mut busy_writer, mut busy) = (Busy::new(&writer)?, Busy::new(&stream)?);
    let (m, n, k) = (256, 192, 128);
    let config = dense(m, n, k);
    let [a_layout, b_layout, c_layout] = operands(&config);
    for seed in 0..8 {
        let (a, b) = (random::<f16>(m * k, seed), random::<f16>(k * n, seed + 100));
        let (values, b_slice) = (writer.clone_htod(&a)?, writer.clone_htod(&b)?);
        let mut a_slice = writer.alloc_zeros::<f16>(m * k)?;
        let mut c_slice = writer.alloc_zeros::<f16>(m * n)?;
        context.synchronize()?;

        // The product must wait for this copy,
        busy_writer.enqueue()?;
        writer.memcpy_dtod(&values, &mut a_slice)?;
        // these zeros for the product,
        busy.enqueue()?;
        blas.matmul(config, &a_slice, &b_slice, &mut c_slice, None, None)?;
        writer.memset_zeros(&mut a_slice)?;
        // and this copy, too.
        let c = writer.clone_dtoh(&c_slice)?;

        let before = vec![f16::ZERO; m * n];
        assert_close(
            &format!("seed {seed}"),
            &c,
            &before,
            c_layout,
            |_, row, col| Sum::of([&a, &b], [a_layout, b_layout], 0, (row, col)),
        )?;
    }
    Ok(())
}

/// The same products on two streams at once, through the same plans. Their operands have to be
/// packed, so that the plans have workspaces.
pub fn two_streams(context: &Arc<CudaContext>) -> Verdict {
    let blas = [
        Blas::new(context.new_stream()?)?,
        Blas::new(context.new_stream()?)?,
    ];
    let (m, n, k) = (1023, 1025, 1027);
    let config = dense(m, n, k);
    let mut inputs = Vec::new();
    let mut expected = Vec::new();
    for seed in 0..2 {
        let stream = blas[0].stream();
        let a = stream.clone_htod(&random::<f16>(m * k, seed))?;
        let b = stream.clone_htod(&random::<f16>(k * n, seed + 100))?;
        let mut c = stream.alloc_zeros::<f16>(m * n)?;
        blas[0].matmul(config, &a, &b, &mut c, None, None)?;
        expected.push(stream.clone_dtoh(&c)?);
        inputs.push((a, b));
    }
    if expected[0] == expected[1] {
        return Err("both inputs have the same product".into());
    }
    let rounds = 40;
    let mut results = Vec::new();
    for round in 0..rounds {
        for (index, blas) in blas.iter().enumerate() {
            let (a, b) = &inputs[(index + round) % 2];
            let mut c = blas.stream().alloc_zeros::<f16>(m * n)?;
            blas.matmul(config, a, b, &mut c, None, None)?;
            results.push(c);
        }
    }
    for (at, c) in results.iter().enumerate() {
        let (round, index) = (at / 2, at % 2);
        let c = blas[index].stream().clone_dtoh(c)?;
        if c != expected[(index + round) % 2] {
            return Err(format!("round {round}, stream {index}: another result than alone").into());
        }
    }
    Ok(())
}

/// The legacy default stream and the per-thread default stream, which have no handle of their
/// own.
pub fn special_streams(context: &Arc<CudaContext>) -> Verdict {
    for stream in [context.default_stream(), context.per_thread_stream()] {
        let blas = Blas::new(stream.clone())?;
        let (m, n, k) = (100, 60, 80);
        let config = dense(m, n, k);
        let [a_layout, b_layout, c_layout] = operands(&config);
        let (a, b) = (random::<bf16>(m * k, 1), random::<bf16>(k * n, 2));
        let (a_slice, b_slice) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
        let mut c_slice = stream.alloc_zeros::<bf16>(m * n)?;
        blas.matmul(config, &a_slice, &b_slice, &mut c_slice, None, None)?;
        let c = stream.clone_dtoh(&c_slice)?;
        let before = vec![bf16::ZERO; m * n];
        assert_close("a special stream", &c, &before, c_layout, |_, row, col| {
            Sum::of([&a, &b], [a_layout, b_layout], 0, (row, col))
        })?;
    }
    Ok(())
}

/// A product in a graph, launched again after its operands have changed.
pub fn graph(context: &Arc<CudaContext>) -> Verdict {
    let stream = context.new_stream()?;
    // SAFETY: one stream does all the work. (A capture cannot wait for an event from outside,
    // which is what cudarc's tracking would do.)
    unsafe { context.disable_event_tracking() };
    let blas = Blas::new(stream.clone())?;
    let (m, n, k) = (300, 200, 100);
    let config = dense(m, n, k);
    let [a_layout, b_layout, c_layout] = operands(&config);
    let mut a_slice = stream.alloc_zeros::<bf16>(m * k)?;
    let mut b_slice = stream.alloc_zeros::<bf16>(k * n)?;
    let mut c_slice = stream.alloc_zeros::<bf16>(m * n)?;
    // Loads the kernel, which a capture cannot.
    blas.matmul(config, &a_slice, &b_slice, &mut c_slice, None, None)?;
    stream.synchronize()?;

    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)?;
    let captured = blas.matmul(config, &a_slice, &b_slice, &mut c_slice, None, None);
    let graph = stream.end_capture(
        sys::CUgraphInstantiate_flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH,
    )?;
    captured?;
    let graph = graph.ok_or("nothing was captured")?;
    for seed in 0..3 {
        let (a, b) = (
            random::<bf16>(m * k, seed),
            random::<bf16>(k * n, seed + 100),
        );
        stream.memcpy_htod(&a, &mut a_slice)?;
        stream.memcpy_htod(&b, &mut b_slice)?;
        graph.launch()?;
        let c = stream.clone_dtoh(&c_slice)?;
        let before = vec![bf16::ZERO; m * n];
        assert_close(
            &format!("seed {seed}"),
            &c,
            &before,
            c_layout,
            |_, row, col| Sum::of([&a, &b], [a_layout, b_layout], 0, (row, col)),
        )?;
    }
    Ok(())
}
