//! A driver without a GPU, for `tests/fake_driver.rs`: device memory is the
//! process's, and `cuLaunchKernel` does the work of three kinds of kernels on
//! the CPU, from the very parameters that a GPU would get: naive_f32 CTA by CTA,
//! in order and schedule; pack_tf32, without rounding; hopper TF32 kernels, with
//! a look at the tensor maps.
//!
//! `FAKE_DRIVER` names what goes wrong: `old_ptx` and `bad_ptx` refuse modules,
//! `capturing` has a stream that records a graph, `endless_others` and
//! `endless_tiled` have kernels that never end: those in another order or under
//! another schedule than the first, and the tiled ones.
//! A kernel named `endless` never ends anywhere, and one named `slow` takes 0.4 s. What
//! a driver may wait in, or for, ends the process while one of them runs ([`busy`]).
//! Compiled with `--cfg old_driver`, a function is missing.

#![allow(non_snake_case, dead_code)]
#![allow(
    unsafe_op_in_unsafe_fn,
    reason = "each function is the driver's side of a call; its contract is the driver API's"
)]

// As gpu-kernels has it, whose modules follow.
extern crate alloc;

/// What the orders and schedules need of the instructions: nothing that a host executes.
#[path = "../../../gpu-kernels/src/isa"]
mod isa {
    pub mod hint;
}
#[path = "../../../gpu-kernels/src/order.rs"]
mod order;
#[path = "../../../gpu-kernels/src/problem.rs"]
mod problem;
#[path = "../../../gpu-kernels/src/schedule.rs"]
mod schedule;

use order::TileGrid;
use problem::{GemmParams, Operand};
use schedule::{CtaPosition, TileScheduler};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::HashMap;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::Mutex;
use std::time::{Duration, Instant};

const SUCCESS: u32 = 0;
const INVALID_VALUE: u32 = 1;
const OUT_OF_MEMORY: u32 = 2;
const INVALID_PTX: u32 = 218;
const UNSUPPORTED_PTX_VERSION: u32 = 222;
const NOT_FOUND: u32 = 500;
const NOT_READY: u32 = 600;
const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;

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

/// How the first kernel was launched.
static FIRST: Mutex<Option<(order::TileOrder, schedule::Schedule)>> = Mutex::new(None);

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
            SUCCESS
        }
    )*};
}

block! {
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuStreamDestroy_v2(stream: *mut c_void);
    cuStreamSynchronize(stream: *mut c_void);
    cuEventSynchronize(event: *mut c_void);
    cuModuleUnload(module: *mut c_void);
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamQuery(_: *mut c_void) -> u32 {
    match busy() {
        _ if scenario() == "capturing" => STREAM_CAPTURE_UNSUPPORTED,
        true => NOT_READY,
        false => SUCCESS,
    }
}

succeed! {
    cuInit(flags: c_uint);
    cuCtxSetCurrent(context: *mut c_void);
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
    cuDevicePrimaryCtxRetain(*mut c_void, c_int) = std::ptr::dangling_mut();
    cuStreamCreateWithPriority(*mut c_void, c_uint, c_int) = std::ptr::dangling_mut();
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
        75 => 9,         // compute capability, major
        76 => 0,         // compute capability, minor
        97 => 232_448,   // shared memory, opt-in
        _ => return INVALID_VALUE,
    };
    *value = answer;
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(_: *mut c_void, status: *mut c_uint) -> u32 {
    *status = (scenario() == "capturing").into();
    SUCCESS
}

/// When an event was recorded; work is done by then.
type Event = Option<Instant>;

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut *mut Event, _: c_uint) -> u32 {
    *event = Box::into_raw(Box::new(None));
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventRecord(event: *mut Event, _: *mut c_void) -> u32 {
    *event = Some(Instant::now());
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(
    milliseconds: *mut f32,
    start: *const Event,
    stop: *const Event,
) -> u32 {
    match (*start, *stop) {
        (Some(start), Some(stop)) => {
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

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemAlloc_v2(address: *mut u64, bytes: usize) -> u32 {
    must_not_block("cuMemAlloc");
    if bytes > FREE {
        return OUT_OF_MEMORY;
    }
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
    let mut allocations = ALLOCATIONS.lock().unwrap();
    match allocations.get_or_insert_default().remove(&address) {
        Some(layout) => {
            dealloc(address as *mut u8, layout);
            SUCCESS
        }
        None => INVALID_VALUE,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> u32 {
    (*free, *total) = (FREE, MEMORY);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemsetD8Async(at: u64, byte: u8, bytes: usize, _: *mut c_void) -> u32 {
    (at as *mut u8).write_bytes(byte, bytes);
    SUCCESS
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuMemcpyHtoDAsync_v2(
    to: u64,
    from: *const u8,
    bytes: usize,
    _: *mut c_void,
) -> u32 {
    must_not_block("cuMemcpyHtoDAsync");
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
    _shared: c_uint,
    _: *mut c_void,
    params: *const *const GemmParams,
    _: *const *const c_void,
) -> u32 {
    const SIDE: u32 = 16;
    must_not_block("cuLaunchKernel");
    let entry = (*function.cast::<Module>()).entry.as_str();
    let busy = match entry {
        "endless" => Some(Busy::ForEver),
        "slow" => Some(Busy::Until(Instant::now() + Duration::from_millis(400))),
        _ => None,
    };
    if busy.is_some() {
        // It has no parameters.
        *BUSY.lock().unwrap() = busy;
        return SUCCESS;
    }
    let params = &**params;
    let is_endless = match scenario().as_str() {
        "endless_others" => {
            let walk = (params.order, params.schedule);
            *FIRST.lock().unwrap().get_or_insert(walk) != walk
        }
        "endless_tiled" => entry.starts_with("tiled"),
        _ => false,
    };
    if is_endless {
        *BUSY.lock().unwrap() = Some(Busy::ForEver);
        return SUCCESS;
    }
    // What the driver refuses, too: a grid without CTAs.
    let grid = [grid_x, grid_y, grid_z];
    if grid.contains(&0) || [threads_y, threads_z] != [1, 1] {
        return INVALID_VALUE;
    }
    match entry {
        "naive_f32" if threads == SIDE * SIDE => {}
        "pack_tf32" => {
            let tiles = params.m.div_ceil(64) * params.n.div_ceil(64);
            assert_eq!((grid_x, grid_y, threads), (tiles, 1, 256));
            return pack(params);
        }
        hopper if hopper.starts_with("hopper_tf32_ak_bk") => return hopper_tf32(params),
        _ => return INVALID_VALUE,
    }
    let tiles = TileGrid::cover(params.m, params.n, SIDE, SIDE);
    for (y, x) in (0..grid_y).flat_map(|y| (0..grid_x).map(move |x| (y, x))) {
        let position = CtaPosition { x, y, grid_x };
        let mut walk = TileScheduler::new(params.schedule, params.order, tiles, position);
        while let Some(tile) = walk.next() {
            for thread in 0..threads {
                let row = tile.m * SIDE + thread / SIDE;
                let col = tile.n * SIDE + thread % SIDE;
                if row < params.m && col < params.n {
                    element(params, row.into(), col.into());
                }
            }
        }
    }
    SUCCESS
}

/// Element (row, col) of an operand.
fn at(operand: &Operand, row: u64, col: u64) -> *mut f32 {
    let index = row * operand.row_stride + col * operand.col_stride;
    (operand.address + 4 * index) as *mut f32
}

unsafe fn pack(params: &GemmParams) -> u32 {
    for row in 0..params.m.into() {
        for col in 0..params.n.into() {
            *at(&params.c, row, col) = *at(&params.a, row, col);
        }
    }
    SUCCESS
}

/// What the fake keeps in the 128 bytes of a tensor map.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
struct Map {
    address: u64,
    dims: [u64; 2],
    pitch_bytes: u64,
    data_type: u32,
    box_width: u32,
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuTensorMapEncodeTiled(
    map: *mut Map,
    data_type: u32,
    rank: u32,
    address: u64,
    dims: *const [u64; 2],
    strides: *const u64,
    box_dims: *const [u32; 2],
    _element_strides: *const u32,
    _interleave: u32,
    _swizzle: u32,
    _l2_promotion: u32,
    _oob_fill: u32,
) -> u32 {
    let pitch_bytes = *strides;
    if rank != 2 || !address.is_multiple_of(16) || !pitch_bytes.is_multiple_of(16) {
        return INVALID_VALUE;
    }
    *map = Map {
        address,
        dims: *dims,
        pitch_bytes,
        data_type,
        box_width: (*box_dims)[0],
    };
    SUCCESS
}

/// Checks that the maps of A and B say what the parameters say, in the f32 type
/// (7), then multiplies.
unsafe fn hopper_tf32(params: &GemmParams) -> u32 {
    let maps = params.tensor_maps as *const [u8; 128];
    let expected = |operand: &Operand, lines: u32, pitch: u64| Map {
        address: operand.address,
        dims: [params.k.into(), lines.into()],
        pitch_bytes: 4 * pitch,
        data_type: 7,
        box_width: 32,
    };
    let (a, b) = (&params.a, &params.b);
    assert_eq!((a.col_stride, b.row_stride), (1, 1));
    assert_eq!(*maps.cast::<Map>(), expected(a, params.m, a.row_stride));
    let b_map = *maps.add(1).cast::<Map>();
    assert_eq!(b_map, expected(b, params.n, b.col_stride));
    if params.store_by_tma != 0 {
        let c_map = *maps.add(2).cast::<Map>();
        assert_eq!((c_map.address, c_map.data_type), (params.c.address, 7));
    }
    for row in 0..params.m.into() {
        for col in 0..params.n.into() {
            element(params, row, col);
        }
    }
    SUCCESS
}

unsafe fn element(params: &GemmParams, row: u64, col: u64) {
    let mut sum = 0.0;
    for k in 0..params.k.into() {
        sum += *at(&params.a, row, k) * *at(&params.b, k, col);
    }
    *at(&params.c, row, col) = sum;
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGetErrorName(_: u32, name: *mut *const c_char) -> u32 {
    *name = c"CUDA_ERROR_OF_THE_FAKE".as_ptr();
    SUCCESS
}
