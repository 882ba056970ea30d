#!/bin/sh
# debian.sh [SUITE [COMMAND]] - builds and tests in a Debian base system of its own, made in a temporary
# folder and thrown away: by default Debian 13 (trixie), whose oneDNN is 3.7.2, and the README's command
# for the tests. The files that git knows are copied to it as they are; shared data lying beside the
# project too, unless SHARED=no. Needs mmdebstrap, a network, and root or user namespaces.
# MMDEBSTRAP: more options of mmdebstrap. ENTER: what runs COMMAND in the root, instead of chroot.
set -eu
cd "$(dirname "$0")/.."
suite=${1:-trixie}
command=${2:-./setup.sh && ninja test}
if ! command -v mmdebstrap >/dev/null; then
    echo "debian.sh: mmdebstrap is missing (apt-get install mmdebstrap)" >&2
    exit 1
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

git ls-files -z | tar -c --null -T - -f "$top/src.tar"
if [ -d ../shared ] && [ "${SHARED:-}" != no ]; then
    tar -C .. -c -f "$top/shared.tar" shared
else
    tar -c -f "$top/shared.tar" -T /dev/null
fi

# The customize hooks run before the root is thrown away ("null"), with /proc and a resolver in it.
# shellcheck disable=SC2016,SC2086 # "$1", the root, is for the hooks; the options are words
TMPDIR=$top SRC=$top/src.tar DATA=$top/shared.tar TEST=$command mmdebstrap --variant=minbase --format=null \
    --customize-hook='mkdir "$1/project" && tar -C "$1/project" -xf "$SRC" && tar -C "$1" -xf "$DATA"' \
    --customize-hook="${ENTER:-chroot}"' "$1" sh -c "cd /project && $TEST"' ${MMDEBSTRAP:-} \
    "$suite" /dev/null
