#!/bin/sh
# test_headers.sh - each public header by itself, as C11 and as C++17, with every warning an error; and
# a C++ program that calls the library links. $BUILD: a build folder; $CROSS: a cross compiler's prefix.
set -u
status=0
c=${CROSS:+${CROSS}g}cc cxx=${CROSS:-}g++
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for header in include/*.h; do
    echo "#include \"$(basename "$header")\"" >"$folder/one.c"
    "$c" -std=c11 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only "$folder/one.c" || status=1
done
if [ $status = 0 ] && ! command -v "$cxx" >/dev/null; then
    echo "skipped: no C++ compiler ($cxx); as C11 the headers are right"
    exit 77
fi
for header in include/*.h; do
    echo "#include \"$(basename "$header")\"" >"$folder/one.cpp"
    "$cxx" -std=c++17 -Wall -Wextra -Wpedantic -Werror -Iinclude -fsyntax-only "$folder/one.cpp" || status=1
done
cat >"$folder/program.cpp" <<'END'
#include <cstring>

#include "adjoint_ext.h"
#include "adjoint_nn.h"

int main()
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, adj_shape{1, {3}});
    int relu = 0;
    while (adj_ops[relu] != nullptr && std::strcmp(adj_ops[relu]->name, "relu") != 0)
        relu++;
    adj_node *y = adj_node_new1(adj_ops[relu], adj_layer_dense(x, "dense", 2, nullptr), nullptr);
    int is_right = y != nullptr && adj_graph_status(g) == ADJ_OK && adj_version() == ADJ_VERSION;
    adj_graph_free(g);
    return is_right ? 0 : 1;
}
END
"$cxx" -std=c++17 -Iinclude "$folder/program.cpp" "$BUILD/libadjoint.a" -ldnnl -fopenmp -lm -o "$folder/program" || exit 1
[ -n "${CROSS:-}" ] || "$folder/program" || {
    echo "test_headers: the C++ program failed"
    status=1
}
exit $status
