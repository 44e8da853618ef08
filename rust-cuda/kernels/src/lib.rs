//! The entry points of `gpu-kernels` as rust-cuda wants them: under
//! `#[cuda_std::kernel]`, which makes the function `extern "C"`, unmangled, and a
//! kernel to `rustc_codegen_nvvm`.
//!
//! There is nothing else here: the list and the function that each row becomes
//! are `gpu_kernels::define_entry_points!`.

gpu_kernels::define_entry_points!(#[cuda_std::kernel] extern "C");
