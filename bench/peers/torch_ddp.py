"""PyTorch's DistributedDataParallel over gloo: training steps of several processes of one thread each,
every one with its part of the batch; forward, backward, SGD with momentum 0.9."""
import argparse
import os
import socket
import tempfile

import timing

try:
    import torch
    from torch import distributed, multiprocessing
except ImportError as e:
    timing.skip(f"PyTorch: {e}")

from torch.nn import functional

import torch_nets

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}


def steps_for(call, seconds):
    """How many steps take so long, the same number in each process."""
    once = timing.measure(call, 0)["median_ms"] / 1e3
    count = torch.tensor([max(3.0, seconds / once)])
    distributed.broadcast(count, 0)
    return int(count.item())


def run(rank, o, port, path):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank % len(os.sched_getaffinity(0))]})
    distributed.init_process_group("gloo", rank=rank, world_size=o.processes)
    make, shape, classes = torch_nets.NETS[o.net]
    memory = {"memory_format": LAYOUTS[o.format]}
    torch.set_num_threads(1)
    net = torch.nn.parallel.DistributedDataParallel(make().to(**memory))
    x = torch.randn(o.batch // o.processes, *shape).contiguous(**memory)
    y = torch.randint(0, classes, (len(x),))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)

    def train():
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=o.dtype == "bf16"):
            loss = functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        return float(loss)

    count = steps_for(train, o.seconds)
    times = []
    for _ in range(count):
        times.append(timing.measure_once(train))
    if rank == 0:
        with open(path, "w", encoding="ascii") as f:
            f.write(timing.line({"train": timing.summary(times)}))
    distributed.barrier()
    distributed.destroy_process_group()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--version", action="store_true")
    p.add_argument("--net", choices=torch_nets.NETS, default="lenet")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--format", choices=list(LAYOUTS), default="contiguous")
    p.add_argument("--batch", type=int, default=64, help="of all processes together")
    p.add_argument("--processes", type=int, default=2)
    p.add_argument("--seconds", type=float, default=3)
    o = p.parse_args()
    if o.version:
        timing.say({"peer": "PyTorch DDP", "version": torch.__version__,
                    "formats": list(LAYOUTS), "parts": ["train"]})
        return
    with tempfile.NamedTemporaryFile("r") as answer:
        multiprocessing.spawn(run, args=(o, free_port(), answer.name), nprocs=o.processes)
        print(answer.read(), end="", flush=True)


if __name__ == "__main__":
    main()
