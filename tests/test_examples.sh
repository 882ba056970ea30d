#!/bin/sh
# test_examples.sh - the examples that are quick run and are content with what they find; the others are
# built. $BUILD: a build folder.
set -eu
"$BUILD/examples/second_derivative"
"$BUILD/examples/compare_backends" lenet 2
"$BUILD/examples/compare_backends" ds_cnn 1
