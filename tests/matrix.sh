#!/bin/sh
# matrix.sh [SETTING...] - `ninja test` in every setting that this machine has, and a table of how it
# went: at each level of instruction sets that oneDNN (ONEDNN_MAX_CPU_ISA) and the kernels of our own
# (ADJOINT_MAX_ISA) may be held to; each on all cores, on one (CORE, or 0), and twice at once in one
# build folder; then with other plans (ADJOINT_PLAN), and with test programs that have set a locale
# (TEST_LOCALE). Without names all of them; `matrix.sh --list` names them. What each printed is kept
# in build/tests/matrix.
set -u
cd "$(dirname "$0")/.." || exit 1
logs=build/tests/matrix

# has FLAG...: whether the CPU has all of these.
has() {
    for flag; do
        grep -m 1 '^flags' /proc/cpuinfo 2>/dev/null | grep -qw "$flag" || return 1
    done
}

# level NAME [VARIABLE=VALUE [FLAG...]]: "NAME COMMAND", how to run `ninja test` there, on all cores, on
# one, and twice at once.
level() {
    name=$1 limit=${2:-}
    [ $# -lt 2 ] || shift
    shift
    has "$@" || return 0
    echo "$name env $limit ninja test"
    echo "$name-one-core env $limit taskset -c ${CORE:-0} ninja test"
    echo "$name-twice env $limit tests/matrix.sh --twice"
}
avx2="avx2 fma f16c"
avx512="$avx2 avx512f avx512bw avx512dq avx512vl"
# shellcheck disable=SC2086 # words
settings() {
    level usual
    level own-base ADJOINT_MAX_ISA=base
    level own-avx2 ADJOINT_MAX_ISA=avx2 $avx2
    level own-avx512 ADJOINT_MAX_ISA=avx512 $avx512
    level own-avx512-bf16 ADJOINT_MAX_ISA=avx512_bf16 $avx512 avx512_bf16
    level onednn-sse41 ONEDNN_MAX_CPU_ISA=SSE41 sse4_1
    level onednn-avx ONEDNN_MAX_CPU_ISA=AVX avx
    level onednn-avx2 ONEDNN_MAX_CPU_ISA=AVX2 $avx2
    level onednn-avx512 ONEDNN_MAX_CPU_ISA=AVX512_CORE $avx512
    level onednn-avx512-vnni ONEDNN_MAX_CPU_ISA=AVX512_CORE_VNNI $avx512 avx512_vnni
    level onednn-avx512-bf16 ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16 $avx512 avx512_bf16
    level onednn-avx512-fp16 ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16 $avx512 avx512_bf16 avx512_fp16
    level onednn-amx ONEDNN_MAX_CPU_ISA=AVX512_CORE_AMX $avx512 amx_bf16 amx_int8
    level least "ONEDNN_MAX_CPU_ISA=SSE41 ADJOINT_MAX_ISA=base"
    for plan in unfused tune; do
        echo "plan-$plan env ADJOINT_PLAN=$plan ninja test"
    done
    ! command -v localedef >/dev/null || echo "locale env TEST_LOCALE=de_DE.UTF-8 ninja test"
}

if [ "${1:-}" = --list ]; then
    settings | sed 's/ .*//'
    exit 0
fi
if [ "${1:-}" = --twice ]; then
    ninja test >"$logs/second.log" 2>&1 &
    second=$!
    status=0
    ninja test || status=1
    wait "$second" || {
        echo "the second run failed: $logs/second.log"
        tail -n 20 "$logs/second.log"
        status=1
    }
    exit $status
fi

mkdir -p "$logs"
wanted=" $* " status=0
for name; do
    if ! settings | grep -q "^$name "; then
        echo "matrix: no setting $name here (got $name, expected some of: $(settings | sed 's/ .*//' | tr '\n' ' '))" >&2
        exit 3
    fi
done
settings >"$logs/settings"
: >"$logs/table"
while read -r name command; do
    case "$wanted" in
    "  " | *" $name "*) ;;
    *) continue ;;
    esac
    began=$(date +%s)
    result=passed
    # shellcheck disable=SC2086 # a command and its words
    $command >"$logs/$name.log" 2>&1 </dev/null || result=FAILED status=1
    printf '%-27s %-7s %5d s  %s\n' "$name" "$result" "$(($(date +%s) - began))" \
        "$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$logs/$name.log" | tail -n 1)" | tee -a "$logs/table"
    grep '^failed: ' "$logs/$name.log"
done <"$logs/settings"
exit $status
