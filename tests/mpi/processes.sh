#!/bin/bash
# processes.sh - for the scripts beside it: mpirun's options, and the processes of a test, found in
# /proc (a small system has no pgrep).

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun=${MPIRUN:-mpirun}
more= # more processes than cores are allowed
case $($mpirun --version 2>&1) in
*'Open MPI'* | *OpenRTE*) more=--oversubscribe ;;
esac
export mpirun more

# pids_with TEXT: the processes of whose arguments one has it.
pids_with() {
    local file word
    for file in /proc/[0-9]*/cmdline; do
        while IFS= read -r -d '' word; do
            [[ $word != *"$1"* ]] || { echo "${file//[!0-9]/}" && break; }
        done 2>/dev/null <"$file"
    done
}

# kill_with TEXT: ends them all.
kill_with() {
    local pids
    pids=$(pids_with "$1")
    # shellcheck disable=SC2086 # words
    [ -z "$pids" ] || kill -9 $pids 2>/dev/null
}

# pid_of_rank RANK TEXT: the tool's process of a rank.
pid_of_rank() {
    local pid
    for pid in $(pids_with "$2"); do
        [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = adjoint ] || continue
        tr '\0' '\n' 2>/dev/null <"/proc/$pid/environ" | grep -qE "^(OMPI_COMM_WORLD_RANK|PMI_RANK)=$1\$" &&
            echo "$pid" && return
    done
}

# resumed PID FILE: the training that writes to it says that it goes on, however slow the machine is, and
# is ended by Ctrl-C then.
resumed() {
    for _ in $(seq 1 600); do
        ! grep -q 'resumed after' "$2" || break
        kill -0 "$1" 2>/dev/null || break
        sleep 0.1
    done
    kill -INT "$1" 2>/dev/null
    wait "$1"
    grep -q 'resumed after' "$2"
}
