"""ONNX Runtime's inference of PyTorch's models, written to ONNX in memory: f32 only, it has no bf16
convolution for CPUs."""
import argparse
import inspect
import io

import timing

try:
    import onnxruntime
    import torch
    import onnx as _  # the exporter needs it
except ImportError as e:
    timing.skip(f"ONNX Runtime: {e}")

import torch_nets


def session_of(net, shape, threads):
    file = io.BytesIO()
    takes = inspect.signature(torch.onnx.export).parameters
    kept = {"dynamo": False} if "dynamo" in takes else {}
    torch.onnx.export(net.eval(), torch.randn(1, *shape), file, input_names=["x"],
                      output_names=["y"], dynamic_axes={"x": {0: "n"}, "y": {0: "n"}}, **kept)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    return onnxruntime.InferenceSession(
        file.getvalue(), options, providers=["CPUExecutionProvider"])


def measure(o):
    if o.dtype != "f32":
        timing.skip("ONNX Runtime: no bf16 convolutions on CPUs")
    make, shape, _ = torch_nets.NETS[o.net]
    net = make()
    session = session_of(net, shape, o.threads)
    answer = {"params": sum(p.numel() for p in net.parameters())}
    for part, n in timing.inference_sizes(o).items():
        x = {"x": torch.randn(n, *shape).numpy()}
        answer[part] = timing.measure(lambda x=x: session.run(None, x), o.seconds)
    timing.say(answer)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--version", action="store_true")
    p.add_argument("--net", choices=torch_nets.NETS, default="lenet")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--format", choices=["contiguous"], default="contiguous")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--parts", type=lambda s: s.split(","), default=timing.INFERENCE)
    o = p.parse_args()
    if o.version:
        timing.say({"peer": "ONNX-Runtime", "version": onnxruntime.__version__,
                    "formats": ["contiguous"], "parts": timing.INFERENCE})
    else:
        measure(o)


if __name__ == "__main__":
    main()
