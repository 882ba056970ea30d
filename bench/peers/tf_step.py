"""TensorFlow's training and inference steps: compiled functions (tf.function), SGD with momentum 0.9,
channels last; bf16 by Keras' mixed precision."""
import argparse
import os

import timing

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
try:
    import tensorflow as tf
except ImportError as e:
    timing.skip(f"TensorFlow: {e}")

layers = tf.keras.layers


def conv_bn(x, filters, kernel, stride=1):
    # one pixel on every side, as PyTorch pads; SAME would pad a stride of 2 unevenly
    if kernel > 1:
        x = layers.ZeroPadding2D(kernel // 2)(x)
    x = layers.Conv2D(filters, kernel, stride, use_bias=False)(x)
    return layers.BatchNormalization()(x)


def lenet(x):
    for filters in (32, 64):
        x = layers.Conv2D(filters, 5, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D(2)(x)
    return layers.Dense(128, activation="relu")(layers.Flatten()(x))


def resnet20(x):
    x = layers.ReLU()(conv_bn(x, 16, 3))
    for stage in range(3):
        for block in range(3):
            filters, stride = 16 << stage, 2 if stage > 0 and block == 0 else 1
            y = layers.ReLU()(conv_bn(x, filters, 3, stride))
            y = conv_bn(y, filters, 3)
            x = conv_bn(x, filters, 1, stride) if stride > 1 else x
            x = layers.ReLU()(layers.Add()([x, y]))
    return layers.GlobalAveragePooling2D()(x)


def mobilenet_v1(x):
    x = layers.ReLU()(conv_bn(x, 8, 3, 2))
    blocks = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2)] + 5 * [(128, 1)]
    for filters, stride in blocks + [(256, 2), (256, 1)]:
        x = layers.DepthwiseConv2D(3, stride, use_bias=False)(layers.ZeroPadding2D(1)(x))
        x = layers.ReLU()(layers.BatchNormalization()(x))
        x = layers.ReLU()(conv_bn(x, filters, 1))
    return layers.GlobalAveragePooling2D()(x)


def vgg6(x):
    for filters in (64, 128, 256):
        for _ in range(2):
            x = layers.Conv2D(filters, 3, padding="same", activation="relu")(x)
        x = layers.MaxPooling2D(2)(x)
    return layers.Dense(256, activation="relu")(layers.Flatten()(x))


# name: how it is made, an image's shape, classes
NETS = {
    "lenet": (lenet, (28, 28, 1), 10),
    "resnet20": (resnet20, (32, 32, 3), 10),
    "mobilenet_v1": (mobilenet_v1, (96, 96, 3), 2),
    "vgg6": (vgg6, (32, 32, 3), 10),
}


def measure(o):
    make, shape, classes = NETS[o.net]
    tf.config.threading.set_intra_op_parallelizm_threads(o.threads)
    tf.config.threading.set_inter_op_parallelizm_threads(1)
    if o.dtype == "bf16":
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
    images = tf.keras.Input(shape)
    net = tf.keras.Model(images, layers.Dense(classes, dtype="float32")(make(images)))
    x = tf.random.normal((o.batch, *shape))
    y = tf.random.uniform((o.batch,), 0, classes, tf.int32)
    optimizer = tf.keras.optimizers.SGD(0.01, momentum=0.9)

    @tf.function
    def train():
        with tf.GradientTape() as tape:
            logits = net(x, training=True)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        gradients = tape.gradient(loss, net.trainable_variables)
        optimizer.apply_gradients(zip(gradients, net.trainable_variables))
        return loss

    @tf.function
    def infer(images):
        return net(images, training=False)

    answer = {"params": int(sum(tf.size(v) for v in net.trainable_variables))}
    if "train" in o.parts:
        answer["train"] = timing.measure(lambda: float(train()), o.seconds)
        answer["train"]["peak_rss_bytes"] = timing.peak_rss_bytes()
    for part, n in timing.inference_sizes(o).items():
        images = tf.random.normal((n, *x.shape[1:]))
        answer[part] = timing.measure(lambda images=images: infer(images).numpy(), o.seconds)
    timing.say(answer)


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--version", action="store_true")
    p.add_argument("--net", choices=NETS, default="lenet")
    p.add_argument("--dtype", choices=["f32", "bf16"], default="f32")
    p.add_argument("--format", choices=["channels_last"], default="channels_last")
    p.add_argument("--batch", type=int, default=64)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--seconds", type=float, default=3)
    p.add_argument("--parts", type=lambda s: s.split(","), default=["train", *timing.INFERENCE])
    o = p.parse_args()
    if o.version:
        timing.say({"peer": "TensorFlow", "version": tf.__version__, "formats": ["channels_last"]})
    else:
        measure(o)


if __name__ == "__main__":
    main()
