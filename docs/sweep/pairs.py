"""Judges a change by two builds that measured the same problems, one after the other.

    python3 docs/sweep/pairs.py BEFORE.csv... -- AFTER.csv...

The files are those of `bench --choice --csv`. For each problem, the program prints both launches, the
change of the library's time and that of its ratio to cuBLASLt, in percent (less is faster), and the ratio
of both builds, cold and sustained; then the means, and the geometric mean, the 5 % quantile and the least
of the ratios. The times of two processes differ by the clocks and the temperature of the card, too; the
ratio to cuBLASLt, which both have measured, does not.
"""

import csv
import math
import statistics
import sys

REGIMES = ["cold", "sustained"]


def read(paths):
    """(launch, milliseconds of the library's choice, ratio to cuBLASLt) by problem and regime."""
    found = {}
    for path in paths:
        for row in csv.DictReader(open(path)):
            if row["implementation"] == "tilewise (chosen)" and row["paired_over_cublaslt"]:
                problem = "{m}x{n}x{k} {dtype} {layout}".format(**row)
                launch = " ".join([row["kernel"], row["order"], row["schedule"]])
                times = float(row["median_ms"]), float(row["paired_over_cublaslt"])
                found.setdefault(problem, {})[row["regime"]] = launch, *times
    return found


def quantile(values, share):
    values, at = sorted(values), share * (len(values) - 1)
    low = values[math.floor(at)]
    return low + (at % 1) * (values[math.ceil(at)] - low)


def main():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    at = sys.argv.index("--")
    before, after = read(sys.argv[1:at]), read(sys.argv[at + 1 :])
    changes = {regime: [] for regime in REGIMES}
    for problem in before:
        line = problem
        for regime in REGIMES:
            if not (regime in before[problem] and regime in after.get(problem, {})):
                continue
            (old, old_ms, old_ratio), (new, new_ms, new_ratio) = before[problem][regime], after[problem][regime]
            time, ratio = 100 * math.log(new_ms / old_ms), 100 * math.log(old_ratio / new_ratio)
            changes[regime].append((time, ratio, old_ratio, new_ratio))
            launches = f"  {old} -> {new}" if regime == REGIMES[0] else ""
            line += f"{launches}  {regime} {time:+.1f} {ratio:+.1f} {old_ratio:.3f} -> {new_ratio:.3f}"
        print(line)
    for regime, values in changes.items():
        if values:
            time, ratio, *ratios = zip(*values)
            show = lambda of: f"{statistics.geometric_mean(of):.3f} {quantile(of, 0.05):.3f} {min(of):.3f}"
            means = f"time {statistics.mean(time):+.2f}, by the ratio {statistics.mean(ratio):+.2f}"
            print(f"{regime}: {len(values)} problems, {means}; {show(ratios[0])} -> {show(ratios[1])}")


if __name__ == "__main__":
    main()
