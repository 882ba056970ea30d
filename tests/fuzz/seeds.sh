#!/bin/sh
# seeds.sh - the fuzz targets' seeds: tests/fuzz/seeds.tar.gz, with a folder NAME for the target fuzz_NAME.
#
#   tests/fuzz/seeds.sh add NAME FILE...    adds files to the seeds of the target fuzz_NAME
#   tests/fuzz/seeds.sh pack NAME FOLDER    replaces the seeds by the files of a folder
#   tests/fuzz/seeds.sh unpack FOLDER       writes all seeds to FOLDER/NAME; ninja does it for the tests
#
# Equal files make equal archives, byte by byte: sorted, without times, owners or modes. (GNU tar)
set -eu
archive=$(dirname "$0")/seeds.tar.gz

unpack() {
    rm -rf "$1"
    mkdir -p "$1"
    tar -C "$1" -xzf "$archive"
}

# Replaces the archive by the folder's files.
pack() {
    tar -C "$1" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w \
        --format=ustar -cf - . | gzip -9n >"$archive.new"
    mv "$archive.new" "$archive"
}

case "${1:-}:$#" in
unpack:2)
    unpack "$2"
    ;;
pack:3 | add:[3-9] | add:[1-9][0-9]*)
    command=$1 name=$2
    shift 2
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    unpack "$scratch"
    [ "$command" != pack ] || rm -rf "${scratch:?}/$name"
    mkdir -p "$scratch/$name"
    if [ "$command" = pack ]; then
        cp -- "$1"/* "$scratch/$name/"
    else
        cp -- "$@" "$scratch/$name/"
    fi
    pack "$scratch"
    ;;
*)
    sed -n 's/^#   /usage: /p' "$0" >&2
    exit 2
    ;;
esac
