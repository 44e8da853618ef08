//! Tests which functions of the driver the library calls for runs on several streams, in
//! captures, and around the context that its caller has made current.

use std::ptr;

use tilewise::{
    CudaStream, Device, Error, Family, Gemm, Inputs, Layout, Matrix, MatrixView, MatrixViewMut,
    Plan, f16,
};

use super::calls::{all_calls, calls};
use super::driver::{self, Stream, sys};
use super::{allocations, has_kernels, naive, with_driver};

/// M, N, K of a product whose operands a hopper kernel cannot read in place.
const ODD: (usize, usize, usize) = (70, 52, 33);

/// The operands of one product.
struct Operands {
    a: Matrix<f32>,
    b: Matrix<f32>,
    c: Matrix<f32>,
}

impl Operands {
    fn new(device: &Device, (m, n, k): (usize, usize, usize)) -> Self {
        Operands {
            a: device.zeros(m, k).unwrap(),
            b: device.zeros(k, n).unwrap(),
            c: device.zeros(m, n).unwrap(),
        }
    }

    fn plan(&mut self, gemm: &Gemm) -> Plan<f32, f32> {
        gemm.plan(&self.a, &self.b, &mut self.c).unwrap()
    }

    fn run_on(&mut self, stream: CudaStream, plan: &mut Plan<f32, f32>) -> Result<(), Error> {
        // SAFETY: the stream exists, and the fake driver computes nothing.
        unsafe { plan.run_on(stream, &self.a, &self.b, &mut self.c, &Inputs::new()) }
    }

    fn run_once_on(&mut self, stream: CudaStream, gemm: &Gemm) -> Result<(), Error> {
        // SAFETY: as above.
        unsafe { gemm.run_on(stream, &self.a, &self.b, &mut self.c, &Inputs::new()) }
    }
}

/// [`with_driver`], for what launches: a GPU, and the number of calls that are seen so far.
/// Nothing runs in a build without kernels.
fn on_device(name: &str, scenario: &str, body: impl FnOnce(&Device, &mut usize)) {
    with_driver(name, scenario, || {
        if has_kernels() {
            body(&Device::gpu(0).unwrap(), &mut 0);
        }
    });
}

/// A product that packs A and B: its plan has a workspace.
fn packing(device: &Device) -> Gemm {
    Gemm::new(device)
        .kernel("hopper_tf32_ak_bk_64x64x32")
        .precision(tilewise::Precision::Tf32)
}

/// The calls since the last, without the arguments of launches: `launch` and the stream.
fn events(seen: &mut usize) -> Vec<String> {
    let short = |call: String| match call.strip_prefix("cuLaunchKernel ") {
        None => call,
        Some(launch) => {
            let place = launch.find(" on ").map_or("", |place| &launch[place..]);
            format!("launch{place}")
        }
    };
    let calls = calls(seen).into_iter();
    let is_map = |call: &String| call.starts_with("cuTensorMapEncodeTiled");
    calls.filter(|call| !is_map(call)).map(short).collect()
}

/// The same launch `count` times, after `before`.
fn launches(before: &[&str], count: usize, place: &str) -> Vec<String> {
    let before = before.iter().map(|&call| call.to_owned());
    before
        .chain((0..count).map(|_| format!("launch{place}")))
        .collect()
}

fn current() -> usize {
    let mut context = ptr::null_mut();
    // SAFETY: the handle outlives the call.
    let result = unsafe { sys::cuCtxGetCurrent(&mut context) };
    driver::check("cuCtxGetCurrent", result).unwrap();
    context as usize
}

fn set_current(context: usize) {
    // SAFETY: the fake driver takes any number for a context.
    let result = unsafe { sys::cuCtxSetCurrent(context as sys::CUcontext) };
    driver::check("cuCtxSetCurrent", result).unwrap();
}

#[test]
fn the_context_of_the_caller_stays_current() {
    let name = "streams::the_context_of_the_caller_stays_current";
    with_driver(name, "fine", || {
        for found in [0, 0x777] {
            set_current(found);
            let device = Device::gpu(0).unwrap();
            assert_eq!(current(), found, "after opening");
            let mut matrix = device.from_slice(&[1.0_f32; 6], 2, 3).unwrap();
            matrix.view_mut().fill(2.0).unwrap();
            assert_eq!(matrix.to_vec().unwrap(), [2.0; 6]);
            assert!(device.zeros::<f32>(4096, 4096).is_err());
            device.synchronize().unwrap();
            device
                .synchronize_within(std::time::Duration::ZERO)
                .unwrap();
            assert_eq!(current(), found, "after work");
            drop(matrix);
            drop(device);
            assert_eq!(current(), found, "after the last handle");
        }
    });
}

#[test]
fn a_context_that_is_current_is_only_asked_for() {
    let name = "streams::a_context_that_is_current_is_only_asked_for";
    with_driver(name, "fine", || {
        let seen = &mut 0;
        let devices = [0, 1].map(|ordinal| Device::gpu(ordinal).unwrap());
        devices[0].make_current().unwrap();
        let own = current();
        assert_ne!(own, 0);
        all_calls(seen);
        devices[0].synchronize().unwrap();
        assert_eq!(
            all_calls(seen),
            ["? cuCtxGetCurrent", "cuStreamSynchronize"]
        );
        // Another device's context is current for its own call.
        devices[1].synchronize().unwrap();
        let other = own + 1;
        assert_eq!(
            all_calls(seen),
            [
                "? cuCtxGetCurrent".to_owned(),
                format!("? cuCtxSetCurrent {other:#x}"),
                "cuStreamSynchronize on stream 1".to_owned(),
                format!("? cuCtxSetCurrent {own:#x}"),
            ]
        );
    });
}

#[test]
fn matrices_come_from_a_pool_and_go_back_without_a_wait() {
    let name = "streams::matrices_come_from_a_pool_and_go_back_without_a_wait";
    with_driver(name, "pool", || {
        let seen = &mut 0;
        let device = Device::gpu(0).unwrap();
        assert_eq!(
            calls(seen),
            [
                "cuMemPoolCreate on device 0",
                "cuMemPoolSetAttribute 4 268435456"
            ]
        );
        let matrix = device.zeros::<f32>(3, 4).unwrap();
        drop(matrix);
        assert_eq!(
            calls(seen),
            [
                "cuMemAllocFromPoolAsync 48",
                "cuMemsetD8Async 0 x 48",
                "cuMemFreeAsync",
            ]
        );
        // What the pool has kept goes back to the device before it is out of memory.
        let error = device.zeros::<f32>(4096, 4096).unwrap_err();
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error}");
        assert_eq!(calls(seen), ["cuStreamSynchronize", "cuMemPoolTrimTo 0"]);
        // What a graph may use later is not freed, and does not break the capture.
        let matrix = device.zeros::<f32>(3, 4).unwrap();
        calls(seen);
        capture(driver::stream(&device), || drop(matrix)).unwrap();
        assert_eq!(calls(seen), [""; 0]);
        drop(device);
        assert_eq!(
            calls(seen),
            ["cuMemPoolDestroy", "cuDevicePrimaryCtxRelease_v2"]
        );
    });
}

/// Captures what `enqueue` does on `stream`.
fn capture<R>(stream: sys::CUstream, enqueue: impl FnOnce() -> R) -> Result<R, Error> {
    let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: the stream exists.
    let begun = unsafe { sys::cuStreamBeginCapture_v2(stream, mode) };
    driver::check("cuStreamBeginCapture", begun)?;
    let result = enqueue();
    let mut graph = ptr::null_mut();
    // SAFETY: the handle outlives the call.
    let ended = unsafe { sys::cuStreamEndCapture(stream, &mut graph) };
    driver::check("cuStreamEndCapture", ended).map(|()| result)
}

#[test]
fn a_plan_without_a_workspace_runs_anywhere_without_events() {
    let name = "streams::a_plan_without_a_workspace_runs_anywhere_without_events";
    on_device(name, "fine", |device, seen| {
        let streams = [(); 2].map(|()| Stream::new(device).unwrap());
        let mut operands = Operands::new(device, ODD);
        let mut plan = operands.plan(&naive(device));
        let own = device.stream().unwrap();
        // SAFETY: these streams always exist.
        let [legacy, per_thread] = [ptr::null_mut(), ptr::without_provenance_mut(2)]
            .map(|raw| unsafe { CudaStream::from_raw(raw) });
        events(seen);
        for (stream, place) in [
            (own, ""),
            (streams[0].as_cuda(), " on stream 1"),
            (streams[1].as_cuda(), " on stream 2"),
            (legacy, " on the legacy stream"),
            (per_thread, " on the stream of the thread"),
        ] {
            operands.run_on(stream, &mut plan).unwrap();
            assert_eq!(events(seen), launches(&[], 1, place));
        }
    });
}

#[test]
fn runs_that_share_a_workspace_wait_for_each_other() {
    let name = "streams::runs_that_share_a_workspace_wait_for_each_other";
    on_device(name, "fine", |device, seen| {
        let [first, second] = [(); 2].map(|()| Stream::new(device).unwrap());
        let mut operands = Operands::new(device, ODD);
        let mut plan = operands.plan(&packing(device));
        events(seen);
        // On the library's stream, nothing is added.
        for _ in 0..2 {
            plan.run(&operands.a, &operands.b, &mut operands.c).unwrap();
            assert_eq!(events(seen), launches(&[], 2, ""));
        }
        // Each run on another stream waits for the run before it.
        let with_record = |before: &[&str], place: &str| {
            let mut calls = launches(before, 2, place);
            calls.push(format!("cuEventRecord 1{place}"));
            calls
        };
        operands.run_on(first.as_cuda(), &mut plan).unwrap();
        let switch = ["cuEventRecord 1", "cuStreamWaitEvent 1 on stream 1"];
        assert_eq!(events(seen), with_record(&switch, " on stream 1"));
        operands.run_on(first.as_cuda(), &mut plan).unwrap();
        assert_eq!(events(seen), with_record(&[], " on stream 1"));
        operands.run_on(second.as_cuda(), &mut plan).unwrap();
        let switch = ["cuStreamWaitEvent 1 on stream 2"];
        assert_eq!(events(seen), with_record(&switch, " on stream 2"));
        plan.run(&operands.a, &operands.b, &mut operands.c).unwrap();
        assert_eq!(events(seen), launches(&["cuStreamWaitEvent 1"], 2, ""));
        // The event of a stream that is destroyed is still there.
        operands.run_on(second.as_cuda(), &mut plan).unwrap();
        drop(second);
        events(seen);
        operands.run_on(first.as_cuda(), &mut plan).unwrap();
        let switch = ["cuStreamWaitEvent 1 on stream 1"];
        assert_eq!(events(seen), with_record(&switch, " on stream 1"));
        // The workspace is freed behind the last run, wherever that was.
        drop(plan);
        let freed = ["cuEventSynchronize 1", "cuStreamSynchronize", "cuMemFree"];
        assert_eq!(events(seen), freed);
    });
}

#[test]
fn the_default_streams_of_two_threads_are_two_streams() {
    let name = "streams::the_default_streams_of_two_threads_are_two_streams";
    on_device(name, "fine", |device, seen| {
        let mut operands = Operands::new(device, ODD);
        let mut plan = operands.plan(&packing(device));
        let mut run = || {
            // SAFETY: the stream always exists.
            let stream = unsafe { CudaStream::from_raw(ptr::without_provenance_mut(2)) };
            operands.run_on(stream, &mut plan).unwrap();
        };
        run();
        events(seen);
        run();
        assert_eq!(events(seen).len(), 3, "two launches and a record");
        std::thread::scope(|scope| scope.spawn(run).join().unwrap());
        assert_eq!(
            events(seen)[0],
            "cuStreamWaitEvent 1 on the stream of the thread"
        );
    });
}

#[test]
fn captured_runs_wait_for_nothing_outside() {
    let name = "streams::captured_runs_wait_for_nothing_outside";
    on_device(name, "fine", |device, seen| {
        let [first, second] = [(); 2].map(|()| Stream::new(device).unwrap());
        let mut operands = Operands::new(device, ODD);
        let mut plan = operands.plan(&packing(device));
        operands.run_on(first.as_cuda(), &mut plan).unwrap();
        events(seen);
        capture(second.as_raw(), || {
            operands.run_on(second.as_cuda(), &mut plan)
        })
        .unwrap()
        .unwrap();
        let mut captured = launches(&[], 2, " on stream 2");
        captured.push("cuEventRecord 2 on stream 2".into());
        assert_eq!(events(seen), captured);
        // A run outside waits for the last run outside, and not for the captured one.
        operands.run_on(second.as_cuda(), &mut plan).unwrap();
        assert_eq!(events(seen)[0], "cuStreamWaitEvent 1 on stream 2");
        // While the library's stream captures, no other can wait for what it did before.
        plan.run(&operands.a, &operands.b, &mut operands.c).unwrap();
        let refused = capture(driver::stream(device), || {
            operands.run_on(first.as_cuda(), &mut plan)
        });
        assert_eq!(refused, Ok(Err(Error::OrderWhileCapturing)));
        // A plan and a matrix that are dropped then stay allocated, and break nothing.
        events(seen);
        capture(driver::stream(device), || drop((plan, operands))).unwrap();
        assert_eq!(events(seen), [""; 0]);
    });
}

#[test]
fn a_plan_that_a_graph_has_captured_leaves_the_cache() {
    let name = "streams::a_plan_that_a_graph_has_captured_leaves_the_cache";
    on_device(name, "fine", |device, seen| {
        let stream = Stream::new(device).unwrap();
        let mut operands = Operands::new(device, ODD);
        let gemm = packing(device);
        operands.run_once_on(stream.as_cuda(), &gemm).unwrap();
        assert!(events(seen).contains(&"cuMemAlloc 31232".to_owned()));
        // The plan is kept, and captured as often as the capture wants it.
        capture(stream.as_raw(), || {
            for _ in 0..2 {
                operands.run_once_on(stream.as_cuda(), &gemm).unwrap();
            }
        })
        .unwrap();
        assert_eq!(events(seen).len(), 6, "two launches and a record, twice");
        // After that, the graph has it, and another plan is made.
        operands.run_once_on(stream.as_cuda(), &gemm).unwrap();
        assert!(events(seen).contains(&"cuMemAlloc 31232".to_owned()));
        // A plan without a workspace may serve a graph and others.
        let plain = naive(device);
        operands.run_once_on(stream.as_cuda(), &plain).unwrap();
        events(seen);
        let run = || operands.run_once_on(stream.as_cuda(), &plain).unwrap();
        capture(stream.as_raw(), run).unwrap();
        assert_eq!(events(seen), launches(&[], 1, " on stream 1"));
    });
}

#[test]
fn a_plan_that_leaves_the_cache_is_freed_behind_its_last_run() {
    let name = "streams::a_plan_that_leaves_the_cache_is_freed_behind_its_last_run";
    on_device(name, "fine", |device, seen| {
        let stream = Stream::new(device).unwrap();
        let mut operands = Operands::new(device, ODD);
        let gemm = packing(device);
        operands.run_once_on(stream.as_cuda(), &gemm).unwrap();
        for more in 1..=64 {
            events(seen);
            let mut others = Operands::new(device, (more, 5, 3));
            others
                .run_once_on(stream.as_cuda(), &naive(device))
                .unwrap();
        }
        let freed = events(seen);
        let place = |wanted: &str| freed.iter().position(|call| call == wanted).unwrap();
        assert!(
            place("cuEventSynchronize 1") < place("cuMemFree"),
            "{freed:?}"
        );
    });
}

/// What a run asks of the driver and of the allocator.
#[test]
fn a_run_does_little() {
    on_device("streams::a_run_does_little", "pool", |device, seen| {
        let stream = Stream::new(device).unwrap();
        device.make_current().unwrap();
        let count = |seen: &mut usize, run: &mut dyn FnMut()| {
            // The first run encodes tensor maps and fills the cache.
            run();
            run();
            all_calls(seen);
            let before = allocations::count();
            run();
            let allocated = allocations::count() - before;
            let name = |call: &String| {
                let call = call.trim_start_matches("? ");
                call.split(' ').next().unwrap_or_default().to_owned()
            };
            let calls: Vec<String> = all_calls(seen).iter().map(name).collect();
            (calls, allocated)
        };
        let little = |calls: &[&str]| {
            let calls: Vec<String> = calls.iter().map(|&call| call.to_owned()).collect();
            (calls, 0)
        };
        let default = Gemm::new(device);
        let mut operands = Operands::new(device, (64, 64, 64));
        let mut plan = operands.plan(&default);
        let run = &mut || plan.run(&operands.a, &operands.b, &mut operands.c).unwrap();
        let launched = little(&["cuCtxGetCurrent", "cuLaunchKernel"]);
        assert_eq!(count(seen, run), launched);
        // Through TMA.
        let [a, b] = [(); 2].map(|()| device.zeros::<f16>(64, 64).unwrap());
        let mut c = device.zeros::<f16>(64, 64).unwrap();
        let hopper = Gemm::new(device).family(Family::Hopper);
        let mut plan = hopper.plan(&a, &b, &mut c).unwrap();
        assert_eq!(
            count(seen, &mut || plan.run(&a, &b, &mut c).unwrap()),
            launched
        );
        // By a plan that the device keeps.
        let run = &mut || operands.run_once_on(stream.as_cuda(), &default).unwrap();
        let asked = [
            "cuCtxGetCurrent",
            "cuStreamGetCaptureInfo",
            "cuCtxGetCurrent",
        ];
        let kept = little(&[&asked[..], &["cuLaunchKernel"]].concat());
        assert_eq!(count(seen, run), kept);
        // With a workspace, the order of runs is asked for, and one event recorded.
        let mut odd = Operands::new(device, ODD);
        let mut packed = odd.plan(&packing(device));
        let run = &mut || odd.run_on(stream.as_cuda(), &mut packed).unwrap();
        let asked = ["cuCtxGetCurrent", "cuStreamGetCaptureInfo", "cuStreamGetId"];
        let launches = ["cuLaunchKernel"; 2];
        let ordered = little(&[&asked[..], &launches, &["cuEventRecord"]].concat());
        assert_eq!(count(seen, run), ordered);
        // With a C of its own, which is not cleared, and dropped behind the product.
        let run = &mut || drop(device.matmul(&a, &b).unwrap());
        let (mut calls, allocated) = count(seen, run);
        // C may be at another address, for which a map is encoded.
        calls.retain(|call| !call.contains("Get") && call != "cuTensorMapEncodeTiled");
        let works = [
            "cuMemAllocFromPoolAsync",
            "cuLaunchKernel",
            "cuMemFreeAsync",
        ];
        assert_eq!((calls, allocated), little(&works));
    });
}

#[test]
fn views_over_memory_of_the_driver_read_and_write_it() {
    let name = "streams::views_over_memory_of_the_driver_read_and_write_it";
    with_driver(name, "fine", || {
        let seen = &mut 0;
        let device = Device::gpu(0).unwrap();
        let owner = device.from_slice(&[1.0_f32; 12], 3, 4).unwrap();
        let address = owner.device_address().unwrap();
        let layout = Layout::strided(3, 2, 4, 1);
        calls(seen);
        // SAFETY: `owner` has the elements, and nothing else uses them.
        let mut view = unsafe { MatrixViewMut::<f32>::from_raw(&device, address + 4, layout) };
        let view = view.as_mut().unwrap();
        assert_eq!((view.address(), view.layout()), (address + 4, layout));
        view.fill(2.0).unwrap();
        assert_eq!(owner.to_vec().unwrap(), [1.0, 2.0, 2.0, 1.0].repeat(3));
        view.copy_from_slice(&[3.0; 6]).unwrap();
        // SAFETY: as above.
        let read =
            unsafe { MatrixView::<f32>::from_raw(&device, address, Layout::row_major(3, 4)) };
        let read = read.unwrap();
        assert_eq!(
            read.t().slice(1..3, 0..3).unwrap().to_vec().unwrap(),
            [3.0; 6]
        );
        assert_eq!(read.to_vec().unwrap(), [1.0, 3.0, 3.0, 1.0].repeat(3));
        let frees = |calls: Vec<String>| calls.iter().filter(|call| *call == "cuMemFree").count();
        assert_eq!(frees(calls(seen)), 0, "a view owns nothing");
        drop(owner);
        assert_eq!(frees(calls(seen)), 1);
    });
}
