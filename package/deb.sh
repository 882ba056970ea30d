#!/bin/sh
# deb.sh BUILD - makes a Debian package of a build folder, BUILD/adjoint_VERSION_ARCHITECTURE.deb:
# libraries, headers, tool, pkg-config and CMake files, man pages where they were built. Prints its name.
# DEBFULLNAME and DEBEMAIL: who made it.
set -eu
build=$1
for command in dpkg-deb dpkg-shlibdeps dpkg-architecture; do
    command -v "$command" >/dev/null || {
        echo "deb.sh: $command is missing (apt-get install dpkg-dev)" >&2
        exit 1
    }
done
version=$(sed -n 's/^#define ADJ_VERSION_TEXT "\(.*\)"/\1/p' include/adjoint.h)
abi=$(sed -n 's/^abi = //p' build.ninja)
cc=${CROSS:+${CROSS}g}cc
machine=$($cc -dumpmachine)
architecture=$(dpkg-architecture -t "$machine" -qDEB_HOST_ARCH 2>/dev/null)
multiarch=$(dpkg-architecture -t "$machine" -qDEB_HOST_MULTIARCH 2>/dev/null)
deb=$build/adjoint_${version}_$architecture.deb

top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
root=$top/root
umask 022
DESTDIR=$root PREFIX=/usr LIBDIR=/usr/lib/$multiarch ./install.sh "$build"
# Debian has libraries without the execute bit, and compressed man pages.
chmod 644 "$root/usr/lib/$multiarch"/*.so.*
find "$root/usr/share" -path '*/man/*' -type f -exec gzip -9n {} + 2>/dev/null || :
doc=$root/usr/share/doc/adjoint
install -D -m 644 LICENSE "$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"

# What the binaries are linked with, as the packages that bring it; libadjoint is in this one.
mkdir "$top/debian"
echo "Source: adjoint" >"$top/debian/control"
depends=$(cd "$top" && dpkg-shlibdeps -O --ignore-missing-info -lroot/usr/lib/"$multiarch" \
    root/usr/bin/adjoint root/usr/lib/"$multiarch"/*.so.* 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
[ -n "$depends" ] || {
    echo "deb.sh: dpkg-shlibdeps finds no packages that the libraries depend on" >&2
    exit 1
}

mkdir "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END_CONTROL
Package: adjoint
Version: $version
Architecture: $architecture
Maintainer: ${DEBFULLNAME:-the adjoint authors} <${DEBEMAIL:-adjoint@localhost}>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: $depends
Suggests: libdnnl-dev, libjansson-dev, libpng-dev, libturbojpeg0-dev, libzip-dev, zlib1g-dev
Section: science
Priority: optional
Description: small convolutional networks on a CPU: C library and tool
 Networks are graphs in C, gradients more nodes of the same graph, planned as
 a whole over oneDNN. The tool trains and evaluates networks, checks gradients
 and compares the kernels of oneDNN with plain C ones.
 .
 This package holds the shared and static libraries, the headers and the tool.
 The suggested packages are for linking with the static libraries.
END_CONTROL
printf 'libadjoint %s adjoint (>= %s)\nlibadjoint_io %s adjoint (>= %s)\n' \
    "$abi" "$version" "$abi" "$version" >"$root/DEBIAN/shlibs"
echo "activate-noawait ldconfig" >"$root/DEBIAN/triggers"
(cd "$root" && find usr -type f -exec md5sum {} +) >"$root/DEBIAN/md5sums"
dpkg-deb --root-owner-group --build "$root" "$deb" >/dev/null
echo "$deb"
