#!/bin/sh
# test_examples.sh - the examples that are quick run and are content with what they find (their exit
# status says so); lenet and mobilenet, which train for longer, are built. $BUILD: a build folder.
set -eu
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

# run NAME ARGUMENTS...: prints what it printed if it is not content.
run() {
    example=$1
    shift
    "$BUILD/examples/$example" "$@" >"$top/out" 2>&1 || {
        echo "test_examples: $example $* failed"
        cat "$top/out"
        exit 1
    }
}
run second_derivative
run compare_backends lenet 2
run compare_backends ds_cnn 1
run custom_op
run gradient_penalty
run segmentation
run autoencoder
run training_loop
"$BUILD/examples/own_net" "$top/own" 1 | grep -q "^epoch 1: .* test accuracy"
# A grey image of 3 x 2 pixels; the ten probabilities add up to 1.
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\003\000\000\000\002\010' \
    '\000\000\000\000\270\037\071\306\000\000\000\020\111\104\101\124\170\234\143\310\232\361\223\111\122' \
    '\341\074\000\014\275\003\006\114\166\343\243\000\000\000\000\111\105\116\104\256\102\140\202' >"$top/image.png"
"$BUILD/adjoint" train --model lenet5 --epochs 1 --batch 200 --out "$top/weights.safetensors" >"$top/out"
"$BUILD/examples/predict" "$top/weights.safetensors" "$top/image.png" |
    awk '{ sum += $2 } END { exit !(NR == 10 && sum > 0.999 && sum < 1.001) }'
