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
