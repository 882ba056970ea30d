#!/bin/sh
# test_reference.sh - the API reference is written without a warning: every public declaration has a
# comment of its own; and one that has none is reported by name. $BUILD: a build folder.
set -eu
if ! command -v doxygen >/dev/null; then
    echo "skipped: no doxygen here"
    exit 77
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
docs/reference.sh "$top"
for text in 'adj_conv2d_backprop_filter' 'Status of a call' 'depthwise convolution with the attributes'; do
    grep -rqF "$text" "$top/docs/html" || {
        echo "test_reference: the reference does not hold \"$text\""
        exit 1
    }
done

# The front page: what the library is, and the headers.
for text in 'C11 library' 'adjoint_fit.h'; do
    grep -qF "$text" "$top/docs/html/index.html" || {
        echo "test_reference: the front page does not hold \"$text\""
        exit 1
    }
done

# The filter: a comment goes with all names of a list, a declaration without one is reported.
mkdir "$top/include" "$top/out"
cp -r docs "$top"
cat >"$top/include/adjoint.h" <<'END'
/* adjoint.h - three declarations. */
/* A pair. */
typedef struct {
    int a, b; /* <both> of 50% @ home */
} good;
/* One. */
int one(void);
int two(void);
enum { THREE = 3 }; /* three */
END
if (cd "$top" && docs/reference.sh out) >"$top/log" 2>&1; then
    echo "test_reference: an undocumented function passed"
    exit 1
fi
if ! grep -q 'two(void)' "$top/log" || grep -q 'one(void)\|good\|THREE' "$top/log"; then
    cat "$top/log"
    echo "test_reference: expected a warning of two() and no other"
    exit 1
fi
