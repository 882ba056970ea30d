#!/bin/sh
# install.sh BUILD - installs the libraries, headers, tool, pkg-config and CMake files of a build folder
# to $DESTDIR$PREFIX; PREFIX is /usr/local by default, LIBDIR $PREFIX/lib. Binaries are stripped ($CROSS:
# the prefix of the cross compiler that made them). Man pages and completions are installed where they
# were built (BUILD/man/*.[1-9], BUILD/completion/adjoint.bash and _adjoint).
#
# install.sh --uninstall BUILD - removes what the same command without --uninstall has installed.
set -eu
action=install
if [ "$1" = --uninstall ]; then
    action=uninstall
    shift
fi
build=$1
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
root=${DESTDIR:-}
share=$prefix/share
cmakedir=$libdir/cmake/adjoint

number() {
    sed -n "s/^#define ADJ_VERSION_$1 //p" include/adjoint.h
}
version=$(number MAJOR).$(number MINOR).$(number PATCH)
abi=$(sed -n 's/^abi = //p' build.ninja)
io_packages=$(sed -n 's/^io_packages = //p' build.ninja)
onnx_packages=$(sed -n 's/^onnx_packages = //p' build.ninja)

# put MODE SOURCE TARGET [STRIP_OPTION]: one file, stripped so.
put() {
    if [ "$action" = uninstall ]; then
        rm -f "$root$3"
        return
    fi
    install -D -m "$1" "$2" "$root$3"
    [ -z "${4:-}" ] || "${CROSS:-}strip" "$4" "$root$3"
}

# put_text TARGET: a file of standard input.
put_text() {
    text=$(mktemp)
    cat >"$text"
    put 644 "$text" "$1"
    rm -f "$text"
}

put_link() {
    if [ "$action" = uninstall ]; then
        rm -f "$root$2"
    else
        ln -sf "$1" "$root$2"
    fi
}

# What needs MPI is installed where `ninja mpi` has built it.
has_mpi=
if [ -e "$build/libadjoint_mpi.a" ] || [ "$action" = uninstall ]; then
    has_mpi=1
fi
for header in include/*.h; do
    [ -n "$has_mpi" ] || [ "$header" != include/adjoint_mpi.h ] || continue
    put 644 "$header" "$prefix/$header"
done
# Their debug information goes, the symbols that others link with stay.
for name in libadjoint libadjoint_io libadjoint_emit libadjoint_onnx; do
    put 644 "$build/$name.a" "$libdir/$name.a" --strip-debug
    put 755 "$build/$name.so.$abi" "$libdir/$name.so.$abi" --strip-unneeded
    put_link "$name.so.$abi" "$libdir/$name.so"
done
put 644 "$build/libadjoint_small.a" "$libdir/libadjoint_small.a" --strip-debug
put 755 "$build/adjoint" "$prefix/bin/adjoint" --strip-all
for page in "$build"/man/*.[1-9]; do
    [ ! -e "$page" ] || put 644 "$page" "$share/man/man${page##*.}/${page##*/}"
done
if [ -d "$build/completion" ]; then
    put 644 "$build/completion/adjoint.bash" "$share/bash-completion/completions/adjoint"
    put 644 "$build/completion/_adjoint" "$share/zsh/site-functions/_adjoint"
fi

# put_pc NAME DESCRIPTION REQUIRES LIBS
put_pc() {
    put_text "$libdir/pkgconfig/$1.pc" <<END_PC
prefix=$prefix
includedir=\${prefix}/include
libdir=$libdir

Name: $1
Description: $2
Version: $version
License: MIT
$3
Cflags: -I\${includedir}
$4
END_PC
}
put_pc adjoint "Small convolutional networks in C: gradients as graph nodes, planned over oneDNN" \
    "Requires:" "Libs: -L\${libdir} -ladjoint
Libs.private: ${DNNL:+-L$DNNL/lib -Wl,-rpath,$DNNL/lib }-ldnnl -fopenmp -lm"
put_pc adjoint_io "adjoint's data sets and weight files" \
    "Requires: adjoint = $version
Requires.private: $io_packages" "Libs: -L\${libdir} -ladjoint_io
Libs.private: -fopenmp -lm"
put_pc adjoint_emit "adjoint's writer of networks as C" \
    "Requires: adjoint = $version" "Libs: -L\${libdir} -ladjoint_emit
Libs.private: -fopenmp -lm"
put_pc adjoint_onnx "adjoint's reader of networks in ONNX files" \
    "Requires: adjoint = $version
Requires.private: $onnx_packages" "Libs: -L\${libdir} -ladjoint_onnx
Libs.private: -fopenmp -lm"
# There is no shared one: what it needs is always the program's.
put_pc adjoint_small "adjoint without oneDNN, a static library for small programs" \
    "Requires:" "Libs: -L\${libdir} -ladjoint_small -fopenmp -lm"

if [ -n "$has_mpi" ]; then
    put 644 "$build/libadjoint_mpi.a" "$libdir/libadjoint_mpi.a" --strip-debug
    put 755 "$build/libadjoint_mpi.so.$abi" "$libdir/libadjoint_mpi.so.$abi" --strip-unneeded
    put_link "libadjoint_mpi.so.$abi" "$libdir/libadjoint_mpi.so"
    put_pc adjoint_mpi "adjoint's processes that train together; compile with mpicc" \
        "Requires: adjoint = $version" "Libs: -L\${libdir} -ladjoint_mpi"
fi

# CMake finds the libraries and headers from where its own file is, wherever the tree was moved to.
relative() {
    realpath -m --relative-to="$cmakedir" "$1"
}
# shellcheck disable=SC2086 # a list
io_libraries=$("${CROSS:-}pkg-config" --libs-only-l $io_packages | sed 's/-l//g')
for file in adjointConfig.cmake adjointConfigVersion.cmake; do
    sed -e "s|@io_libraries@|$io_libraries|g" -e "s|@version@|$version|g" -e "s|@abi@|$abi|g" -e "s|@libdir@|$(relative "$libdir")|g" \
        -e "s|@dnnl@|${DNNL:+$DNNL/lib/lib}dnnl${DNNL:+.so}|g" -e "s|@includedir@|$(relative "$prefix/include")|g" "package/$file.in" | put_text "$cmakedir/$file"
done

if [ "$action" = uninstall ]; then
    [ ! -d "$root$cmakedir" ] || rmdir --ignore-fail-on-non-empty "$root$cmakedir"
fi

# The loader finds a new library when its cache is made anew, in the folders that it looks at: not where
# a packager collects files, nor in a folder that only LD_LIBRARY_PATH names.
[ -z "$root" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
if ldconfig -N -X -v 2>/dev/null | grep -q "^$libdir:"; then
    ldconfig
elif [ "$action" = install ]; then
    echo "install.sh: the loader does not look into $libdir; set LD_LIBRARY_PATH=$libdir"
fi
