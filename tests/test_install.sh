#!/bin/sh
# test_install.sh - installs to a temporary folder and builds programs there through pkg-config, as a
# user would: against the shared and the static libraries, core and io. $BUILD: a release build folder;
# $CROSS: the prefix of the cross compiler that made it.
set -eu
if [ ! -x "$BUILD/adjoint" ]; then
    echo "skipped: there is no tool yet"
    exit 77
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
build=$BUILD
cc=${CROSS:+${CROSS}g}cc

cat >"$top/core.c" <<'END'
#include <adjoint.h>
#include <adjoint_nn.h>

/* d(x*x)/dx at 3 */
int main(void)
{
    adj_graph *g = adj_graph_new();
    adj_node *x = adj_input(g, "x", ADJ_F32, (adj_shape){0}), *dx = NULL;
    adj_exec *e = NULL;
    float in = 3, out = 0;

    adj_grad(adj_square(x), NULL, 1, &x, &dx);
    adj_exec_opts opts = {.n_fetch = 1, .fetch = &dx};
    if (adj_exec_new(g, &opts, &e) != ADJ_OK || adj_set(e, x, &in, sizeof in) != ADJ_OK ||
        adj_run(e) != ADJ_OK || adj_get(e, dx, &out, sizeof out) != ADJ_OK)
        return fprintf(stderr, "core: %s\n", adj_exec_message(e)), 1;
    adj_exec_free(e);
    adj_graph_free(g);
    return out == 6 ? 0 : 2;
}
END
cat >"$top/data.c" <<'END'
#include <adjoint_data.h>

int main(void)
{
    adj_dataset *digits = NULL;
    adj_status status = adj_dataset_digits(ADJ_TEST, 10, 1, &digits);
    adj_dataset_free(digits);
    return status == ADJ_OK ? 0 : 1;
}
END

# As a user installs it.
PREFIX=$top/usr ./install.sh "$build"
export PKG_CONFIG_PATH="$top/usr/lib/pkgconfig"
cd "$top"
flags="-std=c11 -Wall -Wextra -Wpedantic -Werror"

# compile PROGRAM PACKAGE LIBRARY_FLAGS...
compile() {
    # shellcheck disable=SC2046,SC2086 # words
    $cc $flags $(${CROSS:-}pkg-config --cflags "$2") "$1.c" -o "$1" $(shift 2 && ${CROSS:-}pkg-config "$@")
}

compile core adjoint --libs adjoint
compile data adjoint_io --libs adjoint_io
LD_LIBRARY_PATH=$top/usr/lib ./core
LD_LIBRARY_PATH=$top/usr/lib ./data

# Without the shared ones the linker takes the static ones; they define adj_* alone, so that nothing
# clashes with a user's own names.
rm "$top"/usr/lib/*.so*
compile core adjoint --static --libs adjoint
compile data adjoint_io --static --libs adjoint_io
./core
./data
if nm --defined-only "$top"/usr/lib/*.a | awk '$2 ~ /[A-Z]/ && $3 !~ /^adj_/' | grep .; then
    echo "test_install: the static libraries define more than adj_*"
    exit 1
fi
if command -v c++ >/dev/null; then
    for header in adjoint adjoint_nn adjoint_io; do
        echo "#include <$header.h>" | c++ -fsyntax-only -Wall -Wextra -Werror -x c++ \
            $(pkg-config --cflags adjoint) -
    done
fi
"$top/usr/bin/adjoint" --version

# As a packager does: files below DESTDIR, which no installed file mentions.
cd - >/dev/null
DESTDIR=$top/root PREFIX=/usr ./install.sh "$build"
for file in include/adjoint.h lib/libadjoint.so lib/libadjoint.a lib/pkgconfig/adjoint_io.pc bin/adjoint; do
    test -e "$top/root/usr/$file"
done
if grep -r "$top" "$top/root/usr/lib/pkgconfig"; then
    exit 1
fi
