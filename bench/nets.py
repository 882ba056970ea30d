"""Whole steps of the four nets, ours and the peers' in turns."""
import statistics

from programs import PARTS, say

BATCH = {"lenet": 64, "resnet20": 128, "mobilenet_v1": 32, "vgg6": 64}


def batch_of(net, part):
    return {"infer32": 32, "infer1": 1}.get(part, BATCH[net])


def ours(tool, net, dtype, part, o, *more):
    words = ["--model", net, "--batch", batch_of(net, part), "--precision", dtype, "--seconds", o.seconds,
             "--threads", o.threads, *more]
    return tool.bench(*words, *([] if part == "train" else ["--infer"]))


def contenders(tool, peers, net, dtype, parts, o):
    """(label, function that measures all parts once) of everything to be timed in turns."""
    found = []
    variants = [("ours", []), ("ours, math fast", ["--math", "fast"])]
    if o.tune:
        variants += [(label + ", tuned", more + ["--tune"]) for label, more in variants]
    for label, more in variants:
        found.append((label, lambda more=more: {
            part: ours(tool, net, dtype, part, o, *more) for part in parts}))
    for peer in peers:
        for fmt in peer.formats:
            offered = [p for p in parts if p in peer.parts]
            if not offered or any(word in f"{peer.name} {fmt}" for word in o.without):
                continue
            words = ["--net", net, "--dtype", dtype, "--batch", BATCH[net], "--threads", o.threads,
                     "--seconds", o.seconds, "--parts", ",".join(offered)]
            found.append((f"{peer.name} {fmt}", lambda peer=peer, fmt=fmt, words=words:
                          peer.step(fmt, *words)))
    return found


def combine(turns):
    """One figure of several turns: the median of medians, the least minimum, and rates of the former."""
    good = [t for t in turns if "median_ms" in t]
    if not good:
        return {"error": turns[0].get("error", "no figure") if turns else "no figure"}
    result = dict(good[-1])
    result["median_ms"] = statistics.median(t["median_ms"] for t in good)
    for rate in ("images_per_s", "gflops"):
        if rate in result:
            result[rate] *= good[-1]["median_ms"] / result["median_ms"]
    result["min_ms"] = min(t["min_ms"] for t in good)
    result["turns_ms"] = [t["median_ms"] for t in good]
    if "plan_ms" in result:
        result["plan_ms"] = statistics.median(t["plan_ms"] for t in good)
    return result


def measure(tool, peers, net, dtype, parts, o):
    """{label: {part: figures}}"""
    turns = {}
    timed = [p for p in parts if p != "infer32" or BATCH[net] != 32]  # else infer is the same
    for turn in range(o.rounds):
        for label, call in contenders(tool, peers, net, dtype, timed, o):
            before = turns.setdefault(label, {part: [] for part in timed})
            if any("status" in t for part in timed for t in before[part]):
                continue  # refused: this build cannot do it
            say(f"{net} {dtype}, turn {turn + 1} of {o.rounds}: {label}")
            answer = call()
            for part in timed:
                before[part].append(answer if "error" in answer else
                                    answer.get(part, {"error": "does not train"}))
    for by_part in turns.values():
        by_part.update({p: by_part["infer"] for p in parts if p not in timed})
    return {label: {p: combine(t) for p, t in by_part.items()} for label, by_part in turns.items()}


def convolutions(tool, net, dtype, o, *more):
    """A training step's convolutions alone: what the fastest and the planned take, added up."""
    answer = tool.bench("--model", net, "--batch", BATCH[net], "--precision", dtype, "--raw",
                        "--seconds", o.raw_seconds, "--threads", o.threads, *more)
    return {k: v for k, v in answer.items() if k != "rows"}


def raw(tool, net, dtype, o):
    """On one set of buffers: what bounds a step from below."""
    say(f"{net} {dtype}: its convolutions alone")
    return convolutions(tool, net, dtype, o, "--warm")


def regret(tool, net, dtype, o):
    """{plan: figures} of the usual plan and of one that was tuned."""
    figures = {}
    for plan, more in (("untuned", []), ("tuned", ["--tune"])):
        say(f"{net} {dtype}: regret, {plan}")
        figures[plan] = convolutions(tool, net, dtype, o, *more)
    return figures


def threads(tool, net, o):
    """{threads: {part: figures}} with one thread and with all, in turns."""
    turns = {}
    for turn in range(o.rounds):
        for n in dict.fromkeys((1, o.threads)):
            say(f"{net} f32, turn {turn + 1} of {o.rounds}: {n} threads")
            for part in ("train", "infer1"):
                answer = ours(tool, net, "f32", part, o, "--threads", n)
                turns.setdefault(str(n), {}).setdefault(part, []).append(answer)
    return {n: {p: combine(t) for p, t in by_part.items()} for n, by_part in turns.items()}
