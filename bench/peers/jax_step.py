"""JAX's training and inference steps: compiled functions (jit), SGD with momentum 0.9, channels last;
bf16: weights kept in f32, computed in bf16, batch norm's statistics in f32."""
import argparse
import os

import timing


def limit_threads():
    """XLA takes as many threads as there are processors that the process may use."""
    threads = parse().threads
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def parse():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--version", action="store_true")
    p.add_argument("--net", choices=["lenet", "resnet20", "mobilenet_v1", "vgg6"], default="lenet")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--format", choices=["channels_last"], default="channels_last")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--parts", type=lambda s: s.split(","), default=["train", *timing.INFERENCE])
    return p.parse_args()


limit_threads()
os.environ.setdefault("JAX_PLATFORMS", "cpu")
try:
    import jax
    import numpy as np
    from jax import lax
    from jax import numpy as jnp
except ImportError as e:
    timing.skip(f"JAX: {e}")


class Weights:
    """The weights of a net in the order in which its layers ask for them: drawn at the first call of
    the net, taken from a list afterwards."""

    def __init__(self, dtype, training, values=None):
        self.dtype, self.training, self.values = dtype, training, values
        self.made = []
        self.random = np.random.default_rng(1)

    def take(self, *shape, fill=None):
        if self.values is not None:
            value = self.values[len(self.made)]
        elif fill is None:
            deviation = (2 / max(int(np.prod(shape[:-1])), 1)) ** 0.5
            value = jnp.asarray(self.random.normal(0, deviation, shape), jnp.float32)
        else:
            value = jnp.full(shape, fill, jnp.float32)
        self.made.append(value)
        return value


def conv(w, x, filters, kernel, stride=1, depthwise=False, bias=False):
    channels = x.shape[-1]
    shape = (kernel, kernel, 1 if depthwise else channels, filters)
    y = lax.conv_general_dilated(
        x, w.take(*shape).astype(w.dtype), (stride, stride), 2 * [(kernel // 2, kernel // 2)],
        dimension_numbers=("NHWC", "HWIO", "NHWC"), feature_group_count=channels if depthwise else 1)
    return y + w.take(filters, fill=0).astype(w.dtype) if bias else y


def norm(w, x):
    scale, shift = w.take(x.shape[-1], fill=1), w.take(x.shape[-1], fill=0)
    y = x.astype(jnp.float32)
    if w.training:
        mean = y.mean((0, 1, 2))
        variance = (y * y).mean((0, 1, 2)) - mean * mean
    else:
        mean, variance = 0.0, 1.0
    return ((y - mean) * (lax.rsqrt(variance + 1e-5) * scale) + shift).astype(w.dtype)


def conv_norm(w, x, filters, kernel, stride=1, depthwise=False):
    return norm(w, conv(w, x, filters, kernel, stride, depthwise))


def dense(w, x, units):
    return x @ w.take(x.shape[-1], units).astype(w.dtype) + w.take(units, fill=0).astype(w.dtype)


def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def lenet(w, x):
    for filters in (32, 64):
        x = max_pool(jax.nn.relu(conv(w, x, filters, 5, bias=True)))
    return jax.nn.relu(dense(w, x.reshape(x.shape[0], -1), 128))


def resnet20(w, x):
    x = jax.nn.relu(conv_norm(w, x, 16, 3))
    for stage in range(3):
        for block in range(3):
            filters, stride = 16 << stage, 2 if stage > 0 and block == 0 else 1
            y = jax.nn.relu(conv_norm(w, x, filters, 3, stride))
            y = conv_norm(w, y, filters, 3)
            x = conv_norm(w, x, filters, 1, stride) if stride > 1 else x
            x = jax.nn.relu(x + y)
    return x.mean((1, 2))


def mobilenet_v1(w, x):
    x = jax.nn.relu(conv_norm(w, x, 8, 3, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + 5 * [(128, 1)]
    for filters, stride in blocks + [(256, 2), (256, 1)]:
        x = jax.nn.relu(conv_norm(w, x, x.shape[-1], 3, stride, depthwise=True))
        x = jax.nn.relu(conv_norm(w, x, filters, 1))
    return x.mean((1, 2))


def vgg6(w, x):
    for filters in (64, 128, 256):
        for _ in range(2):
            x = jax.nn.relu(conv(w, x, filters, 3, bias=True))
        x = max_pool(x)
    return jax.nn.relu(dense(w, x.reshape(x.shape[0], -1), 256))


# name: how it is made, an image's shape, classes
NETS = {
    "lenet": (lenet, (28, 28, 1), 10),
    "resnet20": (resnet20, (32, 32, 3), 10),
    "mobilenet_v1": (mobilenet_v1, (96, 96, 3), 2),
    "vgg6": (vgg6, (32, 32, 3), 10),
}


def measure(o):
    net, shape, classes = NETS[o.net]
    dtype = jnp.bfloat16 if o.dtype == "bf16" else jnp.float32
    random = np.random.default_rng(2)
    x = jnp.asarray(random.normal(size=(o.batch, *shape)), jnp.float32)
    y = jnp.asarray(random.integers(0, classes, o.batch))

    def logits(values, images, training):
        w = Weights(dtype, training, values)
        return dense(w, net(w, images.astype(dtype)), classes).astype(jnp.float32), w.made

    values = logits(None, x[:1], True)[1]
    momenta = [jnp.zeros_like(v) for v in values]

    def loss(values):
        chances = jax.nn.log_softmax(logits(values, x, True)[0])
        return -jnp.take_along_axis(chances, y[:, None], 1).mean()

    @jax.jit
    def train(values, momenta):
        value, gradients = jax.value_and_grad(loss)(values)
        momenta = [0.9 * m + g for m, g in zip(momenta, gradients)]
        return value, [v - 0.01 * m for v, m in zip(values, momenta)], momenta

    infer = jax.jit(lambda values, images: logits(values, images, False)[0])
    answer = {"params": int(sum(v.size for v in values))}
    if "train" in o.parts:
        state = [values, momenta]

        def step():
            value, *state[:] = train(*state)
            return float(value)

        answer["train"] = timing.measure(step, o.seconds)
        answer["train"]["peak_rss_bytes"] = timing.peak_rss_bytes()
    for part, n in timing.inference_sizes(o).items():
        images = x[np.arange(n) % o.batch]
        answer[part] = timing.measure(
            lambda images=images: np.asarray(infer(values, images)), o.seconds)
    timing.say(answer)


def main():
    o = parse()
    if o.version:
        timing.say({"peer": "JAX", "version": jax.__version__, "formats": ["channels_last"]})
    else:
        measure(o)


if __name__ == "__main__":
    main()
