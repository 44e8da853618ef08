//! The fake driver's contexts, streams, events and captures. It knows which calls the driver
//! refuses: work without a current context, waits across the border of a capture, and
//! allocations while a stream captures.

use std::cell::Cell;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::{INVALID_VALUE, SUCCESS, busy, must_not_block, scenario};

const INVALID_CONTEXT: u32 = 201;
const INVALID_HANDLE: u32 = 400;
const NOT_READY: u32 = 600;
const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
const STREAM_CAPTURE_INVALIDATED: u32 = 901;
const STREAM_CAPTURE_ISOLATION: u32 = 905;
const CAPTURED_EVENT: u32 = 907;

/// The handle of the first device's primary context; those of others follow.
const FIRST_CONTEXT: usize = 0x100;

/// The handle of the first stream that is created, which is the library's; others follow.
const FIRST_STREAM: usize = 0x1000;

/// `CU_STREAM_LEGACY`, which null means too, and `CU_STREAM_PER_THREAD`.
const LEGACY: usize = 1;
const PER_THREAD: usize = 2;

thread_local! {
    static CURRENT: Cell<usize> = const { Cell::new(0) };
    static THREAD: u64 = {
        static THREADS: AtomicU64 = AtomicU64::new(1_000_000);
        THREADS.fetch_add(1, Ordering::Relaxed)
    };
}

/// A stream that was created.
#[derive(Default)]
struct Stream {
    /// The number of the capture that runs.
    capture: Option<u64>,
    is_destroyed: bool,
}

static STREAMS: Mutex<Vec<Stream>> = Mutex::new(Vec::new());

/// The number of captures so far, and whether the last was broken.
static CAPTURES: Mutex<(u64, bool)> = Mutex::new((0, false));

/// What is wrong with a call that needs a current context.
pub fn context_fault() -> Option<u32> {
    (CURRENT.get() == 0).then_some(INVALID_CONTEXT)
}

/// What is wrong with a call that may not be made while a stream captures. It breaks the
/// capture.
pub fn capture_fault() -> Option<u32> {
    let captures = |stream: &Stream| stream.capture.is_some();
    if scenario() == "capturing" || !STREAMS.lock().unwrap().iter().any(captures) {
        return None;
    }
    CAPTURES.lock().unwrap().1 = true;
    Some(STREAM_CAPTURE_UNSUPPORTED)
}

/// What a line of the log says about `stream`: nothing for the library's own.
pub fn on(stream: *mut c_void) -> String {
    match stream as usize {
        FIRST_STREAM => String::new(),
        0 | LEGACY => " on the legacy stream".into(),
        PER_THREAD => " on the stream of the thread".into(),
        other => format!(" on stream {}", other - FIRST_STREAM),
    }
}

/// What is wrong with work on `stream`.
pub fn stream_fault(stream: *mut c_void) -> Option<u32> {
    context_fault().or_else(|| match stream as usize {
        0 | LEGACY | PER_THREAD => None,
        other => {
            let streams = STREAMS.lock().unwrap();
            let found = streams.get(other - FIRST_STREAM);
            found
                .is_none_or(|stream| stream.is_destroyed)
                .then_some(INVALID_HANDLE)
        }
    })
}

fn capture_of(stream: *mut c_void) -> Option<u64> {
    match stream as usize {
        0 | LEGACY | PER_THREAD => None,
        other => STREAMS.lock().unwrap()[other - FIRST_STREAM].capture,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDevicePrimaryCtxRetain(context: *mut usize, device: c_int) -> u32 {
    *context = FIRST_CONTEXT + device as usize;
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxGetCurrent(context: *mut usize) -> u32 {
    query!("cuCtxGetCurrent");
    *context = CURRENT.get();
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuCtxSetCurrent(context: usize) -> u32 {
    query!("cuCtxSetCurrent {context:#x}");
    CURRENT.set(context);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(stream: *mut usize, _: c_uint, _: c_int) -> u32 {
    if let Some(fault) = context_fault() {
        return fault;
    }
    let mut streams = STREAMS.lock().unwrap();
    *stream = FIRST_STREAM + streams.len();
    streams.push(Stream {
        capture: (scenario() == "capturing").then_some(1),
        is_destroyed: false,
    });
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamDestroy_v2(stream: *mut c_void) -> u32 {
    must_not_block("cuStreamDestroy");
    STREAMS.lock().unwrap()[stream as usize - FIRST_STREAM].is_destroyed = true;
    SUCCESS
}

#[cfg(not(old_driver))]
#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetId(stream: *mut c_void, number: *mut u64) -> u32 {
    query!("cuStreamGetId");
    *number = match stream as usize {
        0 | LEGACY => 1,
        PER_THREAD => THREAD.with(|thread| *thread),
        other => other as u64,
    };
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCaptureInfo(
    stream: *mut c_void,
    status: *mut c_uint,
    number: *mut u64,
) -> u32 {
    query!("cuStreamGetCaptureInfo");
    let capture = capture_of(stream);
    *status = capture.is_some().into();
    *number = capture.unwrap_or_default();
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamBeginCapture_v2(stream: *mut c_void, _: c_uint) -> u32 {
    let mut captures = CAPTURES.lock().unwrap();
    *captures = (captures.0 + 1, false);
    STREAMS.lock().unwrap()[stream as usize - FIRST_STREAM].capture = Some(captures.0);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(stream: *mut c_void, graph: *mut *mut c_void) -> u32 {
    let capture = capture_of(stream);
    for stream in STREAMS.lock().unwrap().iter_mut() {
        // Streams that have joined the capture end with it.
        stream.capture = stream.capture.filter(|number| Some(*number) != capture);
    }
    *graph = std::ptr::null_mut();
    match *CAPTURES.lock().unwrap() {
        (_, true) => STREAM_CAPTURE_INVALIDATED,
        (_, false) => SUCCESS,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamQuery(stream: *mut c_void) -> u32 {
    match busy() {
        _ if capture_of(stream).is_some() => STREAM_CAPTURE_UNSUPPORTED,
        true => NOT_READY,
        false => SUCCESS,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamSynchronize(stream: *mut c_void) -> u32 {
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    if scenario() != "capturing" && capture_of(stream).is_some() {
        CAPTURES.lock().unwrap().1 = true;
        return STREAM_CAPTURE_UNSUPPORTED;
    }
    must_not_block("cuStreamSynchronize");
    log!("cuStreamSynchronize{}", on(stream));
    SUCCESS
}

/// An event, and where it was recorded last. The work before it is done by then.
pub struct Event {
    number: u64,
    recorded: Option<(Instant, Option<u64>)>,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut *mut Event, _: c_uint) -> u32 {
    static EVENTS: AtomicU64 = AtomicU64::new(1);
    if let Some(fault) = context_fault() {
        return fault;
    }
    *event = Box::into_raw(Box::new(Event {
        number: EVENTS.fetch_add(1, Ordering::Relaxed),
        recorded: None,
    }));
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: *mut Event, stream: *mut c_void) -> u32 {
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    log!("cuEventRecord {}{}", (*event).number, on(stream));
    (*event).recorded = Some((Instant::now(), capture_of(stream)));
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamWaitEvent(stream: *mut c_void, event: *const Event, _: c_uint) -> u32 {
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    log!("cuStreamWaitEvent {}{}", (*event).number, on(stream));
    let captured = (*event).recorded.and_then(|(_, capture)| capture);
    match (capture_of(stream), captured) {
        (None, None) => SUCCESS,
        (None, Some(_)) => CAPTURED_EVENT,
        (Some(now), Some(then)) if now == then => SUCCESS,
        (Some(_), _) => {
            CAPTURES.lock().unwrap().1 = true;
            STREAM_CAPTURE_ISOLATION
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventSynchronize(event: *const Event) -> u32 {
    must_not_block("cuEventSynchronize");
    log!("cuEventSynchronize {}", (*event).number);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(
    milliseconds: *mut f32,
    start: *const Event,
    stop: *const Event,
) -> u32 {
    match ((*start).recorded, (*stop).recorded) {
        (Some((start, _)), Some((stop, _))) => {
            *milliseconds = (stop - start).as_secs_f32() * 1e3;
            SUCCESS
        }
        _ => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventDestroy_v2(event: *mut Event) -> u32 {
    must_not_block("cuEventDestroy");
    drop(Box::from_raw(event));
    SUCCESS
}
