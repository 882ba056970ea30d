#!/bin/sh
# test_install.sh - installs to a temporary folder and builds programs there through pkg-config and CMake,
# as a user would, in C and C++: against the shared and the static libraries, core, io and small. $BUILD: a release build folder;
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
PREFIX=$top/usr ./install.sh "$build" >/dev/null
export PKG_CONFIG_PATH="$top/usr/lib/pkgconfig"
cd "$top"
libraries=$top/usr/lib${DNNL:+:$DNNL/lib} # where a oneDNN of one's own is not where the loader looks
flags="-std=c11 -Wall -Wextra -Wpedantic -Werror"

# compile PROGRAM PACKAGE LIBRARY_FLAGS...
compile() {
    # shellcheck disable=SC2046,SC2086 # words
    $cc $flags $(${CROSS:-}pkg-config --cflags "$2") "$1.c" -o "$1" $(shift 2 && ${CROSS:-}pkg-config "$@")
}

compile core adjoint --libs adjoint
compile data adjoint_io --libs adjoint_io
LD_LIBRARY_PATH=$libraries ./core
LD_LIBRARY_PATH=$libraries ./data
cp core.c small.c
compile small adjoint_small --libs adjoint_small
if readelf -d small | grep -E 'NEEDED.*(adjoint|dnnl)'; then
    echo "test_install: the small library needs more than it says"
    exit 1
fi
./small

# The same from C++, with each public header.
cxx=${CROSS:-}g++
if command -v "$cxx" >/dev/null; then
    {
        sed -n '/#include/p' core.c
        for header in "$top"/usr/include/*.h; do
            echo "#include <${header##*/}>"
        done
        cat <<END
int main()
{
    adj_graph *g = adj_graph_new();
    adj_dataset *digits = nullptr;
    bool is_right = adj_model_find("lenet", nullptr) != nullptr && adj_graph_status(g) == ADJ_OK &&
                    adj_dataset_digits(ADJ_TEST, 10, 1, &digits) == ADJ_OK && adj_ops[0] != nullptr;
    adj_gradcheck_free(nullptr);
    adj_dataset_free(digits);
    adj_graph_free(g);
    return is_right ? 0 : 1;
}
END
    } >plus.cpp
    # shellcheck disable=SC2046,SC2086 # words
    "$cxx" -std=c++17 -Wall -Wextra -Wpedantic -Werror plus.cpp -o plus $(${CROSS:-}pkg-config --cflags --libs adjoint_io)
    LD_LIBRARY_PATH=$libraries ./plus
fi

# By CMake: shared, and static on request; another minor version is refused.
if [ -z "${CROSS:-}" ] && command -v cmake >/dev/null; then
    mkdir cmake
    cat >cmake/CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.13)
project(user C)
find_package(adjoint 0.3 REQUIRED)
add_executable(core ../core.c)
target_link_libraries(core PRIVATE adjoint::adjoint)
add_executable(data ../data.c)
target_link_libraries(data PRIVATE adjoint::adjoint_io)
find_package(adjoint 0.1 QUIET)
if(adjoint_FOUND)
    message(FATAL_ERROR "0.3 passed for 0.1")
endif()
END
    for static in OFF ON; do
        {
            cmake -S cmake -B "cmake/$static" -DCMAKE_PREFIX_PATH="$top/usr" -DADJOINT_USE_STATIC_LIBS=$static &&
                cmake --build "cmake/$static"
        } >cmake.log 2>&1 || {
            cat cmake.log
            exit 1
        }
        LD_LIBRARY_PATH=$libraries "cmake/$static/core"
        LD_LIBRARY_PATH=$libraries "cmake/$static/data"
        case "$static $(readelf -d "cmake/$static/core" | grep -c 'NEEDED.*libadjoint')" in
        "OFF 1" | "ON 0") ;;
        *)
            echo "test_install: CMake linked the wrong library (static: $static)"
            exit 1
            ;;
        esac
    done
else
    echo "[SKIP] test_install: no cmake here to link by"
fi

# Without the shared ones the linker takes the static ones; they define adj_* alone, so that nothing
# clashes with a user's own names.
rm "$top"/usr/lib/*.so*
compile core adjoint --static --libs adjoint
./core
echo 'int main(void) { return 0; }' >zip.c
# shellcheck disable=SC2046 # words
if $cc zip.c -o zip $(${CROSS:-}pkg-config --static --libs libzip) 2>/dev/null; then
    compile data adjoint_io --static --libs adjoint_io
    ./data
else
    echo "[SKIP] test_install: libzip's own libraries are not here to be linked by its static flags"
fi
if nm --defined-only "$top"/usr/lib/*.a | awk '$2 ~ /[A-Z]/ && $3 !~ /^adj_/' | grep .; then
    echo "test_install: the static libraries define more than adj_*"
    exit 1
fi
"$top/usr/bin/adjoint" --version

# As a packager does: files below DESTDIR, which no installed file mentions.
cd - >/dev/null
DESTDIR=$top/root PREFIX=/usr ./install.sh "$build"
for file in include/adjoint.h lib/libadjoint.so lib/libadjoint.a lib/libadjoint_small.a lib/pkgconfig/adjoint_io.pc lib/pkgconfig/adjoint_small.pc \
    lib/cmake/adjoint/adjointConfig.cmake bin/adjoint; do
    test -e "$top/root/usr/$file"
done
if grep -r "$top" "$top/root/usr/lib/pkgconfig" "$top/root/usr/lib/cmake"; then
    exit 1
fi
# Nothing installed has symbols or lines for a debugger.
for file in bin/adjoint lib/libadjoint.a lib/libadjoint_small.a lib/libadjoint.so lib/libadjoint_io.so; do
    if readelf -S "$top/root/usr/$file" | grep -q 'debug_info'; then
        echo "test_install: $file is not stripped"
        exit 1
    fi
done

# What is uninstalled is all that was installed, and what is not ours stays.
touch "$top/root/usr/lib/libother.so"
DESTDIR=$top/root PREFIX=/usr ./install.sh --uninstall "$build"
if find "$top/root" ! -type d ! -name libother.so | grep .; then
    echo "test_install: uninstall leaves these"
    exit 1
fi
test -e "$top/root/usr/lib/libother.so"
DESTDIR=$top/root PREFIX=/usr ./install.sh --uninstall "$build"

# The loader's cache is made anew where the loader looks for libraries, and nowhere else. A stand-in for
# ldconfig says where that is, so that the machine's cache stays as it is.
mkdir "$top/stand_in"
cat >"$top/stand_in/ldconfig" <<END
#!/bin/sh
if [ \$# -eq 0 ]; then
    echo ran >>"$top/ldconfig.log"
else
    echo "$top/system/lib: (from <builtin>:0)"
fi
END
chmod +x "$top/stand_in/ldconfig"
system_install() {
    PATH=$top/stand_in:$PATH ./install.sh "$@"
}
DESTDIR=$top/root PREFIX=$top/system system_install "$build"
PREFIX=$top/elsewhere system_install "$build" | grep -q "LD_LIBRARY_PATH=$top/elsewhere/lib"
test ! -e "$top/ldconfig.log"
PREFIX=$top/system system_install "$build"
PREFIX=$top/system system_install --uninstall "$build"
test "$(wc -l <"$top/ldconfig.log")" -eq 2
