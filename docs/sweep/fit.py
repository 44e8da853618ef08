"""Fits constants of the cost model to sweeps.

    python3 docs/sweep/fit.py [--steps N] [--prior WEIGHT] [--write] CSV[:sustained][*WEIGHT]...

It needs NumPy and JAX. The estimate is that of cost.py, which is the library's. Gradient descent (Adam)
on the logarithms of the constants lowers

    weighted mean of loss + 4 * loss² + 0.15 * error on the products
        +  6 * mean miss of the known choices  +  WEIGHT * mean (change of the logarithms)²

where the loss of a product is ln(time of the kernel of least estimate / least time), smoothed
over kernels whose estimates differ by 3 %, and by more at first; the error is the mean of
|ln(estimated time / time)| over its kernels that take less than 1.6 times the least; and a known
choice is missed by the ln of its estimate over the least other one, and 0.003, unless they tie. The
estimate that kernels are compared by is the geometric mean of those with operands from DRAM and in
L2, with the times of the launch; that of a time is the first. Of a file with `:sustained`, these
times count, and not the error.
With --halves, products of odd index are held out. The program prints the regret of each file (of both
halves of it) before and after, and the constants, as the library has them: rounded; --write puts
them in place of the library's. Whoever takes them over judges them on shapes drawn afterwards.
"""

import argparse
import csv
from pathlib import Path

import cost
import jax
import jax.numpy as jnp
import numpy as np

# Within 5 % of the fastest on an H200, f16 nn: the test `picks_what_was_measured_to_be_fast`.
KNOWN = {
    (2048, 2048, 2048): "128x256x64_stages4", (2048, 2048, 16384): "128x256x64_stages4",
    (4096, 4096, 4096): "128x256x64", (6144, 6144, 6144): "256x192x64",
    (12288, 12288, 12288): "128x256x64", (8192, 8192, 8192): "128x192x64_pingpong",
    (8192, 8192, 1024): "128x192x64_pingpong", (16384, 16384, 16384): "256x192x64",
    (1024, 1024, 1024): "128x64x64", (256, 4096, 4096): "128x64x64",
    (1000, 1000, 1000): "64x128x64_cluster2x1", (3000, 3000, 3000): "192x192x64_cluster1x2",
    (4104, 4104, 4104): "256x192x64_cluster1x2", (8200, 7944, 4104): "256x192x64_cluster1x2",
    (128, 8192, 8192): "128x64x64", (512, 512, 512): "64x64x128",
    (8192, 512, 512): "128x128x64",
    (64, 4096, 4096): "64x64x64_split2", (16, 1024, 8192): "64x64x64_split4",
}  # fmt: skip

# With GELU, of the kernels that have it: the test `an_activation_is_hidden_by_ping_pong`.
KNOWN_WITH_GELU = {
    (4096, 14336, 4096): "128x128x64_pingpong", (8192, 8192, 1024): "128x128x64_pingpong",
    (8192, 4096, 14336): "128x128x64_pingpong",
}  # fmt: skip


# In these files, launches have as many clusters as run at once. Before, those of clusters of four and
# eight had up to three more, which began when others had ended, and took up to twice as long.
FITTING = [
    "h200-2026-11-28-waves.csv", "h200-2026-11-29.csv", "h200-2026-11-29-pairs.csv",
    "h200-2026-11-29-lost.csv", "h200-2026-11-29-deep-wave.csv", "h200-2026-11-29-drawn.csv",
    "h200-2026-11-29-later-pairs.csv", "h200-2026-11-30.csv", "h200-2026-11-30-pairs.csv",
]  # fmt: skip


def waited(path, of):
    """Whether clusters of a launch with these features waited for others, in another file."""
    more = of["large"] and of["tiles"] > of["at_once"] and not of["split_k"]
    return more and Path(path).name not in FITTING


def read(path, column):
    """For each product that TMA can read: features of its kernels, their times, cuBLASLt's."""
    products = {}
    for row in csv.DictReader(open(path)):
        m, n, k = (int(row[name]) for name in "mnk")
        layout = row["layout"]
        pitches = (k if layout[0] == "n" else m, n if layout[1] == "n" else k, n)
        if any(pitch % 8 for pitch in pitches) or not row[column]:
            continue
        product = products.setdefault((m, n, k, layout, row["dtype"]), ([], [], []))
        name, kernels = row["kernel"].split("_", 4)[-1], cost.KERNELS[layout]
        if row["implementation"].startswith("cuBLASLt"):
            product[2].append(float(row[column]))
        elif name in kernels:
            split_k = row["schedule"] == "split-k"
            classes = int(row.get("line_classes") or 1)
            l2_bytes = next(size for gpu, size in cost.L2_BYTES.items() if row["device"].startswith(gpu))
            of = cost.features(kernels[name], m, n, k, layout, split_k, 0, classes, l2_bytes)
            if waited(path, of):
                continue
            product[0].append(of)
            product[1].append(float(row[column]))
    return [product for product in products.values() if product[2] and len(product[0]) > 1]


# What is fitted.
FITTED = [
    "REQUEST.0", "REQUEST.1", "REQUEST.2", "SERVE.0", "SERVE.1", "SERVE.2", "MEETING.0",
    "REACHES_L2.0", "REACHES_L2.1", "APART_MARGIN", "CLASSED", "LATER_WAVES",
    "SHARED.0", "SHARED.1", "RECEIVED_PER_CYCLE", "LATENCY.0", "LATENCY.1", "FROM_DRAM.1",
    "COUPLED.0", "COUPLED.1", "TWO_M64", "UNHIDDEN", "CLUSTER_LATENCY.0", "CLUSTER_LATENCY.1",
    "STORED_PER_CYCLE", "BETWEEN_TILES", "ORDER_BARRIER", "EXCHANGE_LATENCY.0",
    "EXCHANGE_LATENCY.1", "MID_SECTOR_STORE", "HIDDEN_STORE", "STAGED_IN_PARTS", "STAGED_IN_TURN",
    "LOADED_PER_CYCLE_OF_POWER", "STAGE", "LAUNCH.0", "FIX_UP_LATENCY", "CROSSING",
    "ADDED_PER_CYCLE", "REDUCE_LATENCY.0", "REDUCE_LATENCY.1", "EACH_PART",
    "REDUCED_PER_CYCLE", "STREAM_K_MARGIN", "SPLIT_K_MARGIN",
]  # fmt: skip


def rounded(c):
    """The constants that the library can have."""
    parts = {name: cost.PARTS.get(name.partition(".")[0], 1) for name in c}
    return {name: round(value * parts[name]) / parts[name] for name, value in c.items()}


class Products:
    """Products with the times of their kernels, and the known choices among those kernels."""

    def __init__(self, products, weights, are_cold):
        self.weights, self.are_cold = np.array(weights), np.array(are_cold, float)
        self.rows = cost.table([of for product in products for of in product[0]])
        self.times = np.array([time for product in products for time in product[1]])
        counts = [len(product[1]) for product in products]
        self.count, self.product = len(counts), np.repeat(np.arange(len(counts)), counts)
        self.losses = np.log(self.times / self.least(self.times))
        kernels = {name: tile for name, tile in cost.KERNELS["nn"].items() if not tile[6]}
        fused = {name: tile for name, tile in kernels.items() if tile[7]}
        rows, self.known_choices, at = [], [], 0
        for known, kernels, epilogue in ((KNOWN, kernels, 0), (KNOWN_WITH_GELU, fused, cost.GELU)):
            for shape, name in known.items():
                rows += [cost.features(t, *shape, "nn", False, epilogue) for t in kernels.values()]
                self.known_choices.append((at, len(rows), at + list(kernels).index(name)))
                at = len(rows)
        self.known = cost.table(rows)

    def least(self, values):
        return jax.ops.segment_min(values, self.product, self.count)[self.product]

    def mean(self, values, weights):
        total = lambda of: jax.ops.segment_sum(of, self.product, self.count)
        return total(values * weights) / total(weights)

    def misses(self, c):
        """How far the known choices are from being first, but for ties, by 0.3 percent."""
        logs = jnp.log(cost.compared(c, self.known))

        def miss(begin, end, at):
            others, own = logs[begin:end], logs[at]
            least = jnp.where(jnp.abs(others - own) > 1e-9, others, jnp.inf).min()
            return jnp.maximum(0, own - least + 0.003)

        return jnp.array([miss(*known) for known in self.known_choices])

    def regrets(self, c):
        logs = cost.compared(c, self.rows)
        return np.asarray(self.mean(self.losses, 1.0 * (logs == self.least(logs))))

    def objective(self, c, smoothing):
        (cycles, _), logs = cost.estimate(c, self.rows), jnp.log(cost.compared(c, self.rows))
        regret = self.mean(self.losses, jnp.exp((self.least(logs) - logs) / smoothing))
        is_possible = cycles < cost.IMPOSSIBLE
        seconds = (jnp.where(is_possible, cycles, 1) + c["LAUNCH.0"]) / (cost.MHZ * 1e3)
        error = jnp.abs(jnp.log(seconds / self.times))
        error = self.mean(error, 1.0 * (self.losses < 0.5) * is_possible)
        each = regret + 4 * regret**2 + 0.15 * error * self.are_cold
        return (each * self.weights).sum() / self.weights.sum() + 6 * self.misses(c).mean()


def descend(products, constants, steps, prior):
    """The constants of the least objective on the way."""
    start = jnp.log(jnp.array([max(constants[name], 1e-4) for name in FITTED]))
    of = lambda logs: constants | dict(zip(FITTED, jnp.exp(logs)))

    @jax.jit
    @jax.value_and_grad
    def objective(logs, smoothing):
        return products.objective(of(logs), smoothing) + prior * ((logs - start) ** 2).mean()

    logs, mean, square, best = start, 0, 0, (jnp.inf, start)
    for step in range(1, steps + 1):
        # Wider at first.
        smoothing = 0.03 * (1 + 2 * max(0, 1 - 2 * step / steps))
        value, gradient = objective(logs, smoothing)
        if 2 * step >= steps:
            best = min(best, (value, logs), key=lambda pair: pair[0])
        mean, square = 0.9 * mean + 0.1 * gradient, 0.99 * square + 0.01 * gradient**2
        rate = 0.015 if step < 0.6 * steps else 0.005
        root = jnp.sqrt(square / (1 - 0.99**step)) + 1e-9
        logs = logs - rate * mean / (1 - 0.9**step) / root
    return rounded({name: float(value) for name, value in of(best[1]).items()})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("csv", nargs="+", metavar="CSV[:sustained][*WEIGHT]")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--prior", type=float, default=0.03, help="what a change of the constants costs")
    parser.add_argument("--halves", action="store_true")
    parser.add_argument("--write", action="store_true", help="write the constants to the library")
    arguments = parser.parse_args()
    products, parts, weights, are_cold = [], {}, [], []
    for text in arguments.csv:
        text, _, weight = text.partition("*")
        path, _, regime = text.partition(":")
        of_file = read(path, f"{regime or 'cold'}_ms")
        are_cold += [not regime] * len(of_file)
        name = " ".join([Path(path).stem, regime]).strip()
        at = range(len(products), len(products) + len(of_file))
        parts[name] = at[::2] if arguments.halves else at
        if arguments.halves:
            parts[name + ", held out"] = at[1::2]
        fitted = lambda index: not arguments.halves or index % 2 == 0
        weights += [float(weight or 1) * fitted(index) for index in range(len(of_file))]
        products += of_file
    products = Products(products, weights, are_cold)

    def show(c):
        regrets = products.regrets(c)
        for name, indices in parts.items():
            loss = regrets[list(indices)]
            mean, most = np.exp(loss.mean()), np.exp(loss.max())
            print(f"{name}: {len(loss)} products, regret {mean:.4f}, most {most:.2f}")
        print(f"known choices missed: {(products.misses(c) > 0).sum()}", flush=True)

    now = cost.LIBRARY_HAS
    show(now)
    best = descend(products, now, arguments.steps, arguments.prior)
    show(best)
    for name in FITTED:
        print(f"{name:28} {best[name]:.4g}")
    if arguments.write:
        cost.write({name: best[name] for name in FITTED})


if __name__ == "__main__":
    main()
