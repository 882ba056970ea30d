#!/bin/sh
# test_deb.sh - the Debian package: what it holds, what it depends on, and that the tool and a program
# linked with the library run from it. $BUILD: a release build folder.
set -eu
if ! command -v dpkg-deb >/dev/null || ! command -v dpkg-shlibdeps >/dev/null; then
    echo "skipped: no dpkg-deb or no dpkg-shlibdeps here (dpkg-dev)"
    exit 77
fi
if [ -n "${DNNL:-}" ]; then
    echo "skipped: this build is of a oneDNN that is no package (DNNL)"
    exit 77
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
fail() {
    echo "test_deb: $*"
    exit 1
}
deb=$(package/deb.sh "$BUILD")
version=$(sed -n 's/^#define ADJ_VERSION_TEXT "\(.*\)"/\1/p' include/adjoint.h)
abi=$(sed -n 's/^abi = //p' build.ninja)
lib=usr/lib/$(cc -print-multiarch)

field() {
    dpkg-deb -f "$deb" "$1"
}
[ "$(field Package) $(field Version)" = "adjoint $version" ] || fail "is $(field Package) $(field Version)"
for needed in libc6 libdnnl libgomp1 libjansson4 zlib1g; do
    field Depends | grep -q "$needed" || fail "does not depend on $needed: $(field Depends)"
done
dpkg-deb --ctrl-tarfile "$deb" | tar -t | sort | tr '\n' ' ' | grep -q './control ./md5sums ./shlibs ./triggers' ||
    fail "its control files are others"

# Files and folders: each in its place, nothing else, all root's, none writable by others.
dpkg-deb -x "$deb" "$top"
{
    if [ -e "$BUILD/libadjoint_mpi.a" ]; then
        printf '%s\n' usr/include/adjoint_mpi.h "$lib/libadjoint_mpi.a" "$lib/libadjoint_mpi.so" \
            "$lib/libadjoint_mpi.so.$abi" "$lib/pkgconfig/adjoint_mpi.pc"
    fi
    (cd include && ls -- *.h) | grep -v '^adjoint_mpi' | sed 's|^|usr/include/|'
    echo usr/bin/adjoint
    for name in adjoint adjoint_io adjoint_emit adjoint_onnx; do
        printf '%s\n' "$lib/lib$name.a" "$lib/lib$name.so" "$lib/lib$name.so.$abi" "$lib/pkgconfig/$name.pc"
    done
    printf '%s\n' "$lib/libadjoint_small.a" "$lib/pkgconfig/adjoint_small.pc"
    printf '%s\n' "$lib/cmake/adjoint/adjointConfig.cmake" "$lib/cmake/adjoint/adjointConfigVersion.cmake" \
        usr/share/doc/adjoint/copyright usr/share/doc/adjoint/changelog.gz usr/share/lintian/overrides/adjoint
} | sort >"$top/expected"
(cd "$top" && find usr ! -type d ! -path 'usr/share/man/*.gz' ! -path 'usr/share/bash-completion/*' \
    ! -path 'usr/share/zsh/*') | sort | diff - "$top/expected" || fail "holds other files (<) than it should (>)"
if dpkg-deb -c "$deb" | grep -vE '^(drwxr-xr-x|-rw-r--r--|-rwxr-xr-x|lrwxrwxrwx) root/root '; then
    fail "these have the wrong mode or owner"
fi
zcat "$top/usr/share/doc/adjoint/changelog.gz" >"$top/changelog"
[ "$(dpkg-parsechangelog -l "$top/changelog" -S Version)" = "$version" ] || fail "its changelog does not know $version"
entries=$(awk -v version="$version" '/^## / { of = $2 == version } of && /^- /' CHANGELOG.md | wc -l)
[ "$(grep -c '^  \* ' "$top/changelog")" -eq "$entries" ] || fail "its changelog has not CHANGELOG.md's $entries entries"
# DEBEMAIL, which names the packager, is not set here. Manual pages may be missing.
left_out=bogus-mail-host,bogus-mail-host-in-debian-changelog
[ -d "$BUILD/man" ] || left_out=$left_out,no-manual-page
if command -v lintian >/dev/null; then
    lintian --allow-root --fail-on error,warning \
        --suppress-tags "$left_out" "$deb" || fail "lintian objects"
fi
dpkg-deb -e "$deb" "$top/control"
(cd "$top" && md5sum --quiet -c control/md5sums)

# From there, as if that were the root.
"$top/usr/bin/adjoint" --version | grep -q "$version"
"$top/usr/bin/adjoint" gradcheck --op relu --in 2,3 >"$top/out" || {
    cat "$top/out"
    fail "gradcheck failed"
}
cat >"$top/user.c" <<'END_C'
#include <adjoint_io.h>
int main(void) { return adj_version() == ADJ_VERSION ? 0 : 1; }
END_C
# shellcheck disable=SC2046 # words
cc "$top/user.c" -o "$top/user" $(PKG_CONFIG_SYSROOT_DIR=$top PKG_CONFIG_PATH=$top/$lib/pkgconfig \
    PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 pkg-config --cflags --libs adjoint_io)
LD_LIBRARY_PATH=$top/$lib "$top/user"
