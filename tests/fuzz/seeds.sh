#!/bin/sh
# seeds.sh - the fuzz targets' seeds: tests/fuzz/corpus/NAME.tar.gz, one archive a target.
#
#   tests/fuzz/seeds.sh add NAME FILE...    adds files to the seeds of the target fuzz_NAME
#   tests/fuzz/seeds.sh pack NAME FOLDER    replaces the seeds by the files of a folder
#   tests/fuzz/seeds.sh unpack FOLDER       writes every archive's files to FOLDER/NAME; ninja does it for the tests
#
# Equal files make equal archives, byte by byte: sorted, without times, owners or modes. (GNU tar)
set -eu
corpus=$(dirname "$0")/corpus

pack() {
    tar -C "$2" --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=a=rX,u+w \
        --format=ustar -cf - . | gzip -9n >"$corpus/$1.tar.gz.new"
    mv "$corpus/$1.tar.gz.new" "$corpus/$1.tar.gz"
}

unpack() {
    rm -rf "$2"
    mkdir -p "$2"
    [ ! -f "$corpus/$1.tar.gz" ] || tar -C "$2" -xzf "$corpus/$1.tar.gz"
}

case "${1:-}:$#" in
unpack:2)
    for archive in "$corpus"/*.tar.gz; do
        name=$(basename "$archive" .tar.gz)
        unpack "$name" "$2/$name"
    done
    ;;
pack:3)
    pack "$2" "$3"
    ;;
add:[3-9] | add:[1-9][0-9]*)
    name=$2
    shift 2
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    unpack "$name" "$scratch/seeds"
    cp -- "$@" "$scratch/seeds/"
    pack "$name" "$scratch/seeds"
    ;;
*)
    sed -n 's/^#   /usage: /p' "$0" >&2
    exit 2
    ;;
esac
