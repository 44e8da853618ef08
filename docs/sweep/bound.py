"""How much less a rule could lose that learns from the sweeps, and how much no single choice can avoid.

    python3 docs/sweep/bound.py CSV...

It needs NumPy, JAX and scikit-learn. Boosted trees learn ln(time / estimate) of every launch in the files,
cold and sustained, from what the estimate of cost.py knows, the estimate itself, and the kernel and the
product. They are judged on products that they have not seen: six times, a sixth of the products is
held out. The program prints what is lost against the fastest kernel measured

    by the library's estimate,
    by the estimate with the learned corrections, in both regimes together, as the library chooses,
    by the same with each regime for itself, and
    by the kernel whose measured times have the least geometric mean,

as the mean, the 95 % quantile and the most, in percent. A product counts whose file has four kernels or
more with both times.
"""

import csv
import sys

import cost
import numpy as np
from fit import waited
from sklearn.ensemble import HistGradientBoostingRegressor

FOLDS = 6
SCHEDULES = ["Cooperative", "Clusters", "PingPong", "StreamK", "SplitK", "SplitKParallel"]


def read(path):
    """(product, tile, features, features as numbers, cold ms, sustained ms) of each launch."""
    launches = {}
    for row in csv.DictReader(open(path)):
        m, n, k = (int(row[name]) for name in "mnk")
        layout, name = row["layout"], row["kernel"].split("_", 4)[-1]
        pitches = (k if layout[0] == "n" else m, n if layout[1] == "n" else k, n)
        tile = cost.KERNELS[layout].get(name)
        is_ours = tile is not None and tile[4] in SCHEDULES and row["implementation"][:8] == "tilewise"
        if any(pitch % 8 for pitch in pitches) or not is_ours or not row["cold_ms"]:
            continue
        classes = int(row.get("line_classes") or 1)
        product = (path, m, n, k, layout, row["dtype"])
        of = cost.features(tile, m, n, k, layout, row["schedule"] == "split-k", 0, classes)
        if waited(path, of):
            continue
        times = [float(row[name] or "nan") for name in ("cold_ms", "sustained_ms")]
        launches.setdefault((product, name, row["schedule"], classes), (product, tile, of, times))
    return list(launches.values())


def numbers(product, tile, of):
    """What the trees know of a launch, beside the estimates."""
    _, m, n, k, layout, _ = product
    height, width, depth, stages, schedule, arguments, is_turned, *_ = tile
    rows, columns, lies = (n, m, cost.turned(layout)) if is_turned else (m, n, layout)
    known = [value for name, value in sorted(of.items()) if name != "counts"]
    cluster = (*arguments, 1, 1)[:2]
    kernel = [height, width, depth, stages, SCHEDULES.index(schedule), *cluster, is_turned]
    shape = [rows, columns, k, rows % height / height, columns % width / width]
    return known + kernel + shape + [lies[0] == "n", lies[1] == "t", of["tiles"] / of["at_once"]]


def main():
    launches = [launch for path in sys.argv[1:] for launch in read(path)]
    constants, table = cost.LIBRARY_HAS, cost.table([of for _, _, of, _ in launches])
    estimates = [np.log(cycles) for cycles in cost.launched(constants, table)]
    compared = np.log(np.asarray(cost.compared(constants, table)))
    known = np.array([numbers(*launch[:3]) for launch in launches], float)
    known = np.column_stack([known, *estimates])
    times = np.log(np.array([launch[3] for launch in launches]))

    # The same product in two files is held out of both.
    shapes = [str(launch[0][1:]) for launch in launches]
    _, shape = np.unique(shapes, return_inverse=True)
    fold = np.random.default_rng(0).integers(0, FOLDS, shape.max() + 1)[shape]
    learned = []
    for regime in range(2):
        target, corrected = times[:, regime] - estimates[regime], np.array(estimates[regime])
        for held_out in range(FOLDS):
            trees = HistGradientBoostingRegressor(
                max_iter=600, learning_rate=0.04, max_leaf_nodes=32, min_samples_leaf=30, random_state=0
            )
            seen = (fold != held_out) & np.isfinite(target)
            trees.fit(known[seen], target[seen])
            corrected[fold == held_out] += trees.predict(known[fold == held_out])
        learned.append(corrected)

    products = {}
    for index, launch in enumerate(launches):
        if np.isfinite(times[index]).all():
            products.setdefault(launch[0], []).append(index)
    products = [np.array(indices) for indices in products.values() if len(indices) >= 4]

    def show(name, scores):
        line = f"{name:36}"
        for regime, score in enumerate(scores):
            loss = [times[of[score[of].argmin()], regime] - times[of, regime].min() for of in products]
            loss = 100 * np.expm1(loss)
            line += f"  {loss.mean():5.2f} {np.quantile(loss, 0.95):5.1f} {loss.max():5.1f}"
        print(line)

    print(f"{len(launches)} launches, {len(products)} products; loss cold, and sustained")
    show("the library's estimate", [compared, compared])
    show("learned corrections", [sum(learned), sum(learned)])
    show("learned, each regime for itself", learned)
    show("least measured mean", [times.sum(1), times.sum(1)])


if __name__ == "__main__":
    main()
