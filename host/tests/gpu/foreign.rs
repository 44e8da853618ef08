//! Memory and streams that the library does not own: allocations of the driver, a test's own
//! streams, the default streams, captures of them.
//!
//! Elements are small integers, so that sums are exact in f32 and every kernel must give the
//! same bits as a tiled one that the host has waited for. A kernel that only takes time
//! holds streams back, so that work which does not wait for other work overtakes it.

use std::ffi::c_void;
use std::ptr;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tilewise::{
    CudaStream, Device, Error, Family, Gemm, Inputs, Layout, Matrix, MatrixView, MatrixViewMut,
    Plan, Schedule, f16,
};

use crate::case::Failure;
use crate::driver::{self, Module, Stream, check, sys};
use crate::errors::ErrorCase;
use crate::graph::Graph;

/// All tests of foreign memory and streams. They are not in the set for compute-sanitizer,
/// which runs one kernel at a time.
pub const CASES: [ErrorCase; 10] = [
    ("foreign/memory", memory, false),
    ("foreign/default-streams", default_streams, false),
    (
        "foreign/packed-on-two-streams",
        packed_on_two_streams,
        false,
    ),
    (
        "foreign/stream-k-on-two-streams",
        stream_k_on_two_streams,
        false,
    ),
    (
        "foreign/cached-on-two-streams",
        cached_on_two_streams,
        false,
    ),
    ("foreign/first-run-elsewhere", first_run_elsewhere, false),
    ("foreign/capture", capture, false),
    ("foreign/capture-cached", capture_cached, false),
    ("foreign/evicted-while-in-use", evicted_while_in_use, false),
    ("foreign/context", context, false),
];

/// A kernel that ends after some nanoseconds.
const DELAY: &str = "
.version 8.0
.target sm_75
.address_size 64

.visible .entry delay(.param .u64 nanoseconds)
{
    .reg .pred %again;
    .reg .b64 %now, %end;

    ld.param.u64 %end, [nanoseconds];
    mov.u64 %now, %globaltimer;
    add.u64 %end, %end, %now;
next:
    mov.u64 %now, %globaltimer;
    setp.lt.u64 %again, %now, %end;
    @%again bra next;
    ret;
}
";

/// M, N, K of a product whose operands TMA cannot read in place, so that both are packed. It
/// takes longer than the packing of another.
const PACKED: (usize, usize, usize) = (1111, 2047, 2049);

/// M, N, K of a product of small integers with a few tiles.
const SMALL: (usize, usize, usize) = (200, 264, 136);

/// A stream of the test's own that can be held back.
struct Slow {
    stream: Stream,
    delay: Module,
    device: Device,
}

impl Slow {
    fn new(device: &Device) -> Result<Self, Error> {
        Ok(Slow {
            stream: Stream::new(device)?,
            delay: Module::load(device, DELAY)?,
            device: device.clone(),
        })
    }

    /// Enqueues a kernel that takes some microseconds.
    fn delay(&self, microseconds: u64) -> Result<(), Error> {
        let mut nanoseconds = 1000 * microseconds;
        let mut params: [*mut c_void; 1] = [ptr::from_mut(&mut nanoseconds).cast()];
        // SAFETY: the kernel takes one 64-bit value.
        unsafe {
            let stream = self.stream.as_raw();
            (self.delay).launch_on(&self.device, stream, "delay", (1, 1), &mut params)
        }
    }
}

/// The operands of a product, on a device, and what it must be.
struct Product {
    a: Matrix<f16>,
    b: Matrix<f16>,
    c: Matrix<f32>,
    expected: Vec<f32>,
}

impl Product {
    /// A product of random operands. All of its memory is ready for every stream.
    fn new(device: &Device, (m, n, k): (usize, usize, usize), seed: u64) -> Result<Self, Error> {
        let mut product = Product {
            a: device.zeros(m, k)?,
            b: device.zeros(k, n)?,
            c: device.zeros(m, n)?,
            expected: Vec::new(),
        };
        product.draw(seed)?;
        Ok(product)
    }

    /// Draws other operands. The streams that used the old ones have finished.
    fn draw(&mut self, seed: u64) -> Result<(), Error> {
        let mut random = StdRng::seed_from_u64(seed);
        let mut integers = |count| -> Vec<f16> {
            let value = |_| f16::from_f32(random.random_range(-2..=2_i8).into());
            (0..count).map(value).collect()
        };
        let elements = |matrix: &Matrix<f16>| matrix.rows() * matrix.cols();
        self.a.copy_from_slice(&integers(elements(&self.a)))?;
        self.b.copy_from_slice(&integers(elements(&self.b)))?;
        let reference = Gemm::new(self.c.device()).family(Family::Tiled);
        let mut plan = reference.plan(&self.a, &self.b, &mut self.c)?;
        plan.run(&self.a, &self.b, &mut self.c)?;
        self.expected = self.c.to_vec()?;
        self.c.view_mut().fill(f32::NAN)
    }

    fn plan(&mut self, gemm: &Gemm) -> Result<Plan<f16, f32>, Error> {
        gemm.plan(&self.a, &self.b, &mut self.c)
    }

    /// Enqueues the product on `stream`.
    fn run_on(&mut self, stream: CudaStream, plan: &mut Plan<f16, f32>) -> Result<(), Error> {
        // SAFETY: the stream lives; the tests wait for it before they read, write or drop the
        // operands.
        unsafe { plan.run_on(stream, &self.a, &self.b, &mut self.c, &Inputs::new()) }
    }

    /// The same by a plan that the device keeps.
    fn run_once_on(&mut self, stream: CudaStream, gemm: &Gemm) -> Result<(), Error> {
        // SAFETY: as above.
        unsafe { gemm.run_on(stream, &self.a, &self.b, &mut self.c, &Inputs::new()) }
    }

    /// Checks C, which the stream has finished, and overwrites it.
    fn check(&mut self, what: &str) -> Result<(), String> {
        let found = self.c.to_vec().map_err(message)?;
        let different = |(found, expected): &(&f32, &f32)| found.to_bits() != expected.to_bits();
        let wrong = found.iter().zip(&self.expected).filter(different).count();
        if wrong > 0 {
            return Err(format!(
                "{what}: {wrong} of {} elements differ",
                found.len()
            ));
        }
        self.c.view_mut().fill(f32::NAN).map_err(message)
    }
}

fn message(error: Error) -> String {
    error.to_string()
}

fn failure(failure: Failure) -> String {
    match failure {
        Failure::Wrong(why) => why,
        Failure::Error(error) => error.to_string(),
        Failure::NotRun => "not run".into(),
    }
}

/// An allocation of the driver.
struct Raw {
    address: u64,
    device: Device,
}

impl Raw {
    fn new(device: &Device, bytes: usize) -> Result<Self, Error> {
        device.make_current()?;
        let mut address = 0;
        // SAFETY: the address outlives the call.
        let result = unsafe { sys::cuMemAlloc_v2(&mut address, bytes) };
        check("cuMemAlloc", result)?;
        let device = device.clone();
        Ok(Raw { address, device })
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if self.device.make_current().is_ok() {
            // SAFETY: allocated once, freed once.
            unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Views over allocations of the driver, at odd offsets and with all kinds of strides, give
/// the same product as matrices of the library.
fn memory(device: &Device) -> Result<(), String> {
    let (m, n, k) = SMALL;
    let stream = Stream::new(device).map_err(message)?;
    let strided = |rows: usize, cols: usize| {
        [
            Layout::strided(rows, cols, cols, 1),
            Layout::strided(rows, cols, 1, rows),
            Layout::strided(rows, cols, cols + 8, 1),
            Layout::strided(rows, cols, cols + 3, 1),
            Layout::strided(rows, cols, 1, rows + 5),
            Layout::strided(rows, cols, 2 * cols + 1, 2),
        ]
    };
    let mut product = Product::new(device, SMALL, 1).map_err(message)?;
    let elements = [product.a.to_vec(), product.b.to_vec()];
    let [a, b] = elements.map(|elements| elements.map_err(message));
    let (a, b) = (a?, b?);
    for (index, ((layout_a, layout_b), layout_c)) in (strided(m, k)
        .into_iter()
        .zip(strided(k, n))
        .zip(strided(m, n)))
    .enumerate()
    {
        // An odd offset is aligned to the element alone.
        let offset = 16 * (index % 2) + index % 3;
        let bytes =
            |layout: Layout, element| (offset + layout.span().expect("small")) * element + 256;
        let raw = |layout, element| Raw::new(device, bytes(layout, element)).map_err(message);
        let (raw_a, raw_b) = (raw(layout_a, 2)?, raw(layout_b, 2)?);
        let raw_c = raw(layout_c, 4)?;
        let halves = 2 * offset as u64;
        // SAFETY: the allocations are that large and outlive the views; this thread alone
        // uses them, and waits for each stream.
        let (view_a, view_b, view_c) = unsafe {
            (
                MatrixViewMut::<f16>::from_raw(device, raw_a.address + halves, layout_a),
                MatrixViewMut::<f16>::from_raw(device, raw_b.address + halves, layout_b),
                MatrixViewMut::<f32>::from_raw(device, raw_c.address + 2 * halves, layout_c),
            )
        };
        let (mut view_a, mut view_b) = (view_a.map_err(message)?, view_b.map_err(message)?);
        let mut view_c = view_c.map_err(message)?;
        view_a.copy_from_slice(&a).map_err(message)?;
        view_b.copy_from_slice(&b).map_err(message)?;
        let gemm = Gemm::new(device);
        for own in [true, false] {
            view_c.fill(f32::NAN).map_err(message)?;
            let inputs = Inputs::new();
            let (view_a, view_b) = (view_a.as_view(), view_b.as_view());
            if own {
                gemm.run(view_a, view_b, view_c.reborrow(), &inputs)
                    .map_err(message)?;
            } else {
                let stream = stream.as_cuda();
                // SAFETY: the fill has ended, and the stream is waited for below.
                unsafe { gemm.run_on(stream, view_a, view_b, view_c.reborrow(), &inputs) }
                    .map_err(message)?;
            }
            stream.synchronize().map_err(message)?;
            if view_c.to_vec().map_err(message)? != product.expected {
                return Err(format!(
                    "{layout_a}, {layout_b}, {layout_c}: another product"
                ));
            }
        }
    }
    // A part of a matrix of the library, by its address.
    let half = Layout::strided(m, k / 2, k, 1);
    let address = product.a.device_address().ok_or("a GPU")? + k as u64;
    // SAFETY: the second half of each row of A, which nothing writes to.
    let right = unsafe { MatrixView::<f16>::from_raw(device, address, half) }.map_err(message)?;
    let slice = product.a.view().slice(0..m, k / 2..k).map_err(message)?;
    if right.to_vec().map_err(message)? != slice.to_vec().map_err(message)? {
        return Err("a slice by its address is another".into());
    }
    product
        .run_once_on(stream.as_cuda(), &Gemm::new(device))
        .map_err(message)?;
    stream.synchronize().map_err(message)?;
    product.check("the operands themselves")
}

/// The default streams by all their handles.
fn default_streams(device: &Device) -> Result<(), String> {
    for (shape, seed) in [(SMALL, 1), (PACKED, 2)] {
        let mut product = Product::new(device, shape, seed).map_err(message)?;
        let mut plan = product.plan(&Gemm::new(device)).map_err(message)?;
        for handle in [0, 1, 2] {
            // SAFETY: these streams always exist.
            let stream = unsafe { CudaStream::from_raw(ptr::without_provenance_mut(handle)) };
            product.run_on(stream, &mut plan).map_err(message)?;
            device.make_current().map_err(message)?;
            // SAFETY: as above.
            let done = unsafe { sys::cuStreamSynchronize(stream.as_raw().cast()) };
            check("cuStreamSynchronize", done).map_err(message)?;
            product.check(&format!("stream {handle}"))?;
        }
    }
    Ok(())
}

/// A plan with a workspace of the kind that `gemm` gives it, on two streams and the
/// library's own in turn. The streams start at once, so that runs that did not wait for each
/// other would mix in the workspace.
fn on_two_streams(
    device: &Device,
    shape: (usize, usize, usize),
    mut run: impl FnMut(CudaStream, &mut Product) -> Result<(), Error>,
) -> Result<(), String> {
    const ROUNDS: usize = 12;
    let streams = [(); 2].map(|()| Slow::new(device).map_err(message));
    let [first, second] = streams;
    let streams = [first?, second?];
    let own = device.stream().ok_or("a GPU of the driver has a stream")?;
    let products: Result<Vec<Product>, Error> = (0..5)
        .map(|seed| Product::new(device, shape, seed))
        .collect();
    let mut products = products.map_err(message)?;
    for round in 0..ROUNDS {
        for (index, slow) in streams.iter().enumerate() {
            // Both orders of ending, and both at once.
            let later = (round + index) % 3;
            slow.delay(500 + 100 * later as u64).map_err(message)?;
        }
        for (index, product) in products.iter_mut().enumerate() {
            let stream = match (round + index) % 5 {
                0 | 2 => streams[0].stream.as_cuda(),
                1 | 4 => streams[1].stream.as_cuda(),
                _ => own,
            };
            run(stream, product).map_err(message)?;
        }
        for slow in &streams {
            slow.stream.synchronize().map_err(message)?;
        }
        device.synchronize().map_err(message)?;
        for product in &mut products {
            product.check(&format!("round {round}"))?;
        }
    }
    Ok(())
}

fn packed_on_two_streams(device: &Device) -> Result<(), String> {
    let gemm = Gemm::new(device);
    let mut model = Product::new(device, PACKED, 0).map_err(message)?;
    let mut plan = model.plan(&gemm).map_err(message)?;
    let has_workspace = plan.info().workspace_bytes() > 0;
    on_two_streams(device, PACKED, |stream, product| {
        product.run_on(stream, &mut plan)
    })?;
    match has_workspace || !is_hopper(device) {
        true => Ok(()),
        false => Err(format!("{} packs nothing", plan.info())),
    }
}

fn stream_k_on_two_streams(device: &Device) -> Result<(), String> {
    if !is_hopper(device) {
        return Ok(());
    }
    // A partial last wave on any number of SMs.
    let shape = (1664, 1664, 2048);
    let gemm = Gemm::new(device).schedule(Schedule::StreamK);
    let mut model = Product::new(device, shape, 0).map_err(message)?;
    let mut plan = model.plan(&gemm).map_err(message)?;
    if plan.info().workspace_bytes() == 0 {
        return Err(format!("{} shares no tile", plan.info()));
    }
    on_two_streams(device, shape, |stream, product| {
        product.run_on(stream, &mut plan)
    })
}

fn cached_on_two_streams(device: &Device) -> Result<(), String> {
    let gemm = Gemm::new(device);
    on_two_streams(device, PACKED, |stream, product| {
        product.run_once_on(stream, &gemm)
    })
}

fn is_hopper(device: &Device) -> bool {
    (device.gpu_info()).is_some_and(|info| info.compute_capability == (9, 0))
}

/// The first run of a plan is on a foreign stream, while the library's own is busy: what the
/// workspace needs before its first use is on the foreign stream, too.
fn first_run_elsewhere(device: &Device) -> Result<(), String> {
    if !is_hopper(device) {
        return Ok(());
    }
    let stream = Stream::new(device).map_err(message)?;
    let mut product = Product::new(device, (1664, 1664, 2048), 3).map_err(message)?;
    for schedule in [Schedule::StreamK, Schedule::Persistent] {
        for round in 0..8 {
            let gemm = Gemm::new(device).schedule(schedule);
            let mut plan = product.plan(&gemm).map_err(message)?;
            let delay = Module::load(device, DELAY).map_err(message)?;
            let mut nanoseconds = 2_000_000_u64;
            let mut params: [*mut c_void; 1] = [ptr::from_mut(&mut nanoseconds).cast()];
            // SAFETY: the kernel takes one 64-bit value.
            unsafe { delay.launch(device, "delay", (1, 1), &mut params) }.map_err(message)?;
            product
                .run_on(stream.as_cuda(), &mut plan)
                .map_err(message)?;
            stream.synchronize().map_err(message)?;
            product.check(&format!("{schedule:?}, round {round}"))?;
        }
    }
    Ok(())
}

/// Launches `graph` on changed operands, which `product` checks.
fn replay(graph: &Graph, stream: &Stream, product: &mut Product) -> Result<(), String> {
    for seed in 10..14 {
        product.draw(seed).map_err(message)?;
        // SAFETY: plans and operands live; this thread launches one graph at a time.
        unsafe { graph.launch() }.map_err(message)?;
        stream.synchronize().map_err(message)?;
        product.check(&format!("replay {seed}"))?;
    }
    Ok(())
}

/// Plans with and without workspaces, captured on a foreign stream, whether they ran before
/// or not.
fn capture(device: &Device) -> Result<(), String> {
    let stream = Stream::new(device).map_err(message)?;
    let elsewhere = Stream::new(device).map_err(message)?;
    let mut requests = vec![(SMALL, Gemm::new(device)), (PACKED, Gemm::new(device))];
    if is_hopper(device) {
        let shared = Gemm::new(device).schedule(Schedule::StreamK);
        requests.push(((1664, 1664, 2048), shared));
    }
    for (shape, gemm) in requests {
        for runs_before in [false, true] {
            let mut product = Product::new(device, shape, 4).map_err(message)?;
            let mut plan = product.plan(&gemm).map_err(message)?;
            if runs_before {
                product
                    .run_on(elsewhere.as_cuda(), &mut plan)
                    .map_err(message)?;
                elsewhere.synchronize().map_err(message)?;
                product.check("before the capture")?;
            }
            let graph = Graph::captured_on(device, stream.as_raw(), || {
                Ok(product.run_on(stream.as_cuda(), &mut plan)?)
            });
            let graph = graph.map_err(failure)?;
            replay(&graph, &stream, &mut product)?;
            // The plan still runs outside.
            product
                .run_on(elsewhere.as_cuda(), &mut plan)
                .map_err(message)?;
            elsewhere.synchronize().map_err(message)?;
            product.check("after the capture")?;
        }
    }
    Ok(())
}

/// Products by kept plans in a graph, which uses their workspaces while others run.
fn capture_cached(device: &Device) -> Result<(), String> {
    let stream = Stream::new(device).map_err(message)?;
    let gemm = Gemm::new(device);
    let mut product = Product::new(device, PACKED, 5).map_err(message)?;
    let mut other = Product::new(device, PACKED, 6).map_err(message)?;
    // Capturing allocates nothing, because the plan is there.
    product
        .run_once_on(stream.as_cuda(), &gemm)
        .map_err(message)?;
    stream.synchronize().map_err(message)?;
    product.check("before the capture")?;
    let graph = Graph::captured_on(device, stream.as_raw(), || {
        product.run_once_on(stream.as_cuda(), &gemm)?;
        Ok(other.run_once_on(stream.as_cuda(), &gemm)?)
    });
    let graph = graph.map_err(failure)?;
    let mut third = Product::new(device, PACKED, 7).map_err(message)?;
    let elsewhere = Stream::new(device).map_err(message)?;
    for round in 0..4 {
        // SAFETY: the device keeps the plans; the operands live.
        unsafe { graph.launch() }.map_err(message)?;
        // The graph has its plan to itself, so this runs beside it.
        third
            .run_once_on(elsewhere.as_cuda(), &gemm)
            .map_err(message)?;
        stream.synchronize().map_err(message)?;
        elsewhere.synchronize().map_err(message)?;
        for product in [&mut product, &mut other, &mut third] {
            product.check(&format!("round {round}"))?;
        }
    }
    Ok(())
}

/// A plan leaves the cache, and its workspace is freed and allocated again, while a stream
/// has yet to run its product.
fn evicted_while_in_use(device: &Device) -> Result<(), String> {
    /// More than the cache keeps.
    const OTHERS: usize = 80;
    let slow = Slow::new(device).map_err(message)?;
    let gemm = Gemm::new(device);
    let mut product = Product::new(device, PACKED, 8).map_err(message)?;
    let (m, n, k) = PACKED;
    for round in 0..2 {
        slow.delay(20_000).map_err(message)?;
        product
            .run_once_on(slow.stream.as_cuda(), &gemm)
            .map_err(message)?;
        for more in 0..OTHERS {
            let a = device.zeros::<f16>(8 + more, 16).map_err(message)?;
            let b = device.zeros::<f16>(16, 8 + round).map_err(message)?;
            device.matmul(&a, &b).map_err(message)?;
        }
        // What was freed may be handed out again here.
        let mut overwrite = Vec::new();
        for elements in [m * (k + 8), k * (n + 8), m * k, k * n] {
            let mut matrix = device.zeros::<f16>(1, elements).map_err(message)?;
            matrix.view_mut().fill(f16::NAN).map_err(message)?;
            overwrite.push(matrix);
        }
        slow.stream.synchronize().map_err(message)?;
        product.check(&format!("round {round}"))?;
    }
    Ok(())
}

/// The context that the caller has made current, or none, stays current.
fn context(device: &Device) -> Result<(), String> {
    let current = || {
        let mut context = ptr::null_mut();
        // SAFETY: the handle outlives the call.
        let result = unsafe { sys::cuCtxGetCurrent(&mut context) };
        check("cuCtxGetCurrent", result).map_err(message)?;
        Ok::<_, String>(context)
    };
    device.make_current().map_err(message)?;
    let own = current()?;
    for found in [ptr::null_mut(), own] {
        // SAFETY: none, or the context that is retained by the device.
        let set = unsafe { sys::cuCtxSetCurrent(found) };
        check("cuCtxSetCurrent", set).map_err(message)?;
        let mut product = Product::new(device, SMALL, 9).map_err(message)?;
        let c = device.matmul(&product.a, &product.b).map_err(message)?;
        let mut plan = product.plan(&Gemm::new(device)).map_err(message)?;
        let stream = device.stream().ok_or("a GPU of the driver has a stream")?;
        product.run_on(stream, &mut plan).map_err(message)?;
        product.check("without a context of one's own")?;
        drop((c, plan, product));
        if current()? != found {
            return Err(format!("{found:?} was current, and {:?} is", current()?));
        }
    }
    device.make_current().map_err(message)?;
    assert!(!driver::stream(device).is_null());
    Ok(())
}
