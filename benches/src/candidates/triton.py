"""Times a Triton GEMM with the algorithm of Triton's matmul tutorial.

Grouped tile order, one CTA a tile, autotuned over configurations of the
tutorial's kind. Reads one JSON object from the command line:

    {"cases": [{"m": .., "n": .., "k": .., "dtype": "f16", "output": "f16",
                "a_transposed": false, "b_transposed": false}, ..],
     "regimes": ["cold", "sustained"], "seed": 42, "sustain_s": 1.0,
     "cold_s": 0.25, "budget_s": 60.0}

Prints one JSON object a line: first {"version": ..}, then for each case and
regime {"case": index, "regime": .., "milliseconds": [..], "config": ..,
"relative_error": ..}, or {"case": index, "skipped": why}.
"""

import json
import math
import statistics
import sys
import time

import torch
import triton
import triton.language as tl

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "tf32": torch.float32,
    "f32": torch.float32,
}


def configurations():
    tiles = [
        # BLOCK_M, BLOCK_N, BLOCK_K, stages, warps
        (128, 256, 64, 3, 8),
        (128, 256, 32, 4, 8),
        (256, 128, 64, 3, 8),
        (128, 128, 64, 4, 4),
        (128, 128, 32, 4, 4),
        (64, 256, 32, 4, 4),
        (64, 128, 32, 4, 4),
        (32, 64, 32, 5, 2),
    ]
    return [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8},
            num_stages=stages,
            num_warps=warps,
        )
        for m, n, k, stages, warps in tiles
    ]


@triton.autotune(configs=configurations(), key=["m", "n", "k", "stride_am", "stride_bk", "PRECISION"])
@triton.jit
def gemm(
    a_ptr, b_ptr, c_ptr,
    m, n, k,
    stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr, PRECISION: tl.constexpr,
):
    pid = tl.program_id(0)
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    group = pid // (GROUP_M * tiles_n)
    first_m = group * GROUP_M
    rows = min(tiles_m - first_m, GROUP_M)
    within = pid % (GROUP_M * tiles_n)
    tile_m = first_m + within % rows
    tile_n = within // rows

    # Rows past the edge wrap round: loaded, computed, never stored.
    row = (tile_m * BLOCK_M + tl.arange(0, BLOCK_M)) % m
    col = (tile_n * BLOCK_N + tl.arange(0, BLOCK_N)) % n
    depth = tl.arange(0, BLOCK_K)
    a_at = a_ptr + row[:, None] * stride_am + depth[None, :] * stride_ak
    b_at = b_ptr + depth[:, None] * stride_bk + col[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
        b = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        total = tl.dot(a, b, total, input_precision=PRECISION)
        a_at += BLOCK_K * stride_ak
        b_at += BLOCK_K * stride_bk

    out_row = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    out_col = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    c_at = c_ptr + out_row[:, None] * stride_cm + out_col[None, :] * stride_cn
    inside = (out_row[:, None] < m) & (out_col[None, :] < n)
    tl.store(c_at, total.to(c_ptr.dtype.element_ty), mask=inside)


def operand(rows, cols, transposed, dtype, generator):
    shape = (cols, rows) if transposed else (rows, cols)
    stored = torch.empty(shape, device="cuda", dtype=dtype)
    stored.uniform_(-1.0, 1.0, generator=generator)
    return stored.t() if transposed else stored


def launcher(case, a, b, c):
    m, n, k = case["m"], case["n"], case["k"]
    precision = "ieee" if case["dtype"] == "f32" else "tf32"

    def grid(meta):
        return (triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),)

    def launch():
        gemm[grid](a, b, c, m, n, k, *a.stride(), *b.stride(), *c.stride(), PRECISION=precision)

    return launch


def relative_error(a, b, c):
    rows = torch.linspace(0, a.shape[0] - 1, 16, device="cuda").long()
    cols = torch.linspace(0, b.shape[1] - 1, 16, device="cuda").long()
    exact = a[rows].double() @ b[:, cols].double()
    got = c[rows][:, cols].double()
    return ((got - exact).norm() / exact.norm()).item()


def tolerance(case):
    stored = {"f16": 2.0**-11, "bf16": 2.0**-8}.get(case["output"], 2.0**-24)
    converted = 2.0**-10 if case["dtype"] == "tf32" else 0.0
    return stored + converted + (case["k"] + 16) * 2.0**-24


def events():
    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def cold(launch, flush, seconds):
    samples = []
    begin = time.monotonic()
    while len(samples) < 9 or (len(samples) < 100 and time.monotonic() - begin < seconds):
        start, stop = events()
        # As in measure/regime.rs: the instruction caches have the code.
        launch()
        flush.zero_()
        start.record()
        launch()
        stop.record()
        stop.synchronize()
        samples.append(start.elapsed_time(stop))
    return samples


def sustained(launch, expected_ms, seconds):
    """Slices of back-to-back launches, replayed from a CUDA graph: Python is
    too slow to enqueue small kernels one by one."""
    slice_ms = min(200.0, seconds * 1e3)
    per_graph = max(1, min(100, math.ceil(slice_ms / expected_ms)))
    replays = max(1, math.ceil(slice_ms / (per_graph * expected_ms)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(per_graph):
            launch()
    graph.replay()
    samples, total = [], 0.0
    while total < seconds * 1e3:
        start, stop = events()
        start.record()
        for _ in range(replays):
            graph.replay()
        stop.record()
        stop.synchronize()
        elapsed = start.elapsed_time(stop)
        total += elapsed
        samples.append(elapsed / (replays * per_graph))
    return samples


def measure(index, case, job, flush):
    generator = torch.Generator(device="cuda").manual_seed(job["seed"])
    dtype, out = DTYPES[case["dtype"]], DTYPES[case["output"]]
    a = operand(case["m"], case["k"], case["a_transposed"], dtype, generator)
    b = operand(case["k"], case["n"], case["b_transposed"], dtype, generator)
    c = torch.full((case["m"], case["n"]), float("nan"), device="cuda", dtype=out)
    launch = launcher(case, a, b, c)
    launch()
    torch.cuda.synchronize()
    error = relative_error(a, b, c)
    # Written so that a NaN is refused too.
    if not error <= tolerance(case) or bool(c.isnan().any()):
        return [{"case": index, "skipped": f"wrong result, relative error {error:.2e}"}]
    chosen = gemm.best_config
    shape = "x".join(str(chosen.kwargs[name]) for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    config = f"{shape} stages {chosen.num_stages} warps {chosen.num_warps}"
    # One launch is not enough to settle lazy initialisation.
    for _ in range(3):
        launch()
    lines = []
    times = cold(launch, flush, job["cold_s"] if "cold" in job["regimes"] else 0.0)
    results = {"cold": times}
    if "sustained" in job["regimes"]:
        results["sustained"] = sustained(launch, statistics.median(times), job["sustain_s"])
    for regime in job["regimes"]:
        lines.append({
            "case": index,
            "regime": regime,
            "milliseconds": results[regime],
            "config": config,
            "relative_error": error,
        })
    return lines


def main():
    job = json.loads(sys.argv[1])
    begin = time.monotonic()
    print(json.dumps({"version": triton.__version__}), flush=True)
    l2 = getattr(torch.cuda.get_device_properties(0), "L2_cache_size", 0)
    flush = torch.empty(max(256 << 20, 2 * l2), dtype=torch.int8, device="cuda")
    for index, case in enumerate(job["cases"]):
        if time.monotonic() - begin > job["budget_s"]:
            lines = [{"case": index, "skipped": "the time for Triton was spent"}]
        else:
            try:
                lines = measure(index, case, job, flush)
            except Exception as error:
                lines = [{"case": index, "skipped": f"{type(error).__name__}: {error}"[:300]}]
        for line in lines:
            print(json.dumps(line), flush=True)
        torch.cuda.empty_cache()


main()
