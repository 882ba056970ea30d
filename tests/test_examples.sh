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
# These take minutes under sanitizers; what they train has tests of its own.
if [ -z "${SANITIZER_LOGS:-}" ]; then
    run segmentation
    run autoencoder
fi
run training_loop
run finetune "$top/ten.safetensors" "$top/two.safetensors"
"$BUILD/examples/own_net" "$top/own" 1 | grep -q "^epoch 1: .* test accuracy"
# A gray image of 3 x 2 pixels; the ten probabilities add up to 1.
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\003\000\000\000\002\010' \
    '\000\000\000\000\270\037\071\306\000\000\000\020\111\104\101\124\170\234\143\310\232\361\223\111\122' \
    '\341\074\000\014\275\003\006\114\166\343\243\000\000\000\000\111\105\116\104\256\102\140\202' >"$top/image.png"
"$BUILD/adjoint" train --model lenet5 --epochs 1 --batch 200 --out "$top/weights.safetensors" >"$top/out"
"$BUILD/examples/predict" "$top/weights.safetensors" "$top/image.png" |
    awk '{ sum += $2 } END { exit !(NR == 10 && sum > 0.999 && sum < 1.001) }'
# A folder of two classes: level and upright stripes, 8 x 8 pixels.
mkdir -p "$top/stripes/level" "$top/stripes/upright"
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\010\000\000\000\010\001' \
    '\000\000\000\000\354\164\203\046\000\000\000\020\111\104\101\124\170\332\143\370\317\360\237\001\004\240\064' \
    '\000\047\350\003\375\023\143\373\137\000\000\000\000\111\105\116\104\256\102\140\202' >"$top/level.png"
printf '%b' '\211\120\116\107\015\012\032\012\000\000\000\015\111\110\104\122\000\000\000\010\000\000\000\010\001' \
    '\000\000\000\000\354\164\203\046\000\000\000\014\111\104\101\124\170\332\143\070\303\200\002\001\063\020\006' \
    '\141\264\363\134\151\000\000\000\000\111\105\116\104\256\102\140\202' >"$top/upright.png"
for i in $(seq 30); do
    cp "$top/level.png" "$top/stripes/level/$i.png"
    cp "$top/upright.png" "$top/stripes/upright/$i.png"
done
for class in level upright; do
    "$BUILD/examples/own_images" "$top/stripes" "$top/stripes.safetensors" "$top/$class.png" >"$top/out"
    if ! grep -q "^epoch 10: .*held out 100.0 %" "$top/out" || ! grep -q "^$class 0.[5-9]\|^$class 1" "$top/out"; then
        echo "test_examples: own_images does not see that stripes are $class"
        cat "$top/out"
        exit 1
    fi
done
# The same images in an IDX file, whose classes have no names.
mkdir "$top/idx"
level='\377\377\377\377\377\377\377\377\000\000\000\000\000\000\000\000'
upright='\377\000\377\000\377\000\377\000\377\000\377\000\377\000\377\000'
{
    printf '\000\000\010\003\000\000\000\074\000\000\000\010\000\000\000\010'
    for i in $(seq 30); do printf '%b' "$level$level$level$level$upright$upright$upright$upright"; done
} >"$top/idx/train-images-idx3-ubyte"
{
    printf '\000\000\010\001\000\000\000\074'
    for i in $(seq 30); do printf '\000\001'; done
} >"$top/idx/train-labels-idx1-ubyte"
"$BUILD/examples/own_images" "$top/idx" "$top/idx.safetensors" "$top/level.png" >"$top/out" || true
if ! grep -q "^0 0.[5-9]\|^0 1" "$top/out" || ! grep -q "^1 0.[0-5]" "$top/out"; then
    echo "test_examples: own_images does not print the numbers of classes without names"
    cat "$top/out"
    exit 1
fi
