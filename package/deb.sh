#!/bin/sh
# deb.sh BUILD - makes a Debian package of a build folder, BUILD/adjoint_VERSION_ARCHITECTURE.deb:
# libraries, headers, tool, pkg-config and CMake files, man pages where they were built. Prints its name.
# DEBFULLNAME and DEBEMAIL: who made it. SOURCE_DATE_EPOCH: when; default: CHANGELOG.md's time.
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
maintainer="${DEBFULLNAME:-the adjoint authors} <${DEBEMAIL:-adjoint@localhost}>"
epoch=${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}
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
mkdir -p "$doc" "$root/usr/share/lintian/overrides"
sed "s/^Copyright (c)/& $(date -ud "@$epoch" +%Y)/" LICENSE >"$doc/copyright"

# The newest section of CHANGELOG.md as Debian's tools read one.
{
    printf 'adjoint (%s) unstable; urgency=medium\n\n' "$version"
    awk -v version="$version" '
        function put(text, first,    n, word, i, line) {
            n = split(text, word, " ")
            line = first
            for (i = 1; i <= n; i++)
                if (length(line " " word[i]) > 79) {
                    print line
                    line = "    " word[i]
                } else
                    line = line " " word[i]
            if (n > 0)
                print line
        }
        of && /^  / { item = item " " $0; next }
        { put(item, "  *"); item = "" }
        /^## / { of = $2 == version; next }
        !of || /^$/ { next }
        /^- / { item = substr($0, 3); next }
        { print "  [ " $0 " ]" }
        END { put(item, "  *") }' CHANGELOG.md
    printf '\n -- %s  %s\n' "$maintainer" \
        "$(LC_ALL=C date -uR -d "@$epoch")"
} | gzip -9nc >"$doc/changelog.gz"

# One package is to hold the library for programs that run and for those that are compiled.
printf 'adjoint: %s\n' link-to-shared-library-in-wrong-package package-name-doesnt-match-sonames \
    >"$root/usr/share/lintian/overrides/adjoint"

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
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: $depends
Suggests: libdnnl-dev, libjansson-dev, libpng-dev, libturbojpeg0-dev, libwebp-dev, libzip-dev, zlib1g-dev
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
