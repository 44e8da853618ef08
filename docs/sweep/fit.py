"""Fits constants of the cost model to sweeps.

    python3 docs/sweep/fit.py [--seed N] [--steps N] CSV[*WEIGHT]...

It needs NumPy. The estimate below is that of host/src/select/cost.rs and cost/work.rs, over all
rows at once. A random search changes one to three of the constants in FREE at a time, rounds
them as the library has them, and keeps what lowers

    weighted mean of loss + 4 * loss² on the products  +  6 * mean miss of the known choices

where the loss of a product is ln(time of the kernel of least estimate / least time), smoothed
over kernels whose estimates differ by 3 %, and a known choice is missed by the ln of its
estimate over the least one, and 0.003. With --halves, products of odd index are held out. The
program prints the mean regret of each file (of both halves of it) before and after, and the
constants. Whoever takes them over judges them on shapes drawn afterwards.
"""

import argparse
import csv
import re
from pathlib import Path

import numpy as np

SMS = 132
L2_BYTES = 60 << 20
SHARED = 232448
ENTRY = Path(__file__).parents[2] / "gpu-kernels/src/entry.rs"

# The constants of cost/work.rs as they are. STREAM_K_MARGIN is a fraction.
NOW = {
    "ASKING.0": 4, "ASKING.1": 42, "MADE_ONCE": 0.77, "LOADED_PER_CYCLE": 49, "LATENCY.0": 1415,
    "LATENCY.1": 3826, "LOADED_PER_CYCLE_OF_POWER": 480, "ALONE": 14, "COUPLED": 135,
    "FILL": 1894, "STAGED_IN_PARTS": 470, "STORED_PER_CYCLE": 23, "BETWEEN_TILES": 320,
    "ORDER_BARRIER": 530, "EXCHANGE_LATENCY": 3071, "FIX_UP_LATENCY": 6983,
    "CLUSTER_LATENCY": 917, "ADDED_PER_CYCLE": 11, "CROSSING": 27750, "REDUCE_LATENCY": 20950,
    "REDUCED_PER_CYCLE": 37, "FROM_DRAM.0": 14, "FROM_DRAM.1": 21, "READ_AGAIN": 0.26,
    "STREAM_K_MARGIN": 0.02,
}  # fmt: skip

# Within 5 % of the fastest on an H200, f16 nn: the test `picks_what_was_measured_to_be_fast`.
KNOWN = {
    (2048, 2048, 2048): "128x256x64_stages4", (2048, 2048, 16384): "128x256x64_stages4",
    (4096, 4096, 4096): "128x256x64", (6144, 6144, 6144): "256x192x64",
    (12288, 12288, 12288): "128x256x64", (8192, 8192, 8192): "128x192x64_pingpong",
    (8192, 8192, 1024): "128x192x64_pingpong", (16384, 16384, 16384): "256x192x64",
    (1024, 1024, 1024): "128x64x64", (256, 4096, 4096): "128x64x64",
    (1000, 1000, 1000): "128x64x64_cluster1x2", (3000, 3000, 3000): "192x128x64_cluster1x2",
    (4104, 4104, 4104): "256x192x64_cluster1x2", (8200, 7944, 4104): "256x192x64_cluster1x2",
    (128, 8192, 8192): "64x128x64", (512, 512, 512): "64x64x128",
    (64, 4096, 4096): "64x64x64_split2", (16, 1024, 8192): "64x64x64_split4",
}  # fmt: skip


def tiles(layout):
    """The kernels of a layout in the list of kernels, as (M, N, K, stages, schedule, its arguments)."""
    text = ENTRY.read_text()
    lists = ["hopper {", "hopper_bk {" if layout[1] == "t" else "hopper_bn {"]
    rows = "".join(text.split(name)[1].split("}")[0] for name in lists)
    pattern = r'(\d+) (\d+) (\d+), (\d+), (\w+)(<[\d, ]+>)?, \w+, "(\w*)";'
    found = {}
    for m, n, k, stages, schedule, arguments, suffix in re.findall(pattern, rows):
        numbers = [int(number) for number in re.findall(r"\d+", arguments)]
        found[f"{m}x{n}x{k}{suffix}"] = (int(m), int(n), int(k), int(stages), schedule, numbers)
    return found


def ceil(a, b):
    return -(-a // b)


def features(tile, m, n, k, layout, split_k=False):
    """What the estimate needs to know of one kernel on one product; of a stream-K kernel, under
    one of its two schedules."""
    height, width, depth, stages, schedule, arguments = tile
    a_along_k, b_along_k = layout[0] == "n", layout[1] == "t"
    # CTAs along N (across) share A, CTAs along M (down) share B.
    down, across = arguments if schedule == "Clusters" else (1, 1)
    parts = arguments[0] if schedule == "SplitK" else 1
    ping_pong = schedule == "PingPong"
    consumers = 3 if height == 192 else 1 if height == 64 and not ping_pong else 2
    m64 = height // 64 // (1 if ping_pong else consumers)
    tiles_m, tiles_n = ceil(m, height * down), ceil(n, width * across)
    ctas = across * down * parts
    rows = min(height, m) if a_along_k and across == 1 else height / across
    columns = width if b_along_k else ceil(width, 64) * 64
    columns = min(width, n) if b_along_k and down == 1 else columns / down
    stage = (height + (width if b_along_k else ceil(width, 64) * 64)) * depth * 2
    row = ceil(width, 64)
    fit = (SHARED - stages * stage - 2000) // (consumers * 8192)
    staged = row * m64 if row * m64 <= fit else row if row <= fit else 2
    at_once = SMS // ctas if ctas < 4 else SMS * 10 // 11 // ctas
    tiles_all = tiles_m * tiles_n
    k_blocks = ceil(ceil(k, depth), parts)
    a, b, c = 2 * m * k, 2 * k * n, 2 * m * n
    again = (tiles_n - 1) * a * (a > L2_BYTES / 2) + (tiles_m - 1) * b * (b > L2_BYTES / 2)
    counts = []
    left = tiles_all % at_once
    if split_k and tiles_all <= at_once:
        # CTAs, and waves of them.
        most = min(k_blocks, max(at_once // tiles_all, 2))
        each = [count * tiles_all for count in range(2, most + 1)]
        counts = [(count, ceil(count, at_once)) for count in each]
    elif schedule == "StreamK" and left and not split_k:
        each = [count * left for count in range(2, min(k_blocks, at_once // left) + 1)]
        for count in each + [min(at_once, left * k_blocks)]:
            peers = count // left - 1 if count % left == 0 else ceil(count, left)
            counts.append((count, peers))
    return {
        "rows": rows, "columns": columns,
        "mid_a": (k if a_along_k else m) % 64 != 0, "mid_b": (k if b_along_k else n) % 64 != 0,
        "near_a": ctas == 1 and tiles_n > 1, "near_b": ctas == 1 and tiles_m > 1,
        "bytes": min(depth, k) * 2, "arithmetic": 2 * height * width * depth / 4096,
        "alone": consumers == 1, "coupled": across * down > 1, "clusters": ctas > 1,
        "part": height * width / parts, "parts": parts,
        "in_parts": max(staged, 2) * 8192 * consumers < consumers * 64 * width * 2,
        "ping_pong": ping_pong, "stream_k": schedule == "StreamK", "split_k": split_k, "tiles": tiles_all,
        "at_once": at_once, "k_blocks": k_blocks, "accumulators": 4 * height * width,
        "pipeline": stages * stage, "stages": stages, "counts": counts,
        "ctas": ctas, "bytes_of_tile": (a + b + c) / tiles_all, "again": again / tiles_all,
        "possible": schedule != "StreamK" or (bool(counts) if split_k else left != 0),
    }  # fmt: skip


def table(rows):
    """Columns of features; the counts of stream-K CTAs, padded."""
    names = [name for name in rows[0] if name != "counts"]
    columns = {name: np.array([row[name] for row in rows], float) for name in names}
    most = max(len(row["counts"]) for row in rows)
    padded = np.full((2, len(rows), max(most, 1)), np.nan)
    for at, row in enumerate(rows):
        for index, pair in enumerate(row["counts"]):
            padded[:, at, index] = pair
    columns["count"], columns["peers"] = padded
    return columns


def estimate(c, t):
    """Cycles, as cost.rs has them, with the margins of stream-K."""
    asked = t["rows"] * np.where(t["mid_a"], c["ASKING.1"], c["ASKING.0"])
    asked = asked + t["columns"] * np.where(t["mid_b"], c["ASKING.1"], c["ASKING.0"])
    once = lambda near: np.where(near, c["MADE_ONCE"], 1)
    loads = (t["rows"] * once(t["near_a"]) + t["columns"] * once(t["near_b"])) * t["bytes"]
    arrived = np.maximum(asked * t["bytes"] / 1280, loads / c["LOADED_PER_CYCLE"])
    loaded = t["k_blocks"] * (t["rows"] + t["columns"]) * t["bytes"] * t["ctas"]
    latency = c["LATENCY.0"] + c["LATENCY.1"] * np.minimum(1, t["bytes_of_tile"] / loaded)
    in_flight = (latency + asked * t["bytes"] / 1280) / (t["stages"] - 1)
    arrived = np.maximum(arrived, in_flight)
    k_block = np.maximum(t["arithmetic"], arrived) + loads / c["LOADED_PER_CYCLE_OF_POWER"]
    k_block = k_block + t["alone"] * c["ALONE"] + t["coupled"] * c["COUPLED"]
    sent = (t["parts"] - 1) * 4 * t["part"] / c["STORED_PER_CYCLE"]
    store = c["BETWEEN_TILES"] + t["part"] * 2 / c["STORED_PER_CYCLE"]
    store = store + t["in_parts"] * c["STAGED_IN_PARTS"]
    store = store + np.where(t["parts"] > 1, c["EXCHANGE_LATENCY"] + sent, 0)
    from_dram = lambda bytes, ctas: bytes / np.minimum(c["FROM_DRAM.0"] * SMS, c["FROM_DRAM.1"] * ctas)

    def wave_of(tiles):
        dram = from_dram(tiles * t["bytes_of_tile"], np.maximum(tiles, 1) * t["ctas"])
        multiply = t["k_blocks"] * k_block
        requests = t["k_blocks"] * asked * t["bytes"] / 1280 + t["part"] * 2 / c["STORED_PER_CYCLE"]
        alternating = np.maximum(np.maximum(multiply, store), requests) + c["ORDER_BARRIER"]
        shared = np.maximum(multiply, dram) + store
        return np.where(t["ping_pong"], np.maximum(alternating, dram), shared)

    waves, left = np.divmod(t["tiles"], t["at_once"])
    wave, last_wave = wave_of(t["at_once"]), wave_of(left)
    # The producer loads the first stages of the next tile while this one is stored.
    ahead = np.minimum(t["k_blocks"], t["stages"]) * np.maximum(0, k_block - t["arithmetic"])
    ahead = np.where(t["ping_pong"], 0, np.minimum(ahead, store) / 2)
    ahead = ahead * np.maximum(0, waves - 1 + (left > 0))
    whole = waves * wave + (left > 0) * last_wave + t["ping_pong"] * store - ahead
    # Whole tiles to groups of CTAs where the counts allow, else all k-blocks at once.
    cut = np.where(t["count"] % left[:, None] == 0, left[:, None], 1)
    share = np.ceil((left * t["k_blocks"])[:, None] / cut / (t["count"] / cut)) * k_block[:, None]
    again = (t["count"] % left[:, None] > 0) * c["READ_AGAIN"] * t["again"][:, None]
    dram = from_dram(left[:, None] * (t["bytes_of_tile"][:, None] + again), t["count"])
    share = np.maximum(share, dram)
    fix_up = (t["accumulators"] / c["STORED_PER_CYCLE"] + c["FIX_UP_LATENCY"] + store)[:, None]
    fix_up = fix_up + c["CROSSING"] * (t["count"] % left[:, None] > 0)
    fix_up = fix_up + t["peers"] * t["accumulators"][:, None] / c["ADDED_PER_CYCLE"]
    last = np.where(t["peers"] == 0, last_wave[:, None], share + fix_up)
    last = np.nan_to_num(np.fmin.reduce(last, axis=1), nan=np.inf)
    # Under split-K, all tiles in parts, and `peers` waves of CTAs.
    each = np.ceil((t["k_blocks"] / (t["count"].T / t["tiles"])).T)
    dram = from_dram((t["tiles"] * t["bytes_of_tile"])[:, None], np.minimum(t["count"].T, t["at_once"]).T)
    parts = np.maximum(t["peers"] * each * k_block[:, None], dram)
    parts = parts + t["peers"] * t["accumulators"][:, None] / c["STORED_PER_CYCLE"] + c["REDUCE_LATENCY"]
    parts = parts + t["count"] * t["accumulators"][:, None] / (c["REDUCED_PER_CYCLE"] * SMS)
    parts = np.nan_to_num(np.fmin.reduce(parts, axis=1), nan=np.inf)
    shared = np.where(t["split_k"], parts, waves * wave + last) / (1 - c["STREAM_K_MARGIN"])
    fill = c["FILL"] * np.maximum(0, 196608 - t["pipeline"]) / 196608
    cycles = np.where(t["stream_k"], shared, whole) + fill + t["clusters"] * c["CLUSTER_LATENCY"]
    return np.where(t["possible"], cycles, np.inf)


KERNELS = {layout: tiles(layout) for layout in ("nn", "nt", "tn", "tt")}


def read(paths):
    """For each product that TMA can read: features of its kernels, their times, cuBLASLt's."""
    products = {}
    for path in paths:
        for row in csv.DictReader(open(path)):
            m, n, k = (int(row[name]) for name in "mnk")
            layout = row["layout"]
            pitches = (k if layout[0] == "n" else m, n if layout[1] == "n" else k, n)
            if any(pitch % 8 for pitch in pitches):
                continue
            product = products.setdefault((m, n, k, layout, row["dtype"]), ([], [], []))
            name, kernels = row["kernel"].split("_", 4)[-1], KERNELS[layout]
            if row["implementation"].startswith("cuBLASLt"):
                product[2].append(float(row["cold_ms"]))
            elif name in kernels:
                split_k = row["schedule"] == "split-k"
                product[0].append(features(kernels[name], m, n, k, layout, split_k))
                product[1].append(float(row["cold_ms"]))
    return [product for product in products.values() if product[2] and len(product[0]) > 5]


# What is fitted. The other constants decide between kernels whose times are close on large
# products, of which a cold sweep says little.
FREE = [
    "LATENCY.0", "LATENCY.1", "FROM_DRAM.0", "FROM_DRAM.1", "READ_AGAIN", "FIX_UP_LATENCY", "CROSSING",
    "ADDED_PER_CYCLE", "REDUCE_LATENCY", "REDUCED_PER_CYCLE", "EXCHANGE_LATENCY", "COUPLED", "FILL", "CLUSTER_LATENCY",
    "STREAM_K_MARGIN", "MADE_ONCE", "LOADED_PER_CYCLE", "ASKING.0", "ALONE",
]  # fmt: skip
FRACTIONS = ("MADE_ONCE", "READ_AGAIN", "STREAM_K_MARGIN")


def rounded(c):
    return {k: round(v, 2) if k in FRACTIONS else max(1, round(v)) for k, v in c.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("csv", nargs="+", metavar="CSV[*WEIGHT]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--halves", action="store_true")
    arguments = parser.parse_args()
    products, parts, weights = [], {}, []
    for text in arguments.csv:
        path, _, weight = text.partition("*")
        of_file = read([path])
        at = range(len(products), len(products) + len(of_file))
        parts[Path(path).stem] = at[::2] if arguments.halves else at
        if arguments.halves:
            parts[Path(path).stem + ", held out"] = at[1::2]
        fitted = lambda index: not arguments.halves or index % 2 == 0
        weights += [float(weight or 1) * fitted(index) for index in range(len(of_file))]
        products += of_file
    rows = table([row for product in products for row in product[0]])
    times = np.array([time for product in products for time in product[1]])
    ends = np.cumsum([len(product[0]) for product in products])
    groups = np.split(np.arange(len(times)), ends[:-1])
    losses = [np.log(times[group] / times[group].min()) for group in groups]
    kernels = KERNELS["nn"]
    known = table([features(tile, *shape, "nn") for shape in KNOWN for tile in kernels.values()])
    right = [list(kernels).index(name) for name in KNOWN.values()]

    def misses(c):
        logs = np.log(estimate(c, known)).reshape(len(KNOWN), len(kernels))
        return logs[np.arange(len(KNOWN)), right] - logs.min(axis=1)

    def objective(c):
        c = rounded(c)
        logs, total = np.log(estimate(c, rows)), 0.0
        for group, loss, weight in zip(groups, losses, weights):
            near = np.exp((logs[group].min() - logs[group]) / 0.03)
            mean = (near * loss).sum() / near.sum()
            total += weight * (mean + 4 * mean**2)
        missed = misses(c)
        return total / sum(weights) + 6 * (missed + 0.003 * (missed > 0)).mean()

    def show(c):
        cycles = estimate(c, rows)
        for name, indices in parts.items():
            loss = [losses[at][cycles[groups[at]].argmin()] for at in indices]
            mean, most = np.exp(np.mean(loss)), np.exp(max(loss))
            print(f"{name}: {len(loss)} products, regret {mean:.4f}, most {most:.2f}")
        print(f"known choices missed: {(misses(c) > 0).sum()}")

    show(NOW)
    random = np.random.default_rng(arguments.seed)
    best, least = dict(NOW), objective(NOW)
    for step in range(arguments.steps):
        tried = dict(best)
        for name in random.choice(FREE, random.integers(1, 4), replace=False):
            tried[name] *= np.exp((0.3 if 2 * step < arguments.steps else 0.1) * random.normal())
        value = objective(tried)
        if value < least:
            best, least = tried, value
    show(rounded(best))
    for name, value in rounded(best).items():
        print(f"{name:28} {value:.4g}")


if __name__ == "__main__":
    main()
