#!/bin/sh
# minimize.sh NAME TARGET FOLDER... - replaces the seeds of fuzz_NAME in tests/fuzz/seeds.tar.gz by few inputs that
# reach what they and the inputs in the folders reach together (all edges, not how often), found with
# the libFuzzer target TARGET. At most 300 files and 300 KB are kept, the smallest ones first.
#
#   tests/fuzz/minimize.sh graph build/fuzz/fuzz_graph build/fuzz/fuzzing/corpus/graph
#
# Afterwards `ninja test` must still pass: it replays them (replay.c).
set -eu
name=$1 target=$2
shift 2
scratch=$(mktemp -d)
here=$scratch/seeds/$name
trap 'rm -rf "$scratch"' EXIT
export OMP_NUM_THREADS=1
tests/fuzz/seeds.sh unpack "$scratch/seeds"
mkdir -p "$here" "$scratch/merged" "$scratch/kept"

"$target" -set_cover_merge=1 -use_counters=0 -max_len=4096 -timeout=20 -rss_limit_mb=2048 \
    -close_fd_mask=3 -artifact_prefix="$scratch/" "$scratch/merged" "$here" "$@" \
    >"$scratch/log" 2>&1 || { tail -n 30 "$scratch/log"; exit 1; }

files=0 bytes=0
for path in $(find "$scratch/merged" -type f -size +0 -printf '%s %p\n' | sort -n | cut -d' ' -f2); do
    size=$(stat -c %s "$path")
    [ $files -lt 300 ] && [ $((bytes + size)) -le 300000 ] || break
    files=$((files + 1)) bytes=$((bytes + size))
    cp "$path" "$scratch/kept/"
done
# What was found as a fault (found-*) or written by hand (seed-*) stays, whether it still reaches something new or not.
find "$here" -type f ! -name 'found-*' ! -name 'seed-*' -delete
cp "$scratch/kept"/* "$here/"
tests/fuzz/seeds.sh pack "$name" "$here"
echo "$name: $files files, $bytes bytes of $(find "$scratch/merged" -type f | wc -l) files"
