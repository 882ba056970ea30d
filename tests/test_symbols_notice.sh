#!/bin/sh
# test_symbols_notice.sh - test_symbols.sh finds what it is there to find: faulty sources, all of them
# at once, are added to the library, and each is named; a sound one is not. $BUILD: a release build
# folder; $CROSS: the prefix of the cross compiler that made it.
set -u
status=0
cc=${CROSS:+${CROSS}g}cc
folder=$(mktemp -d)
soname=$(readlink "$BUILD/libadjoint.so")
trap 'rm -rf "$folder"' EXIT

# Without debugging information, which would only take time.
mkdir "$folder/sound"
cp -P "$BUILD"/libadjoint.a "$BUILD"/libadjoint.so* "$BUILD"/libadjoint_io.a "$BUILD"/libadjoint_io.so* "$BUILD"/libadjoint_emit.a "$BUILD"/libadjoint_emit.so* \
    "$BUILD"/libadjoint_onnx.a "$BUILD"/libadjoint_onnx.so* \
    "$folder/sound"
"${CROSS:-}strip" -g "$folder"/sound/*

# compile NAME: standard input, as NAME.o
compile() {
    cat >"$folder/$1.c"
    $cc -O1 -fPIC -fopenmp -fvisibility=hidden -c "$folder/$1.c" -o "$folder/$1.o" || exit 1
}

# with OBJECT...: the libraries with these in libadjoint; the status of test_symbols.sh
with() {
    rm -rf "$folder/build"
    mkdir "$folder/build"
    cp -P "$folder"/sound/* "$folder/build"
    "${CROSS:-}ar" r "$folder/build/libadjoint.a" "$@" 2>"$folder/ar" &&
        $cc -shared -Wl,-soname,"$soname" -o "$folder/build/$soname" \
            -Wl,--whole-archive "$folder/build/libadjoint.a" -Wl,--no-whole-archive -ldnnl -fopenmp -lm || exit 1
    BUILD=$folder/build tests/test_symbols.sh >"$folder/findings" 2>&1
}

echo 'int sound(void); int sound(void) { return 1; }' | compile sound
with "$folder/sound.o" || {
    echo "test_symbols_notice: a sound source is refused:"
    cat "$folder/findings"
    status=1
}

# What the finding must say, and the source.
while read -r name finding source; do
    echo "$source" | compile "$name"
    echo "$name $finding $source" >>"$folder/faults"
done <<'END'
data data\.o.*\.data static int count = 3; int next1(void); int next1(void) { return count++; }
bss bss\.o.*\.bss static int count; int next2(void); int next2(void) { return count++; }
tbss tbss\.o.*\.tbss static _Thread_local int count; int next3(void); int next3(void) { return count++; }
export leaked$ __attribute__((visibility("default"))) int leaked(void); int leaked(void) { return 1; }
abort ^.*abort$ void abort(void); void stop(void); void stop(void) { abort(); }
print ^.*printf int printf(const char *, ...); void say(int x); void say(int x) { printf("%d", x); }
fork ^.*fork$ int fork(void); int split(void); int split(void) { return fork(); }
random ^.*rand$ int rand(void); int draw(void); int draw(void) { return rand(); }
critical GOMP_critical void add(int *a); void add(int *a) { _Pragma("omp critical") ++*a; }
END
if with "$folder"/[!s]*.o; then
    echo "test_symbols_notice: nine faults are passed over"
    status=1
fi
while read -r name finding source; do
    grep -qE "$finding" "$folder/findings" || {
        echo "test_symbols_notice: $name is passed over: $source"
        status=1
    }
done <"$folder/faults"
exit $status
