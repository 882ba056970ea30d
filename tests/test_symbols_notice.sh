#!/bin/sh
# test_symbols_notice.sh - test_symbols.sh finds what it is there to find: one faulty source at a time
# is added to the library. $BUILD: a release build folder; $CROSS: the prefix of the cross compiler that
# made it.
set -u
status=0
cc=${CROSS:+${CROSS}g}cc
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Without debugging information, which would only take time.
mkdir "$folder/sound"
cp "$BUILD"/libadjoint.a "$BUILD"/libadjoint.so* "$BUILD"/libadjoint_io.a "$BUILD"/libadjoint_io.so* "$folder/sound"
"${CROSS:-}strip" -g "$folder"/sound/*

# with SOURCE: the libraries with the source in libadjoint; the status of test_symbols.sh
with() {
    rm -rf "$folder/build"
    mkdir "$folder/build"
    cp "$folder"/sound/* "$folder/build"
    printf '%s\n' "$1" >"$folder/fault.c"
    $cc -O1 -fPIC -fopenmp -fvisibility=hidden -c "$folder/fault.c" -o "$folder/fault.o" &&
        "${CROSS:-}ar" r "$folder/build/libadjoint.a" "$folder/fault.o" 2>"$folder/ar" &&
        $cc -shared -Wl,-soname,"$(basename "$BUILD"/libadjoint.so.[0-9]*)" -o "$folder/build/$(basename "$BUILD"/libadjoint.so.[0-9]*)" \
            -Wl,--whole-archive "$folder/build/libadjoint.a" -Wl,--no-whole-archive -ldnnl -fopenmp -lm || exit 1
    BUILD=$folder/build tests/test_symbols.sh >"$folder/findings" 2>&1
}

with 'int sound(void); int sound(void) { return 1; }' || {
    echo "test_symbols_notice: a sound source is refused:"
    cat "$folder/findings"
    status=1
}
while read -r fault; do
    if with "$fault"; then
        echo "test_symbols_notice: passed over: $fault"
        status=1
    fi
done <<'END'
static int count = 3; int next(void) { return count++; }
static int count; int next(void) { return count++; }
static _Thread_local int count; int next(void) { return count++; }
__attribute__((visibility("default"))) int leaked(void) { return 1; }
void abort(void); void stop(void) { abort(); }
int printf(const char *, ...); void say(int x) { printf("%d", x); }
int fork(void); int split(void) { return fork(); }
int rand(void); int draw(void) { return rand(); }
void add(int *a); void add(int *a) { _Pragma("omp critical") ++*a; }
END
exit $status
