//! The C interface of the WebAssembly module; `benches/page/js/model.js` is its caller.
//!
//! A call of [`Query`] takes numbers, and the order by name, which JavaScript writes at
//! [`order_name`] first. It returns the address of its numbers, or 0 where
//! [`Query::new`] refuses; how many there are, the caller knows, and [`rank_order`] says
//! so itself. They stay until the next call, which takes back all
//! [memory](crate::arena) of the one before.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ptr;

use crate::{Query, Ranks, arena, figures, ranks, tiles, waves};

/// Bytes that the name of an order may have.
const NAME_BYTES: usize = 32;

/// Where JavaScript writes the name.
struct Name(UnsafeCell<[u8; NAME_BYTES]>);

// SAFETY: the module has no threads, and JavaScript does not write during a call.
unsafe impl Sync for Name {}

static NAME: Name = Name(UnsafeCell::new([0; NAME_BYTES]));

/// The address of the [`NAME_BYTES`] bytes for the name of an order, in UTF-8.
#[unsafe(no_mangle)]
extern "C" fn order_name() -> *mut u8 {
    NAME.0.get().cast()
}

/// An entry point: the sizes, bytes of an element, the GPU's place in the model's
/// table, SMs, bytes of the order's name; and what answers the query.
macro_rules! entry_point {
    ($(#[$doc:meta])* $name:ident -> $number:ty, $of:expr) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments, reason = "a C interface has no structures")]
        extern "C" fn $name(
            m: u32,
            n: u32,
            k: u32,
            block_m: u32,
            block_n: u32,
            block_k: u32,
            element_bytes: u32,
            gpu: u32,
            sms: u32,
            name_bytes: usize,
        ) -> *const $number {
            let sizes = [[m, n, k], [block_m, block_n, block_k]];
            answer(sizes, element_bytes, gpu, sms, name_bytes, $of)
        }
    };
}

entry_point! {
    /// [`tiles()`]: row and column of each tile.
    tile_order -> u32, tiles
}

entry_point! {
    /// [`waves`]: four numbers for each.
    wave_loads -> f64, waves
}

entry_point! {
    /// [`figures`]: a number for each of [`crate::FIGURES`].
    predict -> f64, |query| figures(query).to_vec()
}

/// [`ranks()`]: what each rank does when, for the place of the operation in
/// [`tilewise_program::program::Operation::ALL`], the layer, the number of ranks, and of chunks or
/// 0 for as many as the estimate chooses.
#[unsafe(no_mangle)]
extern "C" fn rank_order(
    operation: u32,
    m: u32,
    n: u32,
    k: u32,
    ranks_of_layer: u32,
    chunks: u32,
) -> *const f64 {
    // SAFETY: as in `answer`.
    unsafe { arena::take_back_all() };
    match Ranks::new(operation, [m, n, k], ranks_of_layer, chunks) {
        Some(asked) => ranks(&asked).leak().as_ptr(),
        None => ptr::null(),
    }
}

/// Answers a query of (M, N, K) and (BLOCK_M, BLOCK_N, BLOCK_K), in memory that the
/// next call takes back.
fn answer<T>(
    [shape, block]: [[u32; 3]; 2],
    element_bytes: u32,
    gpu: u32,
    sms: u32,
    name_bytes: usize,
    of: impl Fn(&Query) -> Vec<T>,
) -> *const T {
    // SAFETY: nothing that a call allocates outlives it but what it leaks here, for
    // JavaScript, which by then has read it.
    unsafe { arena::take_back_all() };
    // SAFETY: `Name` is not written during a call.
    let name = unsafe { &*NAME.0.get() };
    let query = name
        .get(..name_bytes)
        .and_then(|name| str::from_utf8(name).ok())
        .and_then(|name| Query::new(shape, block, element_bytes, name, gpu, sms));
    match query {
        Some(query) => of(&query).leak().as_ptr(),
        None => ptr::null(),
    }
}
