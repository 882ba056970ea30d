#!/usr/bin/env python3
"""keras_nets.py PROGRAM [NAME ...] - networks made with Keras, exported by tf2onnx and run by tests/onnx/train_case.c:
outputs, gradients, and the weights after five steps of SGD with momentum, compared with TensorFlow's.

tf2onnx leaves no batch norm: one after a convolution without bias becomes its bias and a factor in its filter, all
others a factor and a term. For gradients and steps a network with such layers is built, with the weights that these
formulas give. Its variables are found in the file by their values, which are all different."""
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from onnx import numpy_helper

from tensors import distance, read_tensors, write_tensors

BATCH = 4
keras, layers = tf.keras, tf.keras.layers


class Affine(layers.Layer):
    def build(self, shape):
        self.scale, self.offset = (self.add_weight(shape=shape[-1:], name=n) for n in ("scale", "offset"))

    def call(self, x):
        return x * self.scale + self.offset


class Parts:
    """Makes the layers of a network: with batch norms, or with what they are in the file."""

    def __init__(self, has_norms):
        self.has_norms, self.made = has_norms, []

    def add(self, layer, x):
        self.made.append(layer)
        return layer(x)

    def norm(self, x, layer):
        """The layer and its batch norm."""
        is_merged = isinstance(layer, layers.Conv2D) and not layer.use_bias
        if self.has_norms:
            return self.add(layers.BatchNormalization(), self.add(layer, x))
        if is_merged:
            layer.use_bias = True
        x = self.add(layer, x)
        return x if is_merged else self.add(Affine(), x)

    def dense(self, x, units, activation=None):
        return self.add(layers.Dense(units, activation=activation), x)


def cnn(p, x):
    for filters in (8, 16):
        x = p.norm(x, layers.Conv2D(filters, 3, padding="same", use_bias=False))
        x = layers.MaxPooling2D(2)(layers.ReLU()(x))
    return p.dense(layers.Flatten()(x), 10)


def mobilenet(p, x):
    x = layers.ReLU(6)(p.norm(x, layers.Conv2D(8, 3, 2, "same", use_bias=False)))
    for filters, stride in ((16, 1), (32, 2), (32, 1)):
        x = layers.ReLU(6)(p.norm(x, layers.DepthwiseConv2D(3, stride, "same", use_bias=False)))
        x = layers.ReLU(6)(p.norm(x, layers.Conv2D(filters, 1, use_bias=False)))
    return p.dense(layers.GlobalAveragePooling2D()(x), 10)


def residual(p, x):
    x = p.add(layers.Conv2D(8, 3, padding="same", activation="relu"), x)
    for filters, stride in ((8, 1), (16, 2)):
        y = layers.Activation("swish")(p.norm(x, layers.Conv2D(filters, 3, stride, "same")))
        y = p.norm(y, layers.Conv2D(filters, 3, padding="same"))
        x = layers.ReLU()(layers.Add()([x if stride == 1 else p.add(layers.Conv2D(filters, 1, stride), x), y]))
    return p.dense(p.dense(layers.Flatten()(layers.AveragePooling2D(2)(x)), 32, "relu"), 10)


NETWORKS = [cnn, mobilenet, residual]


def make_model(make, has_norms):
    keras.utils.set_random_seed(1)
    p, x = Parts(has_norms), keras.Input((32, 32, 3), name="x")
    return keras.Model(x, make(p, x)), p.made


def draw_vectors(model):
    draw = np.random.default_rng(1)
    for v in model.variables:  # gains, variances: positive; other vectors: near 0
        if len(v.shape) == 1:
            low, high = (0.5, 1.5) if v.path.endswith(("gamma", "moving_variance")) else (-0.2, 0.2)
            v.assign(draw.uniform(low, high, v.shape))


def copy_weights(made, exported):
    """Sets the weights of the network of the file."""
    to = iter(exported)
    for layer in made:
        if not isinstance(layer, layers.BatchNormalization):
            target = next(to)
            target.set_weights(layer.get_weights() + [np.zeros(v.shape) for v in target.weights[len(layer.weights):]])
            is_merged = len(target.weights) > len(layer.weights)
            continue
        scale = (layer.gamma / np.sqrt(layer.moving_variance + layer.epsilon)).numpy()
        offset = (layer.beta - layer.moving_mean * scale).numpy()
        if is_merged:
            target.set_weights([target.get_weights()[0] * scale, offset])
        else:
            next(to).set_weights([scale, offset])


def names_of(path, model):
    """{path of a variable: name of the initializer that has its values}"""
    initial = [(i.name, np.sort(numpy_helper.to_array(i).ravel())) for i in onnx.load(path).graph.initializer]
    found = {}
    for v in model.trainable_variables:
        values = np.sort(v.numpy().ravel())
        found[v.path] = next((n for n, a in initial if a.shape == values.shape and np.allclose(a, values, 1e-5, 1e-7)), None)
    return found


def run(program, path, folder, x, dy):
    write_tensors(folder / "in", {"x": x, "dy": dy})
    said = subprocess.run([program, path, folder / "in", folder / "out"], capture_output=True, text=True, check=False)
    if said.returncode:
        raise RuntimeError(said.stdout.strip()[:300] + said.stderr.strip()[:300])
    return read_tensors(folder / "out")


def compare(program, make, folder):
    draw = np.random.default_rng(2)
    x = draw.standard_normal((BATCH, 32, 32, 3), np.float32)
    dy = draw.standard_normal((BATCH, 10), np.float32)
    model, made = make_model(make, True)
    draw_vectors(model)
    signature = [tf.TensorSpec((None, 32, 32, 3), tf.float32, name="x")]
    tf2onnx.convert.from_keras(model, signature, opset=17, output_path=str(folder / "net.onnx"))
    got = run(program, folder / "net.onnx", folder, x, dy)
    outputs = distance(got["eval"], model(x, training=False).numpy())
    model, exported = make_model(make, False)
    copy_weights(made, exported)
    names = names_of(folder / "net.onnx", model)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(model(x) * dy)
    grads = {v.path: g.numpy() for v, g in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables))}
    least = 1e-3 * max(np.abs(g).max() for g in grads.values())
    sgd = keras.optimizers.SGD(0.1, momentum=0.9)
    for _ in range(5):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) * dy)
        sgd.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    missing = [p for p, n in names.items() if n is None or "grad/" + n not in got]
    found = [(p, n) for p, n in names.items() if p not in missing]
    worst = max(distance(got["grad/" + n].reshape(grads[p].shape), grads[p], least) for p, n in found)
    after = {v.path: v.numpy() for v in model.trainable_variables}
    steps = max(distance(got["after/" + n].reshape(after[p].shape), after[p]) for p, n in found)
    print(f"{make.__name__:14} outputs {outputs:.1e}  gradients {worst:.1e} of {len(found)} variables  "
          f"five steps {steps:.1e}" + (f"  missing {missing}" if missing else ""), flush=True)
    return outputs < 1e-4 and worst < 1e-3 and steps < 1e-4 and not missing


def main():
    program, chosen = sys.argv[1], sys.argv[2:]
    is_good = True
    for make in NETWORKS:
        if not chosen or make.__name__ in chosen:
            with tempfile.TemporaryDirectory() as folder:
                is_good &= compare(program, make, pathlib.Path(folder))
    sys.exit(not is_good)


main()
