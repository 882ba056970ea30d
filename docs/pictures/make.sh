#!/bin/sh
# make.sh BUILD - makes the pictures of this folder; needs Graphviz.
#   gradient.svg  the graph that the listing of README.md prints
#   speed.svg     the table of README.md's section Speed
#   step.svg      tests/golden/step.dot, the training step of docs/internals/architecture.md
set -eu
build=$1
command -v dot >/dev/null || {
    echo "make.sh: dot is missing (apt-get install graphviz)" >&2
    exit 1
}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
# shellcheck disable=SC2016 # backquotes of Markdown
sed -n '/^```c/,/^```$/p' README.md | sed '1d;$d' >"$top/graph.c"
cc -Iinclude "$top/graph.c" -o "$top/graph" -L"$build" -ladjoint
LD_LIBRARY_PATH=$build${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$top/graph" >"$top/graph.dot"
dot -Gnodesep=0.2 -Granksep=0.25 -Tsvg "$top/graph.dot" >docs/pictures/gradient.svg
dot -Tsvg tests/golden/step.dot >docs/pictures/step.svg
awk -f docs/pictures/bars.awk README.md >docs/pictures/speed.svg
