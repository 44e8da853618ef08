"""Measures tilewise's epilogues, batches and calls on a GPU, beside PyTorch in one process.

    python against_torch.py [--json FILE] [--only PART] [--seconds S] [--rounds N]

Data are random in [-1, 1), bf16. Candidates take turns in random order, and every ratio is taken
within a round: its median is reported, with quartiles. Times are of CUDA events.

- cold: one call, behind another one and a kernel that overwrites L2.
- sustained: calls back to back for about 40 ms a turn, launched one by one.
- host: microseconds of the host for a call, 64 calls between two waits for the GPU.

Every result is checked against float64 before it is timed.
"""

import argparse
import gc
import json
import math
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import torch
from torch.nn import functional

import tilewise
from tilewise import _tilewise

Call = Callable[[], torch.Tensor]

EPILOGUE_SHAPES = [(4096, 14336, 4096), (8192, 4096, 14336)]
TORCH_SHAPES = [*EPILOGUE_SHAPES, (512, 4096, 4096), (16, 14336, 4096)]
# M, N, K and the number of matrices.
BATCHES = [
    (512, 512, 512, 16),
    (128, 128, 128, 64),
    (1024, 128, 1024, 32),
    (2048, 2048, 64, 128),
    (2048, 2048, 2048, 8),
    (64, 64, 64, 1024),
]
DTYPE = torch.bfloat16
TURN_SECONDS = 0.04


@dataclass
class Row:
    """One candidate against its base in one regime."""

    part: str
    shape: str
    candidate: str
    base: str
    regime: str
    microseconds: float
    base_microseconds: float
    # Time of the base over that of the candidate.
    speedup: float
    speedup_q1: float
    speedup_q3: float
    rounds: int


@dataclass
class Bench:
    rounds: int
    seconds: float
    rows: list[Row] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(42))

    def __post_init__(self):
        l2 = torch.cuda.get_device_properties(0).L2_cache_size
        self.flush = torch.empty(4 * l2, dtype=torch.uint8, device="cuda")

    def compare(self, part, shape, candidates: dict[str, Call], bases: dict[str, str]):
        """Times all candidates in turns; `bases` says what each is compared with."""
        for call in candidates.values():
            call()
        torch.cuda.synchronize()
        for regime, measure, rounds in (
            ("cold", self.cold, self.rounds),
            ("sustained", self.sustained, max(3, round(self.seconds / TURN_SECONDS))),
        ):
            times = {name: [] for name in candidates}
            for _ in range(rounds):
                order = list(candidates)
                self.chance.shuffle(order)
                for name, microseconds in measure([(name, candidates[name]) for name in order]):
                    times[name].append(microseconds)
            for name, base in bases.items():
                self.add(part, shape, name, base, regime, times[name], times[base])

    def add(self, part, shape, name, base, regime, times, base_times):
        ratios = [b / t for t, b in zip(times, base_times)]
        q1, median, q3 = statistics.quantiles(ratios, n=4, method="inclusive")
        row = Row(
            part,
            shape,
            name,
            base,
            regime,
            statistics.median(times),
            statistics.median(base_times),
            median,
            q1,
            q3,
            len(ratios),
        )
        self.rows.append(row)
        print(
            f"{part:10} {shape:22} {name:28} {regime:9} {row.microseconds:9.2f} us"
            f"  {median:6.3f} x {base} ({q1:.3f} to {q3:.3f})",
            flush=True,
        )

    def cold(self, calls):
        """Microseconds of one call each, with L2 overwritten before it. One more call ahead of
        that leaves the code in the instruction caches, whatever the others have run."""
        events = []
        for name, call in calls:
            call()
            self.flush.fill_(self.chance.randrange(256))
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            stop.record()
            events.append((name, start, stop))
        torch.cuda.synchronize()
        return [(name, 1e3 * start.elapsed_time(stop)) for name, start, stop in events]

    def sustained(self, calls):
        """Microseconds of a call among many, back to back."""
        for name, call in calls:
            ((_, once),) = self.cold([(name, call)])
            count = max(4, round(1e6 * TURN_SECONDS / max(once, 5.0)))
            start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(count):
                call()
            stop.record()
            stop.synchronize()
            yield name, 1e3 * start.elapsed_time(stop) / count


def uniform(*shape, dtype=DTYPE):
    return (torch.rand(shape, device="cuda") * 2 - 1).to(dtype)


def check(name: str, found: torch.Tensor, wanted: Callable[[slice, slice], torch.Tensor], depth):
    """Fails unless a sample of rows and columns is what float64 says."""
    rows, cols = (slice(0, size, max(1, size // 61)) for size in found.shape[-2:])
    sample, expected = found[..., rows, cols].double(), wanted(rows, cols)
    eps = torch.finfo(found.dtype).eps
    # PyTorch rounds to bf16 before the activation too.
    error = (sample - expected).abs() - 4 * eps * expected.abs()
    limit = 4 * eps * math.sqrt(depth)
    if not bool((error <= limit).all()):
        sys.exit(f"{name}: wrong by {error.max().item():.3g}, limit {limit:.3g}")


def product(x, w, rows, cols):
    return x[rows].double() @ w[cols].double().t()


def epilogues(bench: Bench):
    """Each epilogue against the plain product."""
    for m, n, k in EPILOGUE_SHAPES:
        x, w = uniform(m, k), uniform(n, k)
        wt = w.t()
        bias, tall, c = uniform(n), uniform(m, 1), uniform(m, n)
        row, col = uniform(m, dtype=torch.float32), uniform(n, dtype=torch.float32)
        out, half = torch.empty(m, n, dtype=DTYPE, device="cuda"), uniform(m, n // 2)
        scratch = c.clone()

        def call(out=out, **options):
            return lambda: tilewise.matmul(x, wt, out=out, **options)

        candidates = {
            "plain": call(),
            "alpha": call(alpha=0.5),
            "bias": call(bias=bias),
            "bias by row": call(bias=tall),
            "relu": call(activation="relu"),
            "leaky_relu": call(activation="leaky_relu"),
            "gelu": call(activation="gelu"),
            "gelu_tanh": call(activation="gelu_tanh"),
            "silu": call(activation="silu"),
            "bias + gelu": call(bias=bias, activation="gelu"),
            "row and col scale": call(row_scale=row, col_scale=col),
            "residual": call(c=c),
            "beta 0.5": call(c=c, beta=0.5),
            "in place": call(c=scratch, beta=0.5, out=scratch),
            "swiglu halves": call(out=half, activation="silu", gated="halves"),
            "swiglu interleaved": call(out=half, activation="silu", gated="interleaved"),
        }
        check("plain", candidates["plain"](), lambda r, s: product(x, w, r, s), k)
        check(
            "bias + gelu",
            candidates["bias + gelu"](),
            lambda r, s: functional.gelu(product(x, w, r, s) + bias[s].double()),
            k,
        )
        check(
            "residual",
            candidates["residual"](),
            lambda r, s: product(x, w, r, s) + c[r, s].double(),
            k,
        )
        bases = {name: "plain" for name in candidates if name != "plain"}
        bench.compare("epilogue", f"{m}x{n}x{k}", candidates, bases)


def against_torch(bench: Bench):
    """The fused layers against PyTorch's."""
    for m, n, k in TORCH_SHAPES:
        x, w, bias, c = uniform(m, k), uniform(n, k), uniform(n), uniform(m, n)
        wt, half = w.t(), n // 2

        def torch_swiglu():
            z = functional.linear(x, w)
            return functional.silu(z[:, :half]) * z[:, half:]

        candidates = {
            "linear": lambda: tilewise.matmul(x, wt),
            "torch linear": lambda: functional.linear(x, w),
            "linear+bias+gelu": lambda: tilewise.matmul(x, wt, bias=bias, activation="gelu"),
            "torch linear+bias+gelu": lambda: functional.gelu(functional.linear(x, w, bias)),
            "linear+bias+gelu_tanh": lambda: tilewise.matmul(
                x, wt, bias=bias, activation="gelu_tanh"
            ),
            "torch addmm_activation": lambda: torch._addmm_activation(bias, x, wt, use_gelu=True),
            "swiglu": lambda: tilewise.matmul(x, wt, activation="silu", gated="halves"),
            "torch swiglu": torch_swiglu,
            "addmm": lambda: tilewise.matmul(x, wt, c=c),
            "torch addmm": lambda: torch.addmm(c, x, wt),
        }
        bases = {
            "linear": "torch linear",
            "linear+bias+gelu": "torch linear+bias+gelu",
            "linear+bias+gelu_tanh": "torch addmm_activation",
            "swiglu": "torch swiglu",
            "addmm": "torch addmm",
        }

        def gelu(r, s, approximate="none"):
            z = product(x, w, r, s) + bias[s].double()
            return functional.gelu(z, approximate=approximate)

        def swiglu(r, s):
            gate = product(x, w[:half], r, s)
            return functional.silu(gate) * product(x, w[half:], r, s)

        wanted = {
            "linear": lambda r, s: product(x, w, r, s),
            "linear+bias+gelu": gelu,
            "linear+bias+gelu_tanh": lambda r, s: gelu(r, s, "tanh"),
            "addmm": lambda r, s: product(x, w, r, s) + c[r, s].double(),
        }
        for name, reference in wanted.items():
            for one in (name, bases[name]):
                check(one, candidates[one](), reference, k)
        # The error of each factor is multiplied by the other, which is as large as sqrt(K).
        for name in ("swiglu", "torch swiglu"):
            check(name, candidates[name](), swiglu, k * k)
        bench.compare("torch", f"{m}x{n}x{k}", candidates, bases)


def batches(bench: Bench):
    """Batched products against torch.bmm."""
    for m, n, k, count in BATCHES:
        a, b = uniform(count, m, k), uniform(count, k, n)
        candidates = {
            "batched": lambda: tilewise.matmul(a, b),
            "torch bmm": lambda: torch.bmm(a, b),
        }
        for name, call in candidates.items():
            check(name, call()[-1], lambda r, s: a[-1][r].double() @ b[-1][:, s].double(), k)
        # A launch that reads and writes as many bytes, and computes nothing: what a product whose
        # arithmetic costs nothing could reach.
        source = uniform(count * (m * k + k * n + m * n) // 2)
        target = torch.empty_like(source)
        candidates["copy of as many bytes"] = lambda: target.copy_(source)
        bases = {"batched": "torch bmm", "copy of as many bytes": "torch bmm"}
        bench.compare("batched", f"{count} of {m}x{n}x{k}", candidates, bases)


def host(bench: Bench, calls: int = 64):
    """The host's time of a call, at 128x128x128."""
    a, b = uniform(128, 128), uniform(128, 128)
    out = torch.empty(128, 128, dtype=DTYPE, device="cuda")

    def loop(call):
        def run():
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - start) / calls

        return run

    contenders = {
        "matmul": loop(lambda: tilewise.matmul(a, b)),
        "torch mm": loop(lambda: torch.mm(a, b)),
        "matmul, out given": loop(lambda: tilewise.matmul(a, b, out=out)),
        "torch mm, out given": loop(lambda: torch.mm(a, b, out=out)),
        "the plan from Rust": lambda: _tilewise.time_plan(a, b, out, calls),
        "torch empty": loop(lambda: torch.empty(128, 128, dtype=DTYPE, device="cuda")),
    }
    times = {name: [] for name in contenders}
    gc.disable()
    for round_ in range(20 * bench.rounds):
        order = list(contenders)
        bench.chance.shuffle(order)
        for name in order:
            torch.cuda.synchronize()
            microseconds = 1e6 * contenders[name]()
            if round_ >= bench.rounds:
                times[name].append(microseconds)
    gc.enable()
    torch.cuda.synchronize()
    for name, base in (
        ("matmul", "torch mm"),
        ("matmul, out given", "torch mm, out given"),
        ("matmul", "the plan from Rust"),
        ("matmul, out given", "the plan from Rust"),
        ("torch empty", "the plan from Rust"),
    ):
        bench.add("host", "128x128x128", name, base, "host", times[name], times[base])
    # On the GPU's clock, where the host is slower than the GPU.
    candidates = {
        "matmul": lambda: tilewise.matmul(a, b),
        "torch mm": lambda: torch.mm(a, b),
    }
    bench.compare("128", "128x128x128", candidates, {"matmul": "torch mm"})


PARTS = {"epilogue": epilogues, "torch": against_torch, "batched": batches, "host": host}


def geometric_mean(values):
    return math.exp(statistics.fmean(math.log(value) for value in values))


def verdicts(rows: list[Row]):
    """What was aimed at, and whether it was reached."""

    def speedups(part, candidate, regime):
        found = [r for r in rows if (r.part, r.candidate, r.regime) == (part, candidate, regime)]
        return [row.speedup for row in found]

    for regime in ("cold", "sustained"):
        for part, candidate, mean, least in (
            ("torch", "linear+bias+gelu", 1.10, 1.0),
            ("torch", "linear+bias+gelu_tanh", 1.10, 1.0),
            ("torch", "swiglu", 1.30, 1.0),
            ("torch", "addmm", 1.10, 1.0),
            ("batched", "batched", 1.10, 0.97),
        ):
            if found := speedups(part, candidate, regime):
                reached = geometric_mean(found) >= mean and min(found) >= least
                print(
                    f"{'reached' if reached else 'MISSED '}  {candidate}, {regime}: geometric mean "
                    f"{geometric_mean(found):.3f} (at least {mean}), least {min(found):.3f} "
                    f"(at least {least})"
                )
        slow = [r for r in rows if r.part == "epilogue" and r.regime == regime]
        for row in slow:
            limit = 1.06 if row.candidate in ("residual", "beta 0.5", "in place") else 1.03
            if 1 / row.speedup > limit:
                print(
                    f"MISSED   {row.candidate}, {row.shape}, {regime}: {1 / row.speedup:.3f} x the "
                    f"plain product (at most {limit})"
                )
        if slow:
            worst = max(1 / row.speedup for row in slow)
            print(f"epilogues, {regime}: at most {worst:.3f} x the plain product")
    for row in rows:
        if row.part == "host" and row.base == "the plan from Rust" and "matmul" in row.candidate:
            over = row.microseconds - row.base_microseconds
            print(
                f"{'reached' if over <= 8 else 'MISSED '}  {row.candidate}: {over:.2f} us over the "
                "same plan from Rust (at most 8)"
            )
        if row.part == "host" and row.base.startswith("torch mm"):
            ratio = 1 / row.speedup
            print(
                f"{'reached' if ratio <= 1 else 'MISSED '}  {row.candidate}: {ratio:.3f} x "
                f"{row.base} on the host (at most 1.0)"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", help="file for the rows")
    parser.add_argument("--only", choices=PARTS, help="measure one part")
    parser.add_argument("--rounds", type=int, default=31, help="cold rounds")
    parser.add_argument("--seconds", type=float, default=0.4, help="sustained, each candidate")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("no GPU to measure on")
    torch.manual_seed(42)
    machine = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "tilewise": tilewise.__version__,
        "python": platform.python_version(),
        "date": time.strftime("%F", time.gmtime()),
    }
    print(", ".join(f"{name} {value}" for name, value in machine.items()), flush=True)
    bench = Bench(arguments.rounds, arguments.seconds)
    with torch.inference_mode():
        for name, part in PARTS.items():
            if arguments.only in (None, name):
                part(bench)
                if arguments.json:
                    with open(arguments.json, "w") as file:
                        rows = [asdict(row) for row in bench.rows]
                        json.dump({"machine": machine, "rows": rows}, file, indent=1)
    print()
    verdicts(bench.rows)


if __name__ == "__main__":
    main()
