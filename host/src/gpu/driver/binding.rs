//! The functions, types and constants of the CUDA driver API that the library uses, under
//! the driver's own names, and the two objects that [`open`](super::open) owns.
//!
//! There are two bindings with the same names, and a build has one of them:
//!
//! | module | feature | what it is |
//! |---|---|---|
//! | `linked` | `cust` | the crates `cust` and `cust_raw`, which link `libcuda` |
//! | `loaded` | none | a table of function pointers; building it needs nothing of CUDA |
//!
//! Both open the driver at run time, and both open the device's primary context, which is
//! the one that every other library of the process uses.

#[cfg(feature = "cust")]
mod forward;
#[cfg(feature = "cust")]
mod linked;
#[cfg(not(feature = "cust"))]
mod loaded;

#[cfg(feature = "cust")]
pub(super) use linked::*;
#[cfg(not(feature = "cust"))]
pub(super) use loaded::*;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::driver::libcuda;

    #[test]
    fn without_a_driver_every_function_answers_no_device() {
        if libcuda::is_present() {
            return;
        }
        // SAFETY: takes no pointer.
        let result = unsafe { cuInit(0) };
        assert_eq!(code(result), 100);
        assert_eq!(libcuda::take_missing_function(), None);
    }
}
