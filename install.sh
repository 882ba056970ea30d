#!/bin/sh
# install.sh BUILD - installs the libraries, headers, tool and pkg-config files of a build folder to
# $DESTDIR$PREFIX; PREFIX is /usr/local by default, LIBDIR $PREFIX/lib.
set -eu
build=$1
prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
root=${DESTDIR:-}

number() {
    sed -n "s/^#define ADJ_VERSION_$1 //p" include/adjoint.h
}
version=$(number MAJOR).$(number MINOR).$(number PATCH)
abi=$(sed -n 's/^abi = //p' build.ninja)

install -d "$root$prefix/bin" "$root$prefix/include" "$root$libdir/pkgconfig"
install -m 644 include/*.h "$root$prefix/include"
for name in libadjoint libadjoint_io; do
    install -m 644 "$build/$name.a" "$root$libdir"
    install -m 755 "$build/$name.so.$abi" "$root$libdir"
    ln -sf "$name.so.$abi" "$root$libdir/$name.so"
done
install -m 755 "$build/adjoint" "$root$prefix/bin"

# write_pc NAME DESCRIPTION REQUIRES LIBS
write_pc() {
    cat >"$root$libdir/pkgconfig/$1.pc" <<END
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
END
}
write_pc adjoint "Small convolutional networks in C: gradients as graph nodes, planned over oneDNN" \
    "Requires:" "Libs: -L\${libdir} -ladjoint
Libs.private: -ldnnl -fopenmp -lm"
write_pc adjoint_io "adjoint's data sets and weight files" \
    "Requires: adjoint = $version
Requires.private: zlib jansson libpng libturbojpeg libzip" "Libs: -L\${libdir} -ladjoint_io
Libs.private: -fopenmp -lm"
