#!/bin/sh
# aarch64.sh [SUITE [COMMAND]] - cross compiles everything for 64-bit ARM and runs every test, emulated by
# qemu-user, in a Debian base system of its own (debian.sh says what it needs and leaves behind: nothing).
# The base system is the machine's, with a cross compiler and the libraries' arm64 packages beside its own, so
# that scripts and compiler run at full speed. By default Debian 12 (bookworm), whose oneDNN is 2.6.3, and
# all tests. The emulated CPU is what QEMU_CPU says (default: one with everything, SVE of 512 bits included;
# cortex-a72 has no SVE).
#
# Programs start each other by path, Criterion's tests and the tool's children too, so the kernel itself must
# hand a program for ARM to the emulator. That is registered in a user namespace of its own and gone with it,
# which Linux 6.7 or later allows; on an older kernel the handler of a qemu-user-static that is installed
# outside the base system serves as well.
set -eu
cd "$(dirname "$0")/.."
packages=ninja-build,pkg-config,mount,protobuf-c-compiler,libonnx-dev,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross,qemu-user-static
for package in libdnnl-dev libcriterion-dev zlib1g-dev libjansson-dev libpng-dev libturbojpeg0-dev libwebp-dev libzip-dev libprotobuf-c-dev; do
    packages=$packages,$package:arm64
done

# Run by sh with the root and a command; no apostrophes.
# shellcheck disable=SC2016 # expanded there
enter='if mount -t binfmt_misc none "$1/proc/sys/fs/binfmt_misc" 2>/dev/null; then
    chroot "$1" sh -c "cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register"
fi
if ! chroot "$1" /lib/ld-linux-aarch64.so.1 --version >/dev/null 2>&1; then
    echo "aarch64.sh: the kernel runs no programs for ARM (Linux 6.7 or later, or qemu-user-static)" >&2
    exit 1
fi
exec chroot "$@"'
MMDEBSTRAP="--architectures=amd64,arm64 --include=$packages" \
    ENTER="unshare --user --map-root-user --mount sh -euc '$enter' enter" \
    tests/debian.sh "${1:-bookworm}" "${2:-ninja build/aarch64/test}"
