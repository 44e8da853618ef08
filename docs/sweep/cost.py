"""The cost model of the library in NumPy and JAX, over any number of kernels and products at once.

It is that of host/src/select/cost.rs and the files of cost/, with the constants that these files have,
and the kernels are those of gpu-kernels/src/entry/list.rs. `fit.py` fits the constants, and `bound.py`
asks what the estimate misses.
"""

import re
from math import gcd, isqrt
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

jax.config.update("jax_enable_x64", True)

SMS = 132
# By the beginning of a device's name.
L2_BYTES = {"NVIDIA H200": 60 << 20, "NVIDIA H100": 50 << 20}
SHARED_BYTES = 232448
# Of the SMs of an H200 in a cold launch.
MHZ = 1830
LIBRARY = Path(__file__).parents[2]
ENTRY = LIBRARY / "gpu-kernels/src/entry/list.rs"
COST = [
    LIBRARY / "host/src/select" / f"{name}.rs"
    for name in ("cost", "cost/k_block", "cost/work", "cost/bytes", "cost/along_k", "cost/epilogue")
]

# What the library has whole numbers of, by constant; the others have the number itself.
PARTS = {
    "REQUEST": 10, "SERVE": 10, "SERVE_WIDE": 10, "MEETING": 10, "SHARED": 100,
    "LATER_WAVES": 100, "APART_MARGIN": 1000, "STREAM_K_MARGIN": 100,
    "SPLIT_K_MARGIN": 100, "CROSSING_MARGIN": 100, "MID_SECTOR_STORE": 100, "HIDDEN_STORE": 100,
    "UNHIDDEN": 100, "SHARED_LOADS_MARGIN": 1000, "REACHES_L2": 100,
    "DIVIDED_COLUMNS": 1000,
}  # fmt: skip
CONSTANT = re.compile(r"^(?:pub\(super\) )?const (\w+): (?:u64|Rate|\(u64, u64\)) =([^;]*);", re.MULTILINE)
NUMBER = re.compile(r"\b\d[\d_]*")


def constants():
    """The constants of cost.rs and of the files of cost/, the fractions as numbers. Of a constant of
    several numbers, NAME.1 is the second."""
    found = {}
    for path in COST:
        for name, value in CONSTANT.findall(path.read_text()):
            numbers = [int(text) / PARTS.get(name, 1) for text in NUMBER.findall(value)]
            names = [name] if len(numbers) == 1 else [f"{name}.{at}" for at in range(len(numbers))]
            found |= zip(names, numbers)
    return found


def write(fitted):
    """Writes constants to the library. Comments that speak of their values are left to its author."""
    fitted = fitted | {f"SERVE_WIDE.{at}": 0.8 * fitted[f"SERVE.{at}"] for at in range(3)}

    def replaced(constant):
        name, value = constant.groups()
        several = len(NUMBER.findall(value)) > 1
        count = iter(range(9))

        def number(old):
            key = f"{name}.{next(count)}" if several else name
            return str(round(fitted[key] * PARTS.get(name, 1))) if key in fitted else old.group()

        return constant.group().replace(value, NUMBER.sub(number, value))

    for path in COST:
        path.write_text(CONSTANT.sub(replaced, path.read_text()))


LIBRARY_HAS = constants()


# Above it, arithmetic takes more than twice as long as DRAM.
FLOP_PER_BYTE = LIBRARY_HAS["FLOP_PER_BYTE"]
SHARED_LOADS_MARGIN = LIBRARY_HAS["SHARED_LOADS_MARGIN"]
GELU = LIBRARY_HAS["GELU"]
DIVIDED_COLUMNS = LIBRARY_HAS["DIVIDED_COLUMNS"]


def turned(layout):
    """The layout of Cᵀ = Bᵀ·Aᵀ."""
    return ("n" if layout[1] == "t" else "t") + ("t" if layout[0] == "n" else "n")


def tiles(layout):
    """The kernels of a layout in the list of kernels, as (M, N, K, stages, schedule, its arguments,
    whether they write C along M, of the turned product, whether they have epilogues, the columns of a
    consumer)."""
    text = ENTRY.read_text()
    pattern = r'(\d+) (\d+) (\d+)(?: by (\d+))?, (\d+), (\w+)(<[\d, ]+>)?, (\w+), "(\w*)"([^;]*);'
    lists = {"hopper {": "", "hopper_bk {" if layout[1] == "t" else "hopper_bn {": ""}
    lists["hopper_cm {" if turned(layout)[1] == "t" else "hopper_cm_bn {"] = "cm_"
    found = {}
    for name, prefix in lists.items():
        rows = text.split(name)[1].split("}")[0]
        for m, n, k, columns, stages, schedule, arguments, fused, suffix, shapes in re.findall(pattern, rows):
            flags = (prefix != "", fused == "true")
            for shape in re.findall(r"\dx\d", shapes) or [""]:
                numbers = [int(number) for number in re.findall(r"\d+", arguments + shape)]
                tile = (int(m), int(n), int(k), int(stages), schedule, numbers, *flags, int(columns or n))
                found[f"{prefix}{m}x{n}x{k}{suffix}{shape}"] = tile
    return found


def ceil(a, b):
    return -(-a // b)


def in_mid_line(pitch):
    """The share of an operand's lines that begin in the middle of a cache line."""
    return 1 - gcd(2 * pitch, 128) / 128


def in_mid_sector(pitch):
    """The share that begins in the middle of a sector of 32 bytes."""
    return 1 - gcd(2 * pitch, 32) / 32


def features(tile, m, n, k, layout, split_k=False, epilogue=0, classes=1, l2_bytes=60 << 20):
    """What the estimate needs to know of one kernel on one product; of a stream-K kernel, under
    one of its two schedules. An epilogue takes so many cycles for 1000 sums. With classes, lines of A
    (of B where C is along M) are in so many."""
    height, width, depth, stages, schedule, arguments, is_turned, _, consumer_n = tile
    if is_turned:
        m, n, layout = n, m, turned(layout)
    a_along_k, b_along_k = layout[0] == "n", layout[1] == "t"
    # CTAs along N (across) share A, CTAs along M (down) share B.
    leaves_sums = schedule == "SplitKParallel"
    down, across = arguments if schedule == "Clusters" or leaves_sums else (1, 1)
    parts = arguments[0] if schedule == "SplitK" else 1
    ping_pong = schedule == "PingPong"
    by_rows = 3 if height == 192 else 1 if height == 64 and not ping_pong else 2
    divides_columns = consumer_n < width
    consumers = width // consumer_n if divides_columns else by_rows
    m64 = height * width // (64 * consumer_n * (1 if ping_pong else consumers))
    # Lines in classes begin on cache lines, as their pitch allows; K begins before its first element.
    of_a, of_b = (1, classes) if is_turned else (classes, 1)
    tiles_m = of_a * ceil(m // of_a, height * down)
    tiles_n = of_b * ceil(n // of_b, width * across)
    k_loaded = k + max(of_class * k % 64 for of_class in range(classes))
    ctas = across * down * parts
    rows = min(height, m) / across if a_along_k else height / across
    columns = width if b_along_k else ceil(width, 64) * 64
    columns = min(width, n) / down if b_along_k else columns / down
    stage = (height + (width if b_along_k else ceil(width, 64) * 64)) * depth * 2
    row = ceil(consumer_n, 64)
    fit = (SHARED_BYTES - stages * stage - 2000) // (consumers * 8192)
    at_once = SMS // ctas if ctas < 4 else SMS * 10 // 11 // ctas
    tiles_all = tiles_m * tiles_n
    k_blocks = ceil(ceil(k_loaded, depth), parts)
    # Along N, tiles begin where the last one ends.
    pitch_a, pitch_b = k if a_along_k else m, k if b_along_k else gcd(n, width)
    pitch_a, pitch_b = of_a * pitch_a, of_b * pitch_b
    a, b, c = 2 * m * k, 2 * k * n, 2 * m * n
    counts = []
    left = tiles_all % at_once
    readers_a = min(tiles_n, left // max(1, min(tiles_m, isqrt(left))))
    readers_b = min(tiles_m, left // max(1, min(tiles_n, isqrt(left))))
    apart = max(0, 1 - l2_bytes / 2 / (a + b))
    times = lambda readers: max(1, readers * apart ** (readers - 1)) if readers else 1
    again = a * (times(readers_a) - 1) + b * (times(readers_b) - 1)
    if split_k and (tiles_all <= at_once or leaves_sums):
        # Clusters, and waves of them.
        most = min(k_blocks, max(at_once // tiles_all, 2))
        each = [count * tiles_all for count in range(1 if leaves_sums else 2, most + 1)]
        counts = [(count, ceil(count, at_once)) for count in each]
        is_line = min(tiles_m, tiles_n) == 1
        if leaves_sums and is_line and left and tiles_all < 4 * at_once and k_blocks > 1:
            counts.append((at_once, 1))
    elif schedule == "StreamK" and left and not split_k:
        each = [count * left for count in range(2, min(k_blocks, at_once // left) + 1)]
        for count in each + [min(at_once, left * k_blocks)]:
            peers = count // left - 1 if count % left == 0 else ceil(count, left)
            counts.append((count, peers))
    return {
        "rows": rows, "columns": columns,
        "short_a": not a_along_k and m <= 128, "short_b": not b_along_k and n <= 128,
        "sector_c": in_mid_sector(m if is_turned else n),
        "between_sectors": 0 if is_turned else in_mid_sector(width),
        "mid_a": in_mid_line(pitch_a), "mid_b": in_mid_line(pitch_b),
        "sector_a": in_mid_sector(pitch_a), "sector_b": in_mid_sector(pitch_b),
        "readers_a": min(tiles_n, at_once // min(tiles_m, isqrt(at_once))),
        "readers_b": min(tiles_m, at_once // min(tiles_n, isqrt(at_once))),
        "bytes": min(depth, k) * 2, "arithmetic": 2 * height * width * depth / 4096 * (1 + DIVIDED_COLUMNS * divides_columns),
        "shared_read": (64 + consumer_n) * height * width / (64 * consumer_n) * depth / 64,
        "shared_written": (height + (width if b_along_k else ceil(width, 64) * 64)) * depth / 64,
        "coupled": across * down > 1, "both": across > 1 and down > 1, "two_m64": m64 > 1,
        "two": classes == 2, "more": classes > 2, "clusters": ctas > 1, "large": ctas > 2 or divides_columns,
        "epilogue": height * width / (1 if ping_pong else consumers) / parts * epilogue / 1000,
        "part": height * width / parts, "parts": parts,
        "l2_bytes": l2_bytes,
        "in_parts": fit < row, "in_turn": fit < 2 and not leaves_sums,
        "ping_pong": ping_pong, "stream_k": schedule == "StreamK" or leaves_sums, "split_k": split_k,
        "tiles": tiles_all,
        "at_once": at_once, "k_blocks": k_blocks, "accumulators": 4 * height * width,
        "stages": stages, "counts": counts,
        "intensity": 2 * m * n * k / (a + b + c), "ctas": ctas,
        "bytes_of_tile": (a + b + c) / tiles_all, "again": again / tiles_all,
        "in_l2": False,
        "possible": bool(counts) if split_k else schedule != "StreamK" or left != 0,
    }  # fmt: skip


def table(rows):
    """Columns of features; the counts of stream-K CTAs, padded."""
    names = [name for name in rows[0] if name != "counts"]
    columns = {name: np.array([row[name] for row in rows], float) for name in names}
    most = max(len(row["counts"]) for row in rows)
    padded = np.ones((2, len(rows), max(most, 1)))
    exists = np.zeros((len(rows), max(most, 1)), bool)
    for at, row in enumerate(rows):
        for index, pair in enumerate(row["counts"]):
            padded[:, at, index] = pair
            exists[at, index] = True
    columns["count"], columns["peers"] = padded
    return {name: jnp.asarray(column) for name, column in (columns | {"exists": exists}).items()}


# Cycles of a kernel that cannot run so; a number, since gradients of infinities are none.
IMPOSSIBLE = 1e12


def estimate(c, t, parts_at=None):
    """Cycles, as cost.rs has them, with the margins of stream-K; 10¹² where there are none. And which of
    its counts each kernel takes under split-K: `parts_at`, or the one of fewest cycles."""
    def of(name, operand):
        line, sector = t["mid_" + operand], t["sector_" + operand]
        cycles = c[name + ".0"] + line * c[name + ".1"] + sector * c[name + ".2"]
        return cycles * t["bytes"] / 128

    def meeting(operand):
        short_lines = 1 + c["MEETING_IN_SHORT_LINES"] * t["short_" + operand] * t["mid_" + operand]
        return 1 + c["MEETING.0"] * t["readers_" + operand] * short_lines / c["MEETING.1"]

    requested = t["rows"] * of("REQUEST", "a") + t["columns"] * of("REQUEST", "b")
    served = t["rows"] * of("SERVE", "a") * meeting("a")
    served = served + t["columns"] * of("SERVE", "b") * meeting("b")
    lines = (t["rows"] + t["columns"]) * t["bytes"]
    loaded = t["k_blocks"] * lines * t["ctas"]
    latency = c["LATENCY.0"] + c["LATENCY.1"] * jnp.minimum(1, t["bytes_of_tile"] / loaded)

    def column(values, like):
        return values[:, None] if like.ndim == 2 else values

    def asked_by(ctas):
        share = jnp.minimum(ctas, SMS) / SMS
        return jnp.maximum(column(requested, ctas), column(served, ctas) * share)

    def k_block_of(ctas):
        """Cycles of a k-block while so many CTAs run."""
        asked = asked_by(ctas)
        arrived = (column(latency, ctas) + asked) / column(t["stages"] - 1, ctas)
        shared = c["SHARED.0"] * t["shared_read"] + c["SHARED.1"] * t["shared_written"]
        both = (column(t["arithmetic"] ** 4 + shared**4, ctas) + asked**4) ** 0.25
        slices = t["l2_bytes"] / c["SLICE.0"]
        reaches = lambda operand: c["REACHES_L2.0"] + c["REACHES_L2.1"] * t["mid_" + operand]
        alone = t["rows"] * reaches("a") + t["columns"] * reaches("b")
        reaching = jnp.where(t["clusters"], t["rows"] + t["columns"], alone) * t["bytes"]
        delivered = reaching * SMS / (c["SLICE.1"] * slices)
        received = column(lines / c["RECEIVED_PER_CYCLE"], ctas)
        received = jnp.maximum(received, column(delivered, ctas) * jnp.minimum(ctas, SMS) / SMS)
        least = column(c["LEAST_OF_LINES"] * t["bytes"] / 128, ctas)
        multiplied = jnp.maximum(jnp.maximum(both, arrived), jnp.maximum(received, least))
        power = column(lines, ctas) / c["LOADED_PER_CYCLE_OF_POWER"] * jnp.minimum(ctas, SMS) / SMS
        waits = t["coupled"] * c["COUPLED.0"] + t["both"] * c["COUPLED.1"]
        return multiplied + power + column(waits, ctas)

    # The first stage arrives before there is anything to multiply, and the last one is multiplied when
    # nothing arrives any more.
    first_ctas = jnp.minimum(t["tiles"], t["at_once"]) * t["ctas"]
    arriving = jnp.maximum(asked_by(first_ctas), lines / c["RECEIVED_PER_CYCLE"])
    unhidden = jnp.minimum(t["arithmetic"], arriving)
    # With operands from DRAM, or in L2.
    in_either = lambda name: jnp.where(t["in_l2"], c[f"{name}.1"], c[f"{name}.0"])
    one_wave = t["coupled"] * (t["tiles"] <= t["at_once"])
    filled = jnp.minimum(t["k_blocks"] - 1, c["CLUSTER_FILL_K_BLOCKS"]) / c["CLUSTER_FILL_K_BLOCKS"]
    clusters = t["clusters"] * in_either("CLUSTER_LATENCY") + one_wave * filled * in_either("CLUSTER_FILL")

    sent = (t["parts"] - 1) * 4 * t["part"] / c["STORED_PER_CYCLE"]
    stored = t["part"] * 2 / c["STORED_PER_CYCLE"]
    stored = stored * (1 + c["MID_SECTOR_STORE"] * t["between_sectors"])
    store = c["BETWEEN_TILES"] + stored
    store = store + t["in_parts"] * c["STAGED_IN_PARTS"] + t["in_turn"] * c["STAGED_IN_TURN"]
    store = store + t["epilogue"] + t["two_m64"] * c["TWO_M64"]
    exchange = c["EXCHANGE_LATENCY.0"] + t["parts"] * c["EXCHANGE_LATENCY.1"]
    store = store + jnp.where(t["parts"] > 1, exchange + sent, 0)
    from_dram = lambda bytes, ctas: bytes / jnp.minimum(c["FROM_DRAM.0"] * SMS, c["FROM_DRAM.1"] * ctas)

    def phases_of(tiles):
        """Cycles in which so many tiles are multiplied, and in which DRAM delivers what they load."""
        ctas = jnp.maximum(tiles, 1) * t["ctas"]
        multiply = t["k_blocks"] * k_block_of(ctas) + (t["two"] + t["more"]) * c["CLASSED"]
        return ctas, multiply, from_dram(tiles * t["bytes_of_tile"], ctas)

    def multiplied_of(tiles):
        _, multiply, dram = phases_of(tiles)
        return jnp.maximum(multiply, dram)

    def wave_of(tiles):
        """Cycles of a wave of so many tiles, between two others."""
        ctas, multiply, dram = phases_of(tiles)
        requests = t["k_blocks"] * asked_by(ctas) + stored
        beside_loads = store * (1 + c["MID_SECTOR_STORE"] * t["sector_c"])
        alternating = jnp.maximum(jnp.maximum(multiply, beside_loads), requests) + c["ORDER_BARRIER"]
        multiplied = jnp.maximum(multiply, dram)
        shared = multiplied + store - c["HIDDEN_STORE"] * jnp.minimum(stored, multiplied)
        return jnp.where(t["ping_pong"], jnp.maximum(alternating, dram), shared)

    waves, left = jnp.divmod(t["tiles"], t["at_once"])
    wave, last_wave = wave_of(t["at_once"]), wave_of(left)
    whole = waves * wave + (left > 0) * last_wave
    later = whole - jnp.where(waves > 0, wave, last_wave)
    # The first wave stands behind no store, and nothing hides the store of the last one.
    first = multiplied_of(jnp.where(waves > 0, t["at_once"], left))
    whole = first + (1 + c["LATER_WAVES"] * t["large"]) * later + store
    whole = (whole + clusters) * (1 + SHARED_LOADS_MARGIN * t["coupled"])
    apart = 1 + c["APART_MARGIN"] * t["more"]
    whole = whole * apart
    whole = whole + t["stages"] * c["STAGE"] + c["UNHIDDEN"] * unhidden
    # Whole tiles to groups of CTAs where the counts allow, else all k-blocks at once.
    cut = jnp.where(t["count"] % left[:, None] == 0, left[:, None], 1)
    share = jnp.ceil((left * t["k_blocks"])[:, None] / cut / (t["count"] / cut)) * k_block_of(t["count"])
    again = (t["count"] % left[:, None] > 0) * t["again"][:, None]
    dram = from_dram(left[:, None] * (t["bytes_of_tile"][:, None] + again), t["count"])
    share = jnp.maximum(share, dram)
    fix_up = (t["accumulators"] / c["STORED_PER_CYCLE"] + c["FIX_UP_LATENCY"] + store)[:, None]
    fix_up = fix_up + c["CROSSING"] * (t["count"] % left[:, None] > 0)
    fix_up = fix_up + t["peers"] * t["accumulators"][:, None] / c["ADDED_PER_CYCLE"]
    last = jnp.where(t["peers"] == 0, last_wave[:, None], share + fix_up)
    last = jnp.min(jnp.where(t["exists"], last, IMPOSSIBLE), axis=1)
    # Under split-K, all tiles in parts, and `peers` waves of CTAs; or all CTAs share all tiles.
    each = jnp.ceil((t["k_blocks"] / (t["count"].T / t["tiles"])).T)
    at_once = (jnp.minimum(t["count"].T, t["at_once"]) * t["ctas"]).T
    crosses = t["count"] % t["tiles"][:, None] > 0
    again = crosses * (left * t["again"])[:, None]
    dram = from_dram((t["tiles"] * t["bytes_of_tile"])[:, None] + again, at_once)
    parts = jnp.maximum(t["peers"] * each * k_block_of(at_once), dram)
    written = jnp.where(crosses, 2 + t["tiles"][:, None] // t["count"], t["peers"])
    parts = parts + written * t["accumulators"][:, None] / c["STORED_PER_CYCLE"]
    parts = parts + in_either("REDUCE_LATENCY")[:, None]
    ctas = ((t["count"] + crosses * t["tiles"][:, None]).T * t["ctas"]).T
    parts = parts + ctas * t["accumulators"][:, None] / (c["REDUCED_PER_CYCLE"] * SMS)
    each_part = jnp.where(t["in_l2"], 0, c["EACH_PART"])[:, None]
    parts = parts + each_part * (t["count"].T / t["tiles"]).T
    parts = parts * (1 + c["SPLIT_K_MARGIN"] * (t["ctas"] == 1))[:, None]
    parts = parts * (1 + c["CROSSING_MARGIN"] * crosses)
    parts = jnp.where(t["exists"], parts, IMPOSSIBLE)
    parts_at = jnp.argmin(parts, axis=1) if parts_at is None else parts_at
    parts = jnp.take_along_axis(parts, parts_at[:, None], axis=1)[:, 0]
    shared = jnp.where(t["split_k"], parts, waves * wave + last) / (1 - c["STREAM_K_MARGIN"])
    shared = shared + clusters
    shared = shared * (1 + SHARED_LOADS_MARGIN * t["coupled"]) * apart
    shared = shared + t["stages"] * c["STAGE"] + c["UNHIDDEN"] * unhidden
    cycles = jnp.where(t["stream_k"], shared, whole)
    crowds = jnp.logical_or(t["stream_k"] > 0, 2 * first_ctas > SMS)
    cycles = cycles + t["in_l2"] * crowds * c["CROWDED"]
    return jnp.where(t["possible"] > 0, cycles, IMPOSSIBLE), parts_at


def launched(c, t):
    """The estimates with operands from DRAM and with operands in L2, with the times of the launch."""
    (from_dram, parts_at), nothing = estimate(c, t), 0 * t["bytes_of_tile"]
    in_l2 = t | {"bytes_of_tile": nothing, "again": nothing, "in_l2": nothing + 1}
    in_l2, _ = estimate(c, in_l2, parts_at)
    return from_dram + c["LAUNCH.0"], in_l2 + c["LAUNCH.1"]


def compared(c, t):
    """What kernels are compared by: the geometric mean of both estimates; the first, where it makes no
    difference where operands are."""
    from_dram, in_l2 = launched(c, t)
    return jnp.where(t["intensity"] > FLOP_PER_BYTE, from_dram, jnp.sqrt(from_dram * in_l2))


KERNELS = {layout: tiles(layout) for layout in ("nn", "nt", "tn", "tt")}
