#!/bin/sh
# test_python.sh - files of tensors between this program and Python's safetensors, NumPy and PyTorch: each
# reads what the other wrote; and Python's listings of docs/reference/file-formats.md. $BUILD: a build folder; $SAFETENSORS_PYTHON: a Python that has these packages
# (default: python3).
set -u
python=${SAFETENSORS_PYTHON:-python3}
if ! "$python" -c 'import numpy, safetensors.numpy, safetensors.torch, torch' 2>/dev/null; then
    echo "skipped: $python lacks numpy, torch or safetensors (SAFETENSORS_PYTHON names another)"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tool=$BUILD/adjoint

"$python" - "$folder" <<'END' || exit 1
import struct, sys
import numpy
rng = numpy.random.default_rng(1)
for part, n in (("train", 128), ("t10k", 50)):
    with open(f"{sys.argv[1]}/{part}-images-idx3-ubyte", "wb") as f:
        f.write(struct.pack(">4i", 2051, n, 28, 28) + rng.integers(0, 256, (n, 28, 28), "u1").tobytes())
    with open(f"{sys.argv[1]}/{part}-labels-idx1-ubyte", "wb") as f:
        f.write(struct.pack(">2i", 2049, n) + rng.integers(0, 10, n, "u1").tobytes())
END
"$tool" train --data "$folder" --model resnet8 --epochs 1 --batch 32 --optimizer adam --out "$folder/ours.safetensors" \
    --checkpoint "$folder/checkpoint.safetensors" >"$folder/out" || exit 1
"$tool" convert "$folder/ours.safetensors" "$folder/ours.npz" >/dev/null || exit 1
"$tool" convert "$folder/ours.safetensors" "$folder/torch.safetensors" --map pytorch --to-theirs >/dev/null || exit 1

"$python" - "$folder" <<'END' || exit 1
import json, subprocess, sys
import numpy, torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from safetensors.torch import load_file as load_torch, save_file as save_torch

folder = sys.argv[1]
ours = load_file(f"{folder}/ours.safetensors")
archive = numpy.load(f"{folder}/ours.npz")
assert sorted(ours) == sorted(archive.files)
for name in ours:
    assert (ours[name] == archive[name]).all() and ours[name].dtype == archive[name].dtype, name
with safe_open(f"{folder}/ours.safetensors", "numpy") as f:
    card = f.metadata()
assert card["model"] == "resnet8" and json.loads(card["input"]) == [32, 32, 3], card
assert 0 <= float(card["accuracy"]) <= 100 and json.loads(card["classes"]) == 10, card
checkpoint = load_torch(f"{folder}/checkpoint.safetensors")
assert int(checkpoint["adam/step"]) > 0 and checkpoint["conv1/w/adam_m"].shape == (3, 3, 3, 16)

# PyTorch's layouts, by NumPy
theirs = load_torch(f"{folder}/torch.safetensors")
assert (theirs["layer2.0.conv1.weight"].numpy() == ours["block2/conv1/w"].transpose(3, 2, 0, 1)).all()
assert (theirs["fc.weight"].numpy() == ours["logits/w"].T).all()
assert (theirs["bn1.running_var"].numpy() == ours["bn1/running"][1]).all()

# back: what PyTorch saves, with num_batches_tracked, and every type of NumPy's
theirs["bn1.num_batches_tracked"] = torch.tensor(7)
save_torch({k: v.contiguous() for k, v in theirs.items()}, f"{folder}/from_torch.safetensors")
types = {t: numpy.array([[1, 0], [1, 1]]).astype(t) for t in
         ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")}
save_file(types, f"{folder}/types.safetensors")
numpy.savez(f"{folder}/types.npz", **types)
for key in ("mean", "deviation"): # pixels in 0 to 1, as convert takes them, of each of the net's three channels
    v = json.loads(card[key])
    open(f"{folder}/{key}", "w").write(",".join(repr(x / 255) for x in v * (3 // len(v))))
END
"$tool" convert "$folder/from_torch.safetensors" "$folder/back.safetensors" --map pytorch --model resnet8 \
    --mean "$(cat "$folder/mean")" --deviation "$(cat "$folder/deviation")" >/dev/null || exit 1

accuracy() {
    "$tool" eval --data "$folder" "$@" | sed -n 's/.*test loss/test loss/p'
}
want=$(accuracy --weights "$folder/ours.safetensors")
got=$(accuracy --weights "$folder/back.safetensors")
[ -n "$want" ] && [ "$want" = "$got" ] || {
    echo "test_python: PyTorch's file evaluates otherwise: $got, expected $want"
    exit 1
}
for file in types.safetensors types.npz; do
    "$tool" inspect "$folder/$file" >"$folder/out" || exit 1
    [ "$(grep -c '\[2, 2\] *0 to 1, mean 0.75' "$folder/out")" = 12 ] || {
        echo "test_python: $file is read otherwise:"
        cat "$folder/out"
        exit 1
    }
done

# listing WORDS: the indented lines that follow a line of docs/reference/file-formats.md with these words.
listing() {
    awk -v words="$1" 'index($0, words) { found = 1; next } found && /^    / { print substr($0, 5); inside = 1; next }
        inside { exit }' docs/reference/file-formats.md
}
# "data" of three images a file, whose pixels are their labels.
listing "CIFAR's Python version becomes" >"$folder/cifar.py"
(cd "$folder" && "$python" - <<'END' && "$python" cifar.py) || exit 1
import pickle
import numpy
for name in [f"data_batch_{i}" for i in range(1, 6)] + ["test_batch"]:
    labels = [0, 7, 9]
    data = numpy.repeat(numpy.array([labels], "u1").T, 3072, axis=1)
    with open(name, "wb") as f:
        pickle.dump({"data": data, "labels": labels}, f, protocol=2)
END
"$tool" inspect "$folder/cifar10.npz" >"$folder/out" || exit 1
[ "$(grep -cE '^(x_train +u8 +\[15, 3, 32, 32\]|x_test +u8 +\[3, 3, 32, 32\]|y_(train|test) +i64 ).* 0 to 9, ' "$folder/out")" = 4 ] || {
    echo "test_python: CIFAR's pickles become:"
    cat "$folder/out"
    exit 1
}
{
    echo 'import torch; model = torch.nn.Linear(3, 2)'
    listing "From PyTorch:"
    echo 'assert torch.equal(__import__("safetensors.torch").torch.load_file("w.safetensors")["weight"], model.weight)'
} >"$folder/save.py"
(cd "$folder" && "$python" save.py) || exit 1
[ "$("$tool" inspect "$folder/w.safetensors" | grep -cE '^(bias +f32 +\[2\]|weight +f32 +\[2, 3\]) ')" = 2 ] || {
    echo "test_python: adjoint inspect cannot read PyTorch's file"
    exit 1
}
