//! Whether several ranks may have one GPU.

/// The variable by which NCCL is told that ranks share GPUs, from its version 2.30 on.
const VARIABLE: &str = "NCCL_MULTI_RANK_GPU_ENABLE";

/// What to do where ranks share a GPU.
pub(crate) const SHARING: &str = "set NCCL_MULTI_RANK_GPU_ENABLE=1 if that is meant (NCCL 2.30)";

/// Whether the environment lets ranks that are processes share GPUs. Their kernels wait for each
/// other while the GPU runs one process at a time, so this is for tests.
pub(crate) fn shares_gpus() -> bool {
    let value = std::env::var(VARIABLE).unwrap_or_default();
    value.trim().parse().is_ok_and(|value: i64| value != 0)
}
