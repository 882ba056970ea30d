#!/bin/sh
# reference.sh BUILD - writes the API reference of include/ by Doxygen to BUILD/docs/html, and fails by
# name on a public declaration without a comment.
set -eu
command -v doxygen >/dev/null || {
    echo "reference.sh: doxygen is missing (apt-get install doxygen)" >&2
    exit 1
}
ADJOINT_DOCS=$1/docs
ADJOINT_VERSION=$(sed -n 's/^#define ADJ_VERSION_TEXT "\(.*\)".*/\1/p' include/adjoint.h)
export ADJOINT_DOCS ADJOINT_VERSION
rm -rf "$ADJOINT_DOCS"
mkdir -p "$ADJOINT_DOCS"
doxygen docs/Doxyfile
if sed "s|$PWD/||" "$ADJOINT_DOCS/warnings" | grep .; then
    exit 1
fi
