#!/bin/sh
# mpi.sh PROGRAM... - runs each on 1, 2, 3, 4 and 6 processes; MPIRUN (mpirun) starts them. More
# processes than cores are allowed, and root, as in a container.
set -u
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
mpirun=${MPIRUN:-mpirun}
more=
case $($mpirun --version 2>&1) in
*'Open MPI'* | *OpenRTE*) more=--oversubscribe ;;
esac
status=0
for program in "$@"; do
    "$program" || status=1
    for n in 2 3 4 6; do
        # shellcheck disable=SC2086 # none, or one option
        timeout 120 "$mpirun" $more -n "$n" "$program" || status=1
    done
done
exit $status
