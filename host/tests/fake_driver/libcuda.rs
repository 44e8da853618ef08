//! A driver without a GPU, for `tests/fake_driver.rs`: device memory is the process's, and
//! a launch computes nothing.
//!
//! `FAKE_DRIVER` names what goes wrong: `old_ptx` and `bad_ptx` refuse modules, `old_gpu` is
//! of compute capability 5.0, `no_gpu` and `broken` do not initialise, `pool` has
//! memory pools,
//! `capturing` has a stream that records a graph, `endless_others` and
//! `endless_tiled` have kernels that never end: those of another grid than the first, and
//! the tiled ones. A kernel named `endless` never ends anywhere, and one named `slow` takes
//! 0.4 s. What a driver may wait in, or for, ends the process while one of them runs
//! ([`busy`]). Compiled with `--cfg old_driver`, a function is missing.
//!
//! `FAKE_DRIVER_LOG` names a file that gets a line for each call that works on a stream, and
//! a line that begins with `?` for some calls that only ask.

#![allow(non_snake_case, dead_code)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function is the driver's side of a call; its contract is the driver API's"
)]

use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::fs::File;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const NO_DEVICE: u32 = 100;
const INVALID_PTX: u32 = 218;
const UNSUPPORTED_PTX_VERSION: u32 = 222;
const NOT_FOUND: u32 = 500;
const SYSTEM_DRIVER_MISMATCH: u32 = 803;

/// Bytes the fake GPU has, and those it says are free.
const MEMORY: usize = 64 << 20;
const FREE: usize = 48 << 20;

static ALLOCATIONS: Mutex<Option<HashMap<u64, Layout>>> = Mutex::new(None);

fn scenario() -> String {
    std::env::var("FAKE_DRIVER").unwrap_or_default()
}

/// When the kernels that run end.
#[derive(Clone, Copy, PartialEq)]
enum Busy {
    Until(Instant),
    ForEver,
}

static BUSY: Mutex<Option<Busy>> = Mutex::new(None);

/// The first grid of a kernel.
static FIRST: Mutex<Option<[c_uint; 2]>> = Mutex::new(None);

/// Writes a line of the log.
fn write_line(line: std::fmt::Arguments) {
    if let Some(path) = std::env::var_os("FAKE_DRIVER_LOG") {
        let mut file = File::options()
            .create(true)
            .append(true)
            .open(path)
            .unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

/// Writes down a call.
macro_rules! log {
    ($($text:tt)*) => { crate::write_line(format_args!($($text)*)) };
}

/// Writes down a call that asks something and enqueues nothing.
macro_rules! query {
    ($($text:tt)*) => { log!("? {}", format_args!($($text)*)) };
}

#[path = "fake_streams.rs"]
mod fake_streams;

use fake_streams::{capture_fault, context_fault, on, stream_fault};

/// Whether a kernel runs.
fn busy() -> bool {
    match *BUSY.lock().unwrap() {
        None => false,
        Some(Busy::Until(end)) => Instant::now() < end,
        Some(Busy::ForEver) => true,
    }
}

/// Ends the process if `call` would wait for a kernel: a test sees the failure sooner.
fn must_not_block(call: &str) {
    if busy() {
        eprintln!("{call} would wait for a kernel that still runs");
        std::process::exit(101);
    }
}

macro_rules! succeed {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
            $(let _ = $arg;)*
            SUCCESS
        }
    )*};
}

macro_rules! block {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name($($arg: $ty),*) -> u32 {
            $(let _ = $arg;)*
            must_not_block(stringify!($name));
            log!(stringify!($name));
            SUCCESS
        }
    )*};
}

block! {
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuModuleUnload(module: *mut c_void);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuInit(_: c_uint) -> u32 {
    match scenario().as_str() {
        "no_gpu" => NO_DEVICE,
        "broken" => SYSTEM_DRIVER_MISMATCH,
        _ => SUCCESS,
    }
}

succeed! {
    cuFuncSetAttribute(function: *mut c_void, attribute: c_uint, value: c_int);
}

macro_rules! answer {
    ($($name:ident($out:ty $(, $arg:ty)*) = $value:expr;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(out: *mut $out $(, _: $arg)*) -> u32 {
            *out = $value;
            SUCCESS
        }
    )*};
}

answer! {
    cuDriverGetVersion(c_int) = 12_020;
    cuDeviceGetCount(c_int) = 2;
    cuDeviceTotalMem_v2(usize, c_int) = MEMORY;
}

#[cfg(not(old_driver))]
answer! {
    cuOccupancyMaxActiveBlocksPerMultiprocessor(c_int, *mut c_void, c_int, usize) = 2;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> u32 {
    *device = ordinal;
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetName(name: *mut c_char, _: c_int, device: c_int) -> u32 {
    let text = format!("Fake {device}\0");
    name.copy_from(text.as_ptr().cast(), text.len());
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_uint, _: c_int) -> u32 {
    let answer = match attribute {
        13 => 1_980_000, // clock rate
        16 => 3,         // multiprocessors
        38 => 4 << 20,   // L2
        75 => {
            if scenario() == "old_gpu" {
                5
            } else {
                9
            }
        } // compute capability, major
        76 => 0,         // compute capability, minor
        97 => 232_448,   // shared memory, opt-in
        115 => (scenario() == "pool").into(),
        _ => return INVALID_VALUE,
    };
    *value = answer;
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> u32 {
    must_not_block("cuMemAlloc");
    if let Some(fault) = context_fault().or_else(capture_fault) {
        return fault;
    }
    allocate(address, bytes, "cuMemAlloc")
}

unsafe fn allocate(address: *mut u64, bytes: usize, call: &str) -> u32 {
    if bytes > FREE {
        return OUT_OF_MEMORY;
    }
    log!("{call} {bytes}");
    let layout = Layout::from_size_align(bytes, 256).unwrap();
    let memory = alloc(layout) as u64;
    let mut allocations = ALLOCATIONS.lock().unwrap();
    allocations.get_or_insert_default().insert(memory, layout);
    *address = memory;
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFree_v2(address: u64) -> u32 {
    must_not_block("cuMemFree");
    if let Some(fault) = capture_fault() {
        return fault;
    }
    free(address, "cuMemFree")
}

unsafe fn free(address: u64, call: &str) -> u32 {
    log!("{call}");
    let mut allocations = ALLOCATIONS.lock().unwrap();
    match allocations.get_or_insert_default().remove(&address) {
        Some(layout) => {
            dealloc(address as *mut u8, layout);
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

/// `CUmemPoolProps`: the kind of memory and its device.
#[repr(C)]
struct PoolProperties {
    allocation_type: u32,
    handle_types: u32,
    location_type: u32,
    location: u32,
    rest: [u64; 9],
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolCreate(
    pool: *mut *mut c_void,
    properties: *const PoolProperties,
) -> u32 {
    let PoolProperties {
        allocation_type,
        handle_types,
        location_type,
        location,
        rest,
    } = &*properties;
    if (*allocation_type, *handle_types, *location_type, rest) != (1, 0, 1, &[0; 9]) {
        return INVALID_VALUE;
    }
    log!("cuMemPoolCreate on device {location}");
    *pool = std::ptr::dangling_mut();
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolSetAttribute(
    _: *mut c_void,
    attribute: u32,
    value: *const u64,
) -> u32 {
    log!("cuMemPoolSetAttribute {attribute} {}", *value);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAllocFromPoolAsync(
    address: *mut u64,
    bytes: usize,
    _: *mut c_void,
    stream: *mut c_void,
) -> u32 {
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    allocate(address, bytes, "cuMemAllocFromPoolAsync")
}

/// Frees at once, which shows later uses.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemFreeAsync(address: u64, stream: *mut c_void) -> u32 {
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    free(address, "cuMemFreeAsync")
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolTrimTo(_: *mut c_void, bytes: usize) -> u32 {
    log!("cuMemPoolTrimTo {bytes}");
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemPoolDestroy(_: *mut c_void) -> u32 {
    log!("cuMemPoolDestroy");
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    (*free, *total) = (FREE, MEMORY);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8Async(at: u64, byte: u8, bytes: usize, stream: *mut c_void) -> u32 {
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    log!("cuMemsetD8Async {byte} x {bytes}{}", on(stream));
    (at as *mut u8).write_bytes(byte, bytes);
    SUCCESS
}

macro_rules! memset {
    ($($line:ident, $lines:ident: $ty:ty;)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $line(at: *mut $ty, value: $ty, count: usize, _: *mut c_void) -> u32 {
            log!("{} {value:#x} x {count}", stringify!($line));
            for place in 0..count {
                *at.add(place) = value;
            }
            SUCCESS
        }

        #[unsafe(no_mangle)]
        unsafe extern "C" fn $lines(
            at: *mut $ty,
            pitch: usize,
            value: $ty,
            width: usize,
            height: usize,
            _: *mut c_void,
        ) -> u32 {
            log!("{} {value:#x} x {width} x {height} pitch {pitch}", stringify!($lines));
            for row in 0..height {
                for place in 0..width {
                    *at.byte_add(row * pitch).add(place) = value;
                }
            }
            SUCCESS
        }
    )*};
}

memset! {
    cuMemsetD16Async, cuMemsetD2D16Async: u16;
    cuMemsetD32Async, cuMemsetD2D32Async: u32;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const u8,
    bytes: usize,
    _: *mut c_void,
) -> u32 {
    must_not_block("cuMemcpyHtoDAsync");
    log!("cuMemcpyHtoDAsync {bytes}");
    (to as *mut u8).copy_from(from, bytes);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut u8,
    from: u64,
    bytes: usize,
    _: *mut c_void,
) -> u32 {
    must_not_block("cuMemcpyDtoHAsync");
    log!("cuMemcpyDtoHAsync {bytes}");
    to.copy_from(from as *const u8, bytes);
    SUCCESS
}

/// A module with its one function, which has the same handle.
struct Module {
    ptx: String,
    entry: String,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleLoadDataEx(
    module: *mut *mut c_void,
    image: *const c_char,
    _: c_uint,
    options: *const c_uint,
    values: *const *mut c_void,
) -> u32 {
    must_not_block("cuModuleLoadData");
    if let Some(fault) = context_fault().or_else(capture_fault) {
        return fault;
    }
    match scenario().as_str() {
        "old_ptx" => UNSUPPORTED_PTX_VERSION,
        "bad_ptx" => {
            // Option 5 is the buffer for the error log.
            assert_eq!(*options, 5);
            let log = "line 7: no such instruction\0";
            (*values).cast::<u8>().copy_from(log.as_ptr(), log.len());
            INVALID_PTX
        }
        _ => {
            let ptx = CStr::from_ptr(image).to_str().unwrap().to_owned();
            let entry = String::new();
            *module = Box::into_raw(Box::new(Module { ptx, entry })).cast();
            SUCCESS
        }
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuModuleGetFunction(
    function: *mut *mut c_void,
    module: *mut c_void,
    name: *const c_char,
) -> u32 {
    let loaded = &mut *module.cast::<Module>();
    loaded.entry = CStr::from_ptr(name).to_str().unwrap().to_owned();
    if !loaded.ptx.contains(&format!(".entry {}(", loaded.entry)) {
        return NOT_FOUND;
    }
    *function = module;
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchKernel(
    function: *mut c_void,
    grid_x: c_uint,
    grid_y: c_uint,
    grid_z: c_uint,
    threads: c_uint,
    threads_y: c_uint,
    threads_z: c_uint,
    shared: c_uint,
    stream: *mut c_void,
    _params: *const *const c_void,
    _: *const *const c_void,
) -> u32 {
    must_not_block("cuLaunchKernel");
    if let Some(fault) = stream_fault(stream) {
        return fault;
    }
    let entry = (*function.cast::<Module>()).entry.as_str();
    // What the driver refuses, too: a grid without CTAs.
    if [grid_x, grid_y].contains(&0) || [grid_z, threads_y, threads_z] != [1, 1, 1] {
        return INVALID_VALUE;
    }
    log!(
        "cuLaunchKernel {entry} {grid_x}x{grid_y} threads {threads} shared {shared}{}",
        on(stream)
    );
    let grid = [grid_x, grid_y];
    let busy = match (entry, scenario().as_str()) {
        ("endless", _) => Some(Busy::ForEver),
        ("slow", _) => Some(Busy::Until(Instant::now() + Duration::from_millis(400))),
        (_, "endless_others") if *FIRST.lock().unwrap().get_or_insert(grid) != grid => {
            Some(Busy::ForEver)
        }
        (tiled, "endless_tiled") if tiled.starts_with("tiled") => Some(Busy::ForEver),
        _ => None,
    };
    if busy.is_some() {
        *BUSY.lock().unwrap() = busy;
    }
    SUCCESS
}

/// What a map says is in the log; that it has come to the device shows by its first byte.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut [u8; 128],
    data_type: u32,
    rank: u32,
    address: u64,
    dims: *const [u64; 2],
    strides: *const u64,
    box_dims: *const [u32; 2],
    element_strides: *const [u32; 2],
    interleave: u32,
    swizzle: u32,
    l2_promotion: u32,
    oob_fill: u32,
) -> u32 {
    let (dims, pitch, box_dims) = (*dims, *strides, *box_dims);
    if rank != 2 || !address.is_multiple_of(16) || !pitch.is_multiple_of(16) {
        return INVALID_VALUE;
    }
    log!(
        "cuTensorMapEncodeTiled type {data_type} dims {dims:?} pitch {pitch} box {box_dims:?} \
         steps {:?} interleave {interleave} swizzle {swizzle} promotion {l2_promotion} fill \
         {oob_fill}",
        *element_strides
    );
    *map = [0x5a; 128];
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(_: u32, name: *mut *const c_char) -> u32 {
    *name = c"CUDA_ERROR_OF_THE_FAKE".as_ptr();
    SUCCESS
}
