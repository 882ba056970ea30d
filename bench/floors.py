"""What is to be reached on two cores; by the CPU's maker where the two differ."""

NETS = ["lenet", "resnet20", "mobilenet_v1", "vgg6"]

# Training step: how many times faster than the best of PyTorch's formats.
TRAIN = {"lenet": 2.3, "mobilenet_v1": 2.6, "resnet20": 1.45, "vgg6": 1.35}
TRAIN_FAST = {"vgg6": 2.3, "resnet20": 1.55}
TRAIN_FAST_MEAN = 2.2
TRAIN_BF16 = {"lenet": 1.6, "mobilenet_v1": 3.0, "resnet20": 1.6, "vgg6": 1.25}
# Training step against the best of all peers; ours also with math fast.
_BF16_ALL = {"lenet": 2.3, "resnet20": {"Intel": 2.8, "AMD": 2.2}, "mobilenet_v1": 3.4,
             "vgg6": {"Intel": 1.8, "AMD": 1.4}}
TRAIN_ALL = {
    ("f32", "exact"): {"lenet": 2.0, "resnet20": 1.6, "mobilenet_v1": 3.2,
                       "vgg6": {"Intel": 1.15, "AMD": 2.2}},
    ("f32", "fast"): {"lenet": 2.5, "resnet20": 2.2, "mobilenet_v1": 3.5, "vgg6": 2.6},
    ("bf16", "exact"): _BF16_ALL,
    ("bf16", "fast"): _BF16_ALL,
}
# Inference, three batches, both types, against the best of all peers.
INFER_ALL = 1.0
# Step against the sum of its fastest convolutions alone, tuned: at most.
STEP_TO_RAW = {"f32": {"vgg6": 1.08, "lenet": 1.2, "resnet20": 1.25, "mobilenet_v1": 1.9},
               "bf16": {"resnet20": 1.4}}
# Regret, convolutions alone: the planned kernels against the fastest candidates, at most.
REGRET = {"untuned": 1.15, "tuned": 1.05}
# bf16 against our own exact f32 step.
BF16_GAIN = {"vgg6": 1.6, "resnet20": 1.6}
# Batch 1 inference against PyTorch's.
INFER1 = {"resnet20": 6.0, "mobilenet_v1": 8.0, "vgg6": 4.0, "lenet": 3.0}
PLAN_MS = 250
KANN_MS, KANN_GAIN = 107, 10
# The arena against the largest sum of live buffers: at most.
ARENA = 1.10
# Depthwise cells count from so many operations and channels on, and have this tolerance.
CELL_MFLOP, CELL_CHANNELS, CELL_TOLERANCE = 5, 8, 0.9
# Cells where oneDNN falls to GEMM or reference-like code: against its best candidate.
HOLE_GAIN = 8

# Depthwise, GFLOP/s in f32 on 24x24 maps, batch 32 (8 where channels * multiplier >= 512): the better
# of a throw-away prototype and oneDNN 2.6.3. Rows: kernel, stride, dilation, multiplier; columns: 3,
# 8, 16, 64 and 128 channels; forward, backprop_input, backprop_filter. Taps in the padding count.
DEPTHWISE_CHANNELS = [3, 8, 16, 64, 128]
DEPTHWISE = """
3 1 1 1  38,34,36     147,109,118  275,196,303  327,195,304  254,151,150
3 1 1 2  32,68,35     142,155,144  137,140,192  203,152,183  95,76,62
3 1 1 8  121,101,122  230,161,209  217,154,208  194,153,188  116,104,121
3 1 2 1  51,46,47     147,126,136  233,196,209  277,178,193  189,148,107
3 1 2 2  33,68,27     148,157,148  195,162,185  195,147,183  92,81,62
3 1 2 8  126,127,103  192,149,193  186,140,191  185,142,181  109,105,97
3 2 1 1  25,7,23      75,27,71     155,72,206   157,104,152  141,101,111
3 2 1 2  22,13,22     53,37,53     83,53,82     67,65,93     92,62,58
3 2 1 8  84,31,94     110,62,125   109,60,111   102,59,91    101,59,100
3 2 2 1  20,8,7       79,29,21     161,76,114   208,75,121   194,78,101
3 2 2 2  21,14,8      57,41,57     81,59,77     99,58,92     95,58,88
3 2 2 8  86,34,28     104,57,97    102,54,94    97,55,88     99,55,95
5 1 1 1  80,65,63     215,165,189  413,213,289  454,261,278  313,226,203
5 1 1 2  55,93,53     195,200,242  182,219,281  236,202,175  192,136,111
5 1 1 8  179,134,153  242,210,282  248,208,282  245,205,289  220,154,187
5 1 2 1  65,63,53     183,170,202  296,207,278  385,227,254  317,175,117
5 1 2 2  57,98,53     190,198,236  186,174,257  215,195,233  165,131,85
5 1 2 8  194,192,144  232,202,260  230,199,253  225,196,248  200,163,133
5 2 1 1  50,17,18     145,52,47    303,132,156  325,181,155  234,179,151
5 2 1 2  37,27,30     106,83,116   147,117,151  160,137,164  157,134,160
5 2 1 8  142,60,124   172,130,178  171,128,175  165,126,173  164,124,172
5 2 2 1  38,17,17     148,57,49    298,126,121  354,144,151  336,140,146
5 2 2 2  37,26,18     102,79,111   135,110,139  150,112,158  152,83,145
5 2 2 8  147,72,60    160,111,170  159,109,169  141,103,158  152,107,163
"""


def of(floor, cpu):
    """A floor for this CPU, whose name has its maker's in it."""
    if not isinstance(floor, dict):
        return floor
    return floor["Intel" if "Intel" in cpu else "AMD"]


def depthwise_floors():
    """{(kernel, stride, dilation, multiplier, channels): {"F": GFLOP/s, "BD": ..., "BW": ...}}"""
    floors = {}
    for line in DEPTHWISE.split("\n")[1:-1]:
        words = line.split()
        for channels, cell in zip(DEPTHWISE_CHANNELS, words[4:]):
            key = (*map(int, words[:4]), channels)
            floors[key] = dict(zip(("F", "BD", "BW"), map(int, cell.split(","))))
    return floors
