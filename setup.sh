#!/bin/sh
# setup.sh [--dev] [--mpi] - installs what building and testing adjoint needs, on Debian and Ubuntu;
# elsewhere it says what to install. With --dev also what `ninja asan`, `ninja lint`, `ninja clang`,
# `ninja tsan` and `ninja valgrind` need; with --mpi what `ninja mpi` and `ninja test-mpi` do: Open MPI,
# if there is no MPI yet. Installs only what is missing; as root, or through sudo.
set -eu

dev=
mpi=
for option in "$@"; do
    case "$option" in
    --dev) dev=1 ;;
    --mpi) mpi=1 ;;
    *)
        echo "usage: $0 [--dev] [--mpi]" >&2
        exit 2
        ;;
    esac
done

packages="gcc libc6-dev ninja-build pkg-config libdnnl-dev libcriterion-dev zlib1g-dev libjansson-dev
    libpng-dev libturbojpeg0-dev libwebp-dev libzip-dev libprotobuf-c-dev protobuf-c-compiler libonnx-dev"
if [ -n "$dev" ]; then
    packages="$packages clang clang-tidy clang-format cppcheck valgrind libomp-dev python3 g++ cmake doxygen graphviz dpkg-dev
        gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm"
fi
if [ -n "$mpi" ] && ! { command -v mpicc && command -v mpirun; } >/dev/null; then
    packages="$packages libopenmpi-dev openmpi-bin"
fi

installed() {
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

known() {
    apt-cache show "$1" >/dev/null 2>&1
}

# Everything needed to build and test, whoever installed it.
complete() {
    command -v cc >/dev/null && command -v ninja >/dev/null && command -v pkg-config >/dev/null &&
        pkg-config --exists criterion zlib jansson libpng libturbojpeg libwebp libzip libprotobuf-c && command -v protoc-c >/dev/null &&
        printf '#include <oneapi/dnnl/dnnl.h>\n#include <onnx/onnx.proto>\n' | cc -fopenmp -M -x c - >/dev/null 2>&1
}

elsewhere() {
    cat >&2 <<END
setup.sh: this is neither Debian nor Ubuntu. Please install
  a C11 compiler with OpenMP (gcc), ninja 1.10 or newer, pkg-config,
  oneDNN 2.x or 3.x built on OpenMP, zlib, jansson, libpng, TurboJPEG (libjpeg-turbo), libwebp, libzip,
  protobuf-c with its compiler protoc-c, and onnx.proto of ONNX,
  with their headers,
  and for the tests Criterion 2.3 or newer, with its headers;
for --mpi an MPI with its compiler (mpicc);
for development also clang with its sanitizer runtime and libomp, clang-tidy, clang-format, cppcheck,
valgrind and Graphviz; arm-none-eabi-gcc with newlib and qemu-system-arm. Then run ninja.
END
    exit 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "setup.sh: neither root nor sudo; as root, run: $*" >&2
        exit 1
    fi
}

install_packages() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@"
}

if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    if [ -z "$dev" ] && complete; then
        exit 0
    fi
    elsewhere
fi

missing=
for package in $packages; do
    installed "$package" || missing="$missing $package"
done
# clang's sanitizer runtime: a package of its own where clang does not bring it along.
runtime=
if [ -n "$dev" ] && ! installed libclang-rt-dev; then
    runtime=libclang-rt-dev
fi
if [ -z "$missing$runtime" ]; then
    exit 0
fi

# The lists are fetched when they are missing or too old to find the packages.
for package in $missing; do
    if ! known "$package"; then
        as_root apt-get update
        break
    fi
done
if [ -n "$runtime" ] && known "$runtime"; then
    missing="$missing $runtime"
fi
if [ -n "$missing" ]; then
    # shellcheck disable=SC2086 # a list
    install_packages $missing || { as_root apt-get update && install_packages $missing; }
fi
