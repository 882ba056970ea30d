"""The results as Markdown: what was measured, beside what is to be reached."""
import math

import floors
import grid
from nets import BATCH, batch_of
from programs import PARTS

OURS = "ours"
FAST = "ours, math fast"
TITLES = {
    "train": "Training step", "infer": "Inference, the training batch",
    "infer32": "Inference, batch 32", "infer1": "Inference, batch 1",
}


def figure(run, net, dtype, label, part, key="median_ms"):
    """A number, or None."""
    return run["nets"].get(f"{net} {dtype}", {}).get(label, {}).get(part, {}).get(key)


def peer_labels(run, net, dtype, peer=""):
    labels = run["nets"].get(f"{net} {dtype}", {})
    return [x for x in labels if not x.startswith("ours") and x.startswith(peer)]


def best_peer(run, net, dtype, part, peer="PyTorch"):
    values = [figure(run, net, dtype, x, part) for x in peer_labels(run, net, dtype, peer)]
    return min((v for v in values if v), default=None)


def own(run, net, dtype, part, label=OURS):
    """Ours, tuned or not: whichever is faster."""
    values = [figure(run, net, dtype, x, part) for x in (label, f"{label}, tuned")]
    return min((v for v in values if v), default=None)


def divide(a, b):
    return a / b if a is not None and b else None


def text(v, form="{:.2f}"):
    return "-" if v is None else form.format(v)


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(str(x) for x in row) + " |" for row in rows] + [""]


# ---- floors ----


class Floors:
    """Rows: what, at least (or at most), figure, reached."""

    def __init__(self):
        self.rows = []

    def at_least(self, what, floor, value, form="{:.2f}x"):
        self._add(what, "at least " + form.format(floor), value, form, value is not None and
                  value >= floor)

    def at_most(self, what, most, value, form="{:.2f}x"):
        self._add(what, "at most " + form.format(most), value, form, value is not None and
                  value <= most)

    def _add(self, what, bound, value, form, reached):
        said = "not measured" if value is None else "reached" if reached else "**not reached**"
        self.rows.append((what, bound, text(value, form), said))


def geometric_mean(values):
    if not values or any(v is None for v in values):
        return None
    return math.exp(sum(map(math.log, values)) / len(values))


def net_floors(run, f):
    def gain(net, dtype, label, part, peer="PyTorch"):
        return divide(best_peer(run, net, dtype, part, peer), own(run, net, dtype, part, label))

    for net, floor in floors.TRAIN.items():
        f.at_least(f"{net}, f32 training against PyTorch", floor, gain(net, "f32", OURS, "train"))
    for net, floor in floors.TRAIN_FAST.items():
        f.at_least(f"{net}, the same with math=fast", floor, gain(net, "f32", FAST, "train"))
    f.at_least("geometric mean of the four nets, math=fast", floors.TRAIN_FAST_MEAN,
               geometric_mean([gain(net, "f32", FAST, "train") for net in floors.NETS]))
    for net, floor in floors.TRAIN_BF16.items():
        f.at_least(f"{net}, bf16 training against PyTorch's autocast", floor,
                   gain(net, "bf16", OURS, "train"))
    for (dtype, math_mode), least in floors.TRAIN_ALL.items():
        for net, floor in least.items():
            f.at_least(f"{net}, {dtype} training, math={math_mode}, against the best of all peers",
                       floors.of(floor, run["machine"]["cpu"]),
                       gain(net, dtype, FAST if math_mode == "fast" else OURS, "train", peer=""))
    for part in PARTS[1:]:
        for net in floors.NETS:
            for dtype in ("f32", "bf16"):
                f.at_least(f"{net}, {dtype} {TITLES[part].lower()} against the best of all peers",
                           floors.INFER_ALL, gain(net, dtype, OURS, part, peer=""))
    for dtype, by_net in floors.STEP_TO_RAW.items():
        for net, floor in by_net.items():
            f.at_most(f"{net}, {dtype} step against its convolutions alone", floor,
                      divide(own(run, net, dtype, "train"),
                             run["raw"].get(f"{net} {dtype}", {}).get("fastest_ms")))
    for plan, most in floors.REGRET.items():
        for key, by_plan in run["regret"].items():
            figures = by_plan[plan]
            f.at_most(f"{key}, regret of the {plan} plan", most,
                      figures.get("regret") if figures.get("untimed") == 0 else None)
    for net, floor in floors.BF16_GAIN.items():
        f.at_least(f"{net}, bf16 step against our f32 step", floor,
                   divide(own(run, net, "f32", "train"),
                          own(run, net, "bf16", "train")))
    for net, floor in floors.INFER1.items():
        f.at_least(f"{net}, batch 1 inference against PyTorch", floor,
                   gain(net, "f32", OURS, "infer1"))
    f.at_most("resnet20: to build, differentiate and plan", floors.PLAN_MS,
              figure(run, "resnet20", "f32", OURS, "train", "plan_ms"), "{:.0f} ms")
    f.at_least(f"lenet step against KANN's {floors.KANN_MS} ms", floors.KANN_GAIN,
               divide(floors.KANN_MS, own(run, "lenet", "f32", "train")))
    for net in floors.NETS:
        f.at_most(f"{net}, arena against live bytes", floors.ARENA,
                  divide(figure(run, net, "f32", OURS, "train", "arena_bytes"),
                         figure(run, net, "f32", OURS, "train", "live_bytes")))
    for net in floors.NETS:
        rss = [figure(run, net, "f32", x, "train", "peak_rss_bytes")
               for x in peer_labels(run, net, "f32", "PyTorch")]
        f.at_least(f"{net}, PyTorch's peak resident memory against ours", 1,
                   divide(min((v for v in rss if v), default=None),
                          figure(run, net, "f32", OURS, "train", "peak_rss_bytes")))
    for net, by_threads in run["threads"].items():
        one, most = by_threads.get("1", {}), by_threads.get(str(run["threads_used"]), {})
        for part in ("train", "infer1"):
            f.at_least(f"{net}, {TITLES[part].lower()}: all threads against 1", 1,
                       divide(one.get(part, {}).get("median_ms"),
                              most.get(part, {}).get("median_ms")))


def cell_floors(run, f):
    worst, reached, n = None, 0, 0
    holes = []
    for result in run["grid"].values():
        c = result["cell"]
        for d in grid.DIRECTIONS:
            planned = result["ours"][d].get("planned", {}).get("ms")
            floor = grid.floor_of(c, d)
            if floor and planned:
                share = 1e3 * grid.gflop(c) / planned / floor
                n, reached = n + 1, reached + (share >= floors.CELL_TOLERANCE)
                worst = min(worst or share, share)
            if d in grid.HOLES.get(grid.name(c), ()):
                holes.append((f"{grid.name(c)} {d}, against oneDNN's best candidate",
                              divide(result["ours"][d].get("onednn", {}).get("ms"), planned)))
    f.at_least(f"depthwise cells with a floor ({n}): the worst against its floor",
               floors.CELL_TOLERANCE, worst)
    f.at_least("their share that reaches it", 1, divide(reached, n), "{:.0%}")
    for what, value in holes:
        f.at_least(what, floors.HOLE_GAIN, value)


# ---- tables ----


def step_rows(run, part):
    """A row for each net and type."""
    labels = list(dict.fromkeys(x for by_label in run["nets"].values() for x in by_label))
    peers = sorted({x.split()[0] for x in labels if not x.startswith("ours")})
    ratios = [f"ours against {p}" for p in peers]
    head = ["net", "type", "batch", *(f"{x}, ms" for x in labels), *ratios, "images/s", "GFLOP/s"]
    rows = []
    for key, by_label in run["nets"].items():
        net, dtype = key.split()
        row = [net, dtype, batch_of(net, part)]
        row += [text(by_label.get(x, {}).get(part, {}).get("median_ms"), "{:.3f}") for x in labels]
        mine = own(run, net, dtype, part)
        row += [text(divide(best_peer(run, net, dtype, part, p), mine), "{:.2f}x") for p in peers]
        row += [text(figure(run, net, dtype, OURS, part, "images_per_s"), "{:.0f}"),
                text(figure(run, net, dtype, OURS, part, "gflops"), "{:.0f}")]
        rows.append(row)
    return head, rows


def spread_rows(run):
    rows = []
    for key, by_label in run["nets"].items():
        for label, by_part in by_label.items():
            for part, r in by_part.items():
                said = " ".join(f"{v:.3f}" for v in r.get("turns_ms", [])) or r.get("error", "")
                rows.append((key, label, part, text(r.get("min_ms"), "{:.3f}"), said))
    return rows


def plan_rows(run):
    rows = []
    for key, by_label in run["nets"].items():
        r = by_label.get(OURS, {}).get("train", {})
        if "plan_ms" in r:
            rows.append((key, f"{r['plan_ms']:.0f}", r["steps"], r["reorders"], r["naive_steps"],
                         f"{r['arena_bytes'] / 1e6:.2f}", f"{r['live_bytes'] / 1e6:.2f}",
                         f"{r['peak_rss_bytes'] / 1e6:.0f}",
                         *[text(divide(run["raw"].get(key, {}).get(k), 1), "{:.3f}")
                           for k in ("fastest_ms", "planned_ms")]))
    return rows


def regret_rows(run):
    rows = []
    for key, by_plan in run["regret"].items():
        row = [key]
        for figures in by_plan.values():
            row += [text(figures.get(k), "{:.3f}") for k in ("planned_ms", "rival_ms", "regret")]
        rows.append((*row, sum(figures.get("untimed", 0) for figures in by_plan.values())))
    return rows


def cell_rows(run):
    rows = []
    for result in run["grid"].values():
        c = result["cell"]
        for d in grid.DIRECTIONS:
            mine = result["ours"][d]
            planned = mine.get("planned", {})
            speed = divide(1e3 * grid.gflop(c), planned.get("ms"))
            peers = [divide(answer.get(fmt, {}).get(d), planned.get("ms"))
                     for answer in result["peers"].values() for fmt in answer if fmt != "error"]
            floor = grid.floor_of(c, d)
            rows.append((
                grid.name(c), d, planned.get("backend", result["error"] or "-"),
                planned.get("impl", "-"), text(planned.get("ms"), "{:.4f}"), text(speed, "{:.0f}"),
                text(floor, "{}"), text(divide(mine.get("onednn", {}).get("ms"), planned.get("ms"))),
                text(divide(mine.get("direct", {}).get("ms"), planned.get("ms"))),
                text(min((p for p in peers if p), default=None))))
    return rows


# ---- several ranks ----


def rank_speed(run, net, label):
    """Images a second of all ranks together, at the nets' batch, or at twice that for weak; tuned or
    not, whichever is faster."""
    figures = run["ranks"].get(net, {})
    times = [figures.get(x, {}).get("median_ms") for x in (label, f"{label}, tuned")]
    ms = min((t for t in times if t), default=None)
    images = BATCH[net] * (2 if label == "2 ranks, the batch each" else 1)
    return 1e3 * images / ms if ms else None


def ddp_speed(run, net):
    labels = [x for x in run["ranks"].get(net, {}) if x.startswith("PyTorch DDP")]
    values = [rank_speed(run, net, x) for x in labels]
    return max((v for v in values if v), default=None)


def rank_ratios(run, net):
    """Strong, weak, against DDP; the part that is hidden, of MPI and of a delayed link; of a step of
    two ranks that exchange nothing, the part that is left of its speed; the measured step over the
    predicted one; memory beyond one rank's, over that of the buckets."""
    halves = rank_speed(run, net, "2 ranks, half the batch each")
    figures = run["ranks"].get(net, {})
    shared = figures.get("2 ranks, half the batch each", {})
    beyond = shared.get("arena_bytes", 0) - shared.get("alone_arena_bytes", 0)
    predicted = figures.get("prediction", {})
    return {
        "strong": divide(halves, rank_speed(run, net, "1 rank of 2 threads")),
        "weak": divide(rank_speed(run, net, "2 ranks, the batch each"),
                       rank_speed(run, net, "1 rank of 1 thread")),
        "ddp": divide(halves, ddp_speed(run, net)),
        "mpi": shared.get("hidden"),
        "link": figures.get("link", {}).get("hidden"),
        "apart": figures.get("2 ranks, the batch each", {}).get("efficiency_apart"),
        "memory": divide(beyond, predicted.get("reduced_bytes")),
        **{f"of {n}": divide(1, predicted.get(str(n))) for n in (2, 4)},
    }


def rank_floors(run, f):
    if not run["ranks"]:
        return
    ratios = {net: rank_ratios(run, net) for net in BATCH}
    for net, r in ratios.items():
        f.at_least(f"{net}: 2 ranks of 1 thread against 1 rank of 2, same batch", 0.95, r["strong"])
        f.at_least(f"{net}: 2 ranks of 1 thread against 1, twice the batch", 1.85, r["weak"])
        f.at_least(f"{net}: 2 ranks against DistributedDataParallel", 1, r["ddp"])
    f.at_least("2 ranks against DistributedDataParallel, geometric mean", 2,
               geometric_mean([r["ddp"] for r in ratios.values()]))
    for net in ("resnet20", "vgg6"):
        f.at_least(f"{net}: hidden, over a link that delays completion", 0.8, ratios[net]["link"],
                   "{:.2f}")
    for net, r in ratios.items():
        for n in (2, 4):
            off = None if r[f"of {n}"] is None else abs(r[f"of {n}"] - 1)
            f.at_most(f"{net}: {n} ranks' step, how far from what is predicted", 0.15, off, "{:.2f}")
        f.at_most(f"{net}: arena beyond one rank's, over all buckets", 1, r["memory"], "{:.2f}")


def rank_rows(run):
    rows = []
    for net, figures in run["ranks"].items():
        r = rank_ratios(run, net)
        speeds = [rank_speed(run, net, label) for label in (
            "1 rank of 2 threads", "1 rank of 1 thread", "2 ranks, half the batch each",
            "2 ranks, the batch each")]
        rows.append((net, *(text(v, "{:.0f}") for v in [*speeds, ddp_speed(run, net)]),
                     *(text(r[k]) for k in ("strong", "weak", "apart", "ddp", "mpi", "link", "of 2",
                                            "of 4", "memory"))))
    return rows


def render(run):
    """The whole document."""
    m = run["machine"]
    lines = [f"# adjoint's benchmark, {m['date']}", ""]
    lines += [f"- {m['cpu']}, {m['cores']} cores seen, {m['memory']}, {m['system']}",
              f"- adjoint {m['commit']}, oneDNN {m['onednn']}, {m['compiler']}",
              f"- {run['threads_used']} threads; medians of {run['rounds']} turns of "
              f"{run['seconds']} s each, ours and the peers' in turns; load before: {m['load']}"]
    lines += [f"- {p}" for p in run["peers"]] + [f"- measured: {', '.join(run['parts'])}", ""]
    if run["quick"]:
        lines += ["A quick run, to see that everything works: its numbers mean nothing.", ""]
    f = Floors()
    net_floors(run, f)
    cell_floors(run, f)
    rank_floors(run, f)
    lines += ["## Floors", ""] + table(("what", "floor", "figure", ""), f.rows)
    for part in PARTS:
        head, rows = step_rows(run, part)
        if rows:
            lines += [f"## {TITLES[part]}", ""] + table(head, rows)
    lines += ["## Plans", "",
              "Convolutions alone: the fastest candidate of each, one set of buffers, added up; and "
              "what the plan takes.", ""]
    lines += table(("net", "build and plan, ms", "steps", "reorders", "naive", "arena, MB",
                    "live, MB", "peak resident, MB", "convolutions alone, ms", "planned ones, ms"),
                   plan_rows(run))
    if run["regret"]:
        lines += ["## Regret", "",
                  "The planned kernels of a step's convolutions alone, least times on cold memory; "
                  "the fastest candidates in their place; planned over fastest.", ""]
        lines += table(("net", *(f"{plan}, {what}" for plan in floors.REGRET
                                 for what in ("ms", "fastest, ms", "regret")),
                        "not timed"), regret_rows(run))
    if run["ranks"]:
        lines += ["## Two ranks", "",
                  "Images a second of training, f32, each rank bound to a core, by `adjoint bench` under "
                  "mpirun; PyTorch's DistributedDataParallel over gloo, two processes of one thread, the "
                  "faster of its layouts. Hidden: the part of the time in which reductions are under way "
                  "that no rank waits; the same over a link that delays completion by a quarter of a step. "
                  "Beside apart: what two ranks of the batch each have of the speed of two that exchange "
                  "nothing, at the same time. Measured / predicted: steps of 2 and of 4 ranks (which share "
                  "the cores if there are two), by `bench/scale.py` with the link that was measured, from a "
                  "step beside as many others. Memory: the arena beyond one rank's, over all buckets.",
                  ""]
        lines += table(("net", "1 rank of 2 threads", "1 of 1", "2 of 1", "2 of 1, twice the batch",
                        "DDP, 2 of 1", "2 of 1 / 1 of 2", "twice the batch / 1 of 1", "beside apart",
                        "/ DDP", "hidden", "hidden, delayed", "measured / predicted, 2", "4",
                        "memory"), rank_rows(run))
    if run["grid"]:
        lines += ["## Convolutions alone", "",
                  "One set of buffers (warm). Ratios: how many times longer the best candidate of "
                  "oneDNN, of direct, and the best of the peers' formats take than what the plan "
                  "takes.", ""]
        lines += table(("cell", "", "backend", "implementation", "ms", "GFLOP/s", "floor", "oneDNN",
                        "direct", "peer"), cell_rows(run))
    lines += ["## Every turn", ""]
    lines += table(("net", "who", "part", "minimum, ms", "medians of the turns, ms"),
                   spread_rows(run))
    return "\n".join(lines)
