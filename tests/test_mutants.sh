#!/bin/sh
# test_mutants.sh - the lists of planted faults and their runner (tests/mutants/run.py): each mutant of the
# lists still fits the sources; one that does not, or a malformed list, is reported; and the runner
# plants a fault, finds it, reports a mutant that does not build, and leaves the copy as it was, in a small
# tree of the test's own.
set -u
if ! python3 -c 'import dataclasses' 2>/dev/null || [ ! -f sources.ninja ]; then
    echo "skipped: no python3, or no sources"
    exit 77
fi
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
status=0
complain() {
    echo "test_mutants: $*"
    [ ! -s "$top/out" ] || sed 's/^/  /' "$top/out"
    status=1
}
# told STATUS TEXT COMMAND...: the command ends with that status and prints that text
told() {
    wanted=$1 text=$2
    shift 2
    got=0
    "$@" >"$top/out" 2>&1 || got=$?
    [ "$got" -eq "$wanted" ] || complain "$*: exit status $got, expected $wanted"
    grep -qF -- "$text" "$top/out" || complain "$*: expected \"$text\""
}

told 0 ", 0 do not fit" tests/mutants/run.py --check
[ "$(sed -n 's/ mutants, .*//p' "$top/out")" -ge 120 ] || complain "fewer than 120 mutants"

# ---- lists that are wrong ----
mkdir "$top/lists"
list() {
    cat >"$top/lists/one.txt"
}
block() {
    printf 'mutant m\nfile ops/copy.c\nold %s\nnew x\nwhy it is wrong\nwithin tests\ntests ops/test_concat\n' "$1"
}
check() {
    told "$1" "$2" tests/mutants/run.py --check --lists "$top/lists"
}
block 'dx[0] = adj_pad(dy, r->a, after);' | list
check 0 "1 mutants, 0 do not fit"
block 'what no source has' | list
check 1 'one.txt: m does not fit: "old" stands 0 times in ops/copy.c, expected once'
block 'return' | list
check 1 'times in ops/copy.c, expected once'
{ block 'dx[0] = adj_pad(dy, r->a, after);' && echo 'after what no source has'; } | list
check 1 'one.txt: m does not fit: "after" stands 0 times'
block 'dx[0] = adj_pad(dy, r->a, after);' | sed 's/test_concat/test_none/' | list
check 1 'there is no tests/ops/test_none.c'
block 'dx[0] = adj_pad(dy, r->a, after);' | sed 's/^why/because/' | list
check 3 'one.txt:5: unknown key (got because)'
block 'dx[0] = adj_pad(dy, r->a, after);' | grep -v '^why' | list
check 3 'one.txt:1: m has no why'
block 'dx[0] = adj_pad(dy, r->a, after);' | sed 's/^within.*/within compare/' | list
check 3 'm is within reach of compare, but runs none'
block 'x' | list
check 3 'm changes nothing'
{ block 'dx[0] = adj_pad(dy, r->a, after);' && echo && block 'y'; } | list
check 3 'one.txt: m is there twice'
# a group gives the mutants below what they lack
group() {
    printf '%s\nwithin tests\ntests ops/test_concat\n\n' "$1"
    block 'dx[0] = adj_pad(dy, r->a, after);' | grep -Ev '^(file|within|tests)'
}
group 'file ops/copy.c' | list
check 0 "1 mutants, 0 do not fit"
group 'blame rule' | list
check 3 'one.txt:5: m has no file'
group 'old x' | list
check 3 'a block begins with its mutant'
told 3 'there is no mutant and no layer nobody' tests/mutants/run.py --check --only nobody

# ---- the runner, in a tree of a program that adds ----
tree=$top/tree
mkdir -p "$tree/tests/mutants" "$tree/tests/ops" "$tree/docs/internals"
cp tests/mutants/*.py "$tree/tests/mutants/"
cat >"$tree/add.sh" <<'END_OF_FILE'
#!/bin/sh
sum=$(($2 + $3))
case $1 in
sum) echo "$sum" ;;
gradcheck) [ "$sum" -eq 5 ] || { echo '{"rows": [{"result": "FAIL", "op": "add", "fault": "rule", "blame": "its"}]}' && exit 1; } ;;
compare) exit 0 ;;
esac
END_OF_FILE
cat >"$tree/adjoint.sh" <<'END_OF_FILE'
#!/bin/sh
exec sh "$(dirname "$0")/add" "$1" 2 3
END_OF_FILE
echo '[ "$(sh build/add sum 2 3)" -eq 5 ]' >"$tree/tests/ops/test_add.c"
cat >"$tree/build.ninja" <<'END_OF_FILE'
builddir = build
rule copy
  command = sh -n $in && cp $in $out && chmod +x $out
build build/add: copy add.sh
build build/adjoint: copy adjoint.sh | build/add
build build/tests/ops/test_add: copy tests/ops/test_add.c | build/adjoint
END_OF_FILE
sed -i '1i #!/bin/sh' "$tree/tests/ops/test_add.c"
add() {
    printf 'mutant %s\nfile add.sh\nold sum=$(($2 + $3))\nnew %s\nwhy it is wrong\nwithin %s\nblame rule add\n%stests ops/test_add\n\n' "$@"
}
{
    add found 'sum=$(($2 - $3))' 'gradcheck compare' "$(printf 'run gradcheck x\nrun compare x\n ')"
    add survives 'sum=$(($3 + $2))' gradcheck "$(printf 'run gradcheck x\n ')"
    add unbuilt 'sum=$((' gradcheck "$(printf 'run gradcheck x\n ')"
    add gone 'x' gradcheck "$(printf 'run gradcheck x\n ')" | sed 's/^old.*/old what no source has/'
    add elsewhere 'sum=$(($2 - $3))' gradcheck "$(printf 'needs no_such_cpu\nrun gradcheck x\n ')"
} | sed 's/^ tests/tests/' >"$tree/tests/mutants/one.txt"
plant() {
    (cd "$tree" && tests/mutants/run.py --copies 2 "$@")
}
told 1 "| one | 4 | 1 of 2 | 0 of 1 | 1 of 2 | 1 of 2 | 1 | 1 of 1 |" plant
grep -q "^survived: survives " "$top/out" || complain "the survivor is not told"
grep -q "^missed by compare: found " "$top/out" || complain "what compare missed is not told"
grep -q "one/unbuilt: does not build: " "$top/out" || complain "what does not build is not told"
grep -q "^cannot be planted: unbuilt: " "$top/out" || complain "what does not build is not summed up"
grep -q "one/elsewhere left out: this CPU lacks no_such_cpu" "$top/out" || complain "what needs another CPU is not told"
grep -q "^cannot be planted: gone: does not apply" "$top/out" || complain "what does not apply is not told"
grep -q "| all | 4 |" "$tree/docs/internals/mutants.md" || complain "docs/internals/mutants.md has no table"
for copy in "$tree"/build/mutants/copy*; do
    cmp -s "$copy/add.sh" "$tree/add.sh" && cmp -s "$copy/build/add" "$tree/add.sh" || complain "$copy is not as it was"
done
plant >"$top/out" 2>&1
grep -q '^\[' "$top/out" && complain "what was found is not kept"
told 0 "| one | 1 | 1 of 1 | 0 of 1 | 1 of 1 | 1 of 1 | 0 | 1 of 1 |" plant --only found --fresh
echo 'sum=$(($2 + $3 + 1))' >"$top/line" && sed -i "2s/.*/$(cat "$top/line")/" "$tree/add.sh"
sed -i 's/^old sum=.*/old + 1))/' "$tree/tests/mutants/one.txt"
told 1 "fails without a fault, left out: gradcheck x" plant --only found
exit $status
