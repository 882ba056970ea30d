"""PyTorch's training and inference steps: forward, backward, SGD with momentum 0.9; bf16 by autocast."""
import argparse

import timing

try:
    import torch
except ImportError as e:
    timing.skip(f"PyTorch: {e}")

from torch.nn import functional

import torch_nets

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
COMPILED = "compiled "
FORMATS = list(LAYOUTS)
if hasattr(torch, "compile"):  # since 2.0; needs a C++ compiler
    FORMATS += [COMPILED + name for name in LAYOUTS]


def measure(o):
    make, shape, classes = torch_nets.NETS[o.net]
    memory = {"memory_format": LAYOUTS[o.format.removeprefix(COMPILED)]}
    torch.set_num_threads(o.threads)
    net = make().to(**memory)
    if o.format.startswith(COMPILED):
        net = torch.compile(net, dynamic=False)  # each batch size has kernels of its own
    x = torch.randn(o.batch, *shape).contiguous(**memory)
    y = torch.randint(0, classes, (o.batch,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def half():
        return torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.dtype == "bf16")

    def train():
        optimizer.zero_grad()
        with half():
            loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return float(loss)

    def infer(images):
        with torch.no_grad(), half():
            return net(images)

    answer = {"params": sum(p.numel() for p in net.parameters())}
    if "train" in o.parts:
        net.train()
        answer["train"] = timing.measure(train, o.seconds)
        answer["train"]["peak_rss_bytes"] = timing.peak_rss_bytes()
    net.eval()
    for part, n in timing.inference_sizes(o).items():
        images = torch.randn(n, *shape).contiguous(**memory)
        answer[part] = timing.measure(lambda images=images: infer(images), o.seconds)
    timing.say(answer)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--version", action="store_true")
    p.add_argument("--net", choices=torch_nets.NETS, default="lenet")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--format", choices=FORMATS, default="contiguous")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--parts", type=lambda s: s.split(","), default=["train", *timing.INFERENCE])
    o = p.parse_args()
    if o.version:
        timing.say({"peer": "PyTorch", "version": torch.__version__, "formats": FORMATS})
    else:
        measure(o)


if __name__ == "__main__":
    main()
