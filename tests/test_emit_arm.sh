#!/bin/sh
# test_emit_arm.sh - emitted nets on an emulated Cortex-M4F: lenet5 and ds_cnn predict what is stored
# with them, and what the same C computes here; lenet5 trains, one image a step or three; its last layer learns
# other pictures. The code beside the weights is small, and RAM is the arena. $BUILD: a build folder.
# shellcheck disable=SC2086 # lists of flags
set -eu
for tool in arm-none-eabi-gcc qemu-system-arm; do
    if ! command -v $tool >/dev/null; then
        echo "skipped: $tool is not installed"
        exit 77
    fi
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if ! echo '#include <math.h>' | arm-none-eabi-gcc -E - >"$folder/out" 2>&1; then
    echo "skipped: newlib for arm-none-eabi is not installed"
    exit 77
fi
cpu="-mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard"
strict="-std=c99 -Wall -Wextra -Wpedantic -Wconversion -Werror"

cat >"$folder/net_main.c" <<'END'
/* net_main.c - runs an emitted net on any machine: net_test; with -DTRAINING three steps from initial
 * values, with -DACCUMULATED one step of three images, whose result is saved and loaded. Prints
 * losses and outputs. -DINPUTS, -DOUTPUTS: floats of one call. -DSTATE: bytes of a saved state. */
#include <stdint.h>
#include <stdio.h>

int net_predict(const float *input, float *output);
int net_test(void);
int net_train_step(const float *input, const int32_t *labels, float learning_rate, float *loss);
int net_accumulate(const float *input, const int32_t *labels, float *loss);
int net_update(float learning_rate);
void net_init(uint64_t seed);
void net_save(uint8_t *buffer);
int net_load(const uint8_t *buffer);

int main(void)
{
    static float input[INPUTS], output[OUTPUTS];
    for (int i = 0; i < INPUTS; i++)
        input[i] = (float)((i * 7 + 3) % 17) / 8.0F - 1.0F;
#ifdef TRAINING
    static uint8_t saved[STATE];
    net_init(7);
    for (int32_t label = 3; label < 6; label++) {
        float loss = 0;
#ifdef ACCUMULATED
        if (net_accumulate(input, &label, &loss) != 0)
#else
        if (net_train_step(input, &label, 0.01F, &loss) != 0)
#endif
            return 1;
        printf("loss %.7g\n", (double)loss);
    }
#ifdef ACCUMULATED
    net_update(0.01F);
#endif
    net_save(saved);
    net_init(8);
    if (net_load(saved) != 0)
        return 1;
#else
    if (net_test() != 0)
        return 1;
#endif
    net_predict(input, output);
    for (int i = 0; i < OUTPUTS; i++)
        printf("output %.7g\n", (double)output[i]);
    return 0;
}
END

failed() {
    echo "test_emit_arm: $*"
    exit 1
}

# constant NAME: the number that the emitted file gives it
constant() {
    sed -n "s/^ *$1 = \([0-9]*\),*\$/\1/p" "$folder/net.c"
}

# size_of MODEL CODE: the bytes of code, functions of libm and libc included, are at most CODE
size_of() {
    arm-none-eabi-gcc $strict -Os $cpu -c "$folder/net.c" -o "$folder/net.o"
    arm-none-eabi-gcc $cpu -nostartfiles -Wl,-e,net_predict -Wl,--gc-sections "$folder/net.o" -lm -lc \
        -o "$folder/net.elf"
    weights=$(sed -n 's/.*Flash: \([0-9]*\) bytes of constants.*/\1/p' "$folder/net.c")
    arm-none-eabi-size "$folder/net.elf" "$folder/net.o" | awk -v weights="$weights" -v most="$2" \
        -v arena="$(constant NET_ARENA_BYTES)" -v model="$1" '
            NR == 2 { code = $1 - weights }
            NR == 3 { ram = $2 + $3 }
            END { if (code > 0 && code <= most && ram > 0 && ram <= 1.05 * arena) exit 0
                printf "test_emit_arm: %s has %d bytes of code, expected at most %d, and %d of RAM for an " \
                    "arena of %d\n", model, code, most, ram, arena
                exit 1 }'
}

# memory_of MODEL: RAM and initial values of a training step are those that the comment at the top names
memory_of() {
    arm-none-eabi-gcc $strict -Os $cpu -c "$folder/net.c" -o "$folder/net.o"
    states=$(sed -n 's/.* \([0-9]*\) of parameters and states.*/\1/p' "$folder/net.c")
    initial=$(sed -n 's/.* \([0-9]*\) of initial values.*/\1/p' "$folder/net.c")
    arm-none-eabi-size "$folder/net.o" | awk -v named=$(($(constant NET_ARENA_BYTES) + states)) -v initial="$initial" \
        'END { exit !($2 == initial && $2 + $3 >= named && $2 + $3 <= 1.05 * named) }' ||
        failed "$1: RAM differs from the comment: $(arm-none-eabi-size "$folder/net.o")"
}

# on_board SOURCE... FLAG...: compiles for the emulated board and runs there
on_board() {
    arm-none-eabi-gcc $cpu -Os -I"$folder" "$@" examples/cortex_m/cortex_m.c -T examples/cortex_m/cortex_m.ld \
        --specs=rdimon.specs -nostartfiles -Wl,--gc-sections -lm -o "$folder/board.elf"
    timeout 60 qemu-system-arm -M mps2-an386 -nographic -semihosting-config enable=on,target=native \
        -kernel "$folder/board.elf" >"$folder/got" </dev/null
}

# runs MODEL [FLAGS]: the emulated board prints what this machine does, where sanitizers look for errors
runs() {
    flags="-DNET_TEST -DINPUTS=$(constant NET_INPUT_SIZE) -DOUTPUTS=$(constant NET_OUTPUT_SIZE) ${2-}"
    [ -z "${2-}" ] || flags="$flags -DSTATE=$(constant NET_STATE_BYTES)"
    cc -std=c99 -O1 -fsanitize=address,undefined -fno-sanitize-recover=all $flags "$folder/net.c" "$folder/net_main.c" -o "$folder/here" -lm
    "$folder/here" >"$folder/want" || failed "$1 fails on this machine"
    on_board $flags "$folder/net.c" "$folder/net_main.c" || failed "$1 fails on the board"
    paste "$folder/got" "$folder/want" | awk -v model="$1" '{
            d = $2 - $4; a = $4 < 0 ? -$4 : $4
            if (d < 0) d = -d
            if ($1 != $3 || NF != 4 || !(d <= 1e-5 * (a > 1 ? a : 1))) bad = NR }
        END { if (bad || NR < 2) { print "test_emit_arm: " model " differs in line " bad; exit 1 } }'
}

"$BUILD/adjoint" emit --model lenet5 --out "$folder/net.c" >"$folder/out" 2>&1
size_of lenet5 12288
runs lenet5
"$BUILD/adjoint" emit --model ds_cnn --out "$folder/net.c" >"$folder/out" 2>&1
size_of ds_cnn 20480
runs ds_cnn
"$BUILD/adjoint" emit --model lenet5 --train --out "$folder/net.c" >"$folder/out" 2>&1
memory_of "lenet5 with training"
runs "lenet5 with training" -DTRAINING
"$BUILD/adjoint" emit --model lenet5 --train --accumulate --out "$folder/net.c" >"$folder/out" 2>&1
runs "lenet5 with accumulated gradients" "-DTRAINING -DACCUMULATED"

"$BUILD/adjoint" train --model lenet5 --limit 1000 --epochs 1 --out "$folder/lenet5.safetensors" >"$folder/out" 2>&1
"$BUILD/adjoint" emit --weights "$folder/lenet5.safetensors" --train --head-only --out "$folder/net.c" \
    >"$folder/out" 2>&1
memory_of "the last layer"
on_board examples/cortex_m/last_layer.c || failed "the last layer does not train on the board"
awk '/^before/ { before = $2 } /^after/ { after = $4 } END { exit !(before < 30 && after >= 50) }' "$folder/got" ||
    failed "the last layer does not learn: $(cat "$folder/got")"
