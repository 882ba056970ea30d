#!/bin/bash
# train.sh - adjoint train by several ranks: the same bits for any number of them, checkpoints that
# go on with another number, what is refused and by whom, Ctrl-C, a full disk, no mpirun.
# Run from the project's folder; MPIRUN (mpirun) starts the ranks.
set -u
tool=$PWD/build/adjoint
# shellcheck source=tests/mpi/processes.sh
. tests/mpi/processes.sh
export ADJOINT_TUNE=off
folder=$(mktemp -d)
trap 'kill_with "$folder"; rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

complain() {
    echo "mpi/train.sh: $*" >&2
    failed=$((failed + 1))
}

# ranks N COMMAND...: its output to out, what it says of errors to err; its exit status.
ranks() {
    local n=$1
    shift
    # shellcheck disable=SC2086 # none, or one option
    timeout 120 $mpirun $more -n "$n" "$@" >out 2>err
}

# same NAME...: files of the same bits.
same() {
    [ "$(sha256sum -- "$@" | cut -d' ' -f1 | sort -u | wc -l)" = 1 ] || complain "other bits: $*"
}

# refused STATUS SENTENCE: the run failed with this message.
refused() {
    local code=$1
    [ "$code" -ne 0 ] || complain "not refused: $2"
    grep -q -- "$2" err || complain "expected \"$2\", got: $(grep -v '^$' err | head -5)"
}

# ---- the same bits ----

for model in lenet resnet8 ds_cnn; do
    for precision in f32 bf16 f16; do
        train="train --model $model --precision $precision --epochs 1 --limit 230 --batch 32 --parallel shards=4"
        # shellcheck disable=SC2086 # words
        {
            "$tool" $train --threads 3 --out alone.safetensors >out 2>err || complain "$model: $(cat err)"
            for n in 1 2 4; do
                ranks $n "$tool" $train --out "ranks$n.safetensors" || complain "$model, $n ranks: $(cat err)"
            done
        }
        same alone.safetensors ranks?.safetensors
    done
done

# What a batch does not know of: augmentation and mixup by the image, class weights by the whole batch.
train='train --epochs 1 --limit 100 --parallel shards=4 --augment jitter=0.2,cutout=4,flip,mixup=0.4'
for n in 1 2 4; do
    # shellcheck disable=SC2086 # words
    ranks $n "$tool" $train --class-weights balanced --batch 24,accumulate=2 --out "ranks$n.safetensors" ||
        complain "augmented, $n ranks: $(cat err)"
done
same ranks?.safetensors

# Rank 0 times kernels for all: never those in which the others take part.
rm -f tuned
ADJOINT_TUNE=$folder/tuned ranks 2 "$tool" train --limit 200 --epochs 40 --parallel timeout=10 ||
    complain "kernels are timed: $(cat err)"
[ -s tuned ] || complain "no kernel was timed"
! grep -q all_reduce tuned || complain "timed by one rank: $(grep all_reduce tuned)"

# ---- checkpoints ----

train='train --limit 230 --batch 32 --threads 1'
# shellcheck disable=SC2086 # words
{
    for n in 1 2 4; do
        rm -f c.ckpt
        ranks 4 "$tool" $train --epochs 2 --checkpoint c.ckpt || complain "first half: $(cat err)"
        ranks $n "$tool" train --resume --checkpoint c.ckpt --epochs 4 --out "resumed$n.safetensors" ||
            complain "resumed by $n ranks: $(cat err)"
    done
}
same resumed?.safetensors

ranks 3 "$tool" train --resume --checkpoint c.ckpt --epochs 6
refused $? 'the ranks (got 4, expected a multiple of 3)'

# ---- stopped ----

# Ctrl-C reaches one rank: all stop after the same step, and the checkpoint is whole.
# shellcheck disable=SC2086 # none, or one option
$mpirun $more -n 2 "$tool" train --epochs 1000 --limit 230 --batch 32 --checkpoint "$folder/stop.ckpt" \
    --checkpoint-every 2 --log stop.json >out 2>err &
while ! [ -e stop.ckpt ] && kill -0 $! 2>/dev/null; do sleep 0.1; done
pid=$(pid_of_rank 1 "$folder/stop.ckpt")
kill -INT "$pid"
wait $!
code=$?
[ $code = 130 ] || complain "Ctrl-C: exit status $code: $(cat err)"
grep -q 'stopped after a step; continue with --resume' out || complain "Ctrl-C: $(tail -3 out)"
tail -1 stop.json | grep -qE '"interrupted": ?true' || complain "Ctrl-C: $(tail -1 stop.json)"
"$tool" train --resume --checkpoint stop.ckpt >out 2>err &
resumed $! out || complain "Ctrl-C: $(cat err)"

# ---- refused ----

# Each rank another setting: NAME VALUE-OF-RANK-0 VALUE-OF-RANK-1 SENTENCE.
differ() {
    # shellcheck disable=SC2016 # for the other shell
    ranks 2 sh -c 'if [ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ]; then set -- "$1" "$2" "$4"; fi
        exec "$1" train --limit 100 --batch 20 --epochs 1 "$2" "$3"' sh "$tool" "$1" "$2" "$3"
    refused $? "$4"
}
differ --lr 0.1 0.2 'rank 1: its lr differs from rank 0'
differ --model lenet resnet8 'rank 1: its model differs from rank 0'
differ --batch 20 40 'rank 1: its batch differs from rank 0'
differ --seed 1 2 'rank 1: its seed differs from rank 0'
differ --epochs 1 2 'rank 1: its epochs differs from rank 0'
differ --limit 100 200 'rank 1: its training data differs from rank 0'
differ --optimizer momentum adam 'rank 1: its optimizer differs from rank 0'
differ --precision f32 bf16 'rank 1: its precision differs from rank 0'
differ --backend onednn direct 'rank 1: its backend differs from rank 0'

ranks 2 "$tool" train --limit 100 --batch 21
refused $? 'batch cannot be divided into shards (got 21, expected a multiple of 2)'
ranks 2 "$tool" train --limit 100 --batch 30 --parallel shards=3
refused $? 'the ranks (got 3, expected a multiple of 2)'
ranks 2 "$tool" train --lr auto
refused $? 'with several ranks'
ranks 2 "$tool" train --checkpoint /dev/full/x --limit 100 --batch 20
refused $? 'checkpoint'

# Another MPI than mpirun's: each process would be by itself, and write the same files.
other=mpirun.mpich
[ -n "$more" ] || other=mpirun.openmpi
if command -v $other >/dev/null; then
    OMPI_MCA_rmaps_base_oversubscribe=1 timeout 60 $other -n 2 "$tool" train --limit 50 --epochs 1 >out 2>err
    refused $? 'mpirun started 2 processes, but belongs to another MPI'
fi

# ---- a full disk ----

# Where a disk of two pages can be made; the first checkpoint does not fit.
mkdir full
if mount -t tmpfs -o size=8k none full 2>/dev/null; then
    ranks 2 "$tool" train --limit 100 --batch 20 --epochs 2 --checkpoint full/c.ckpt
    code=$?
    umount full
    refused $code 'No space left on device'
else
    echo "mpi/train.sh: no disk can be mounted here: a full one was not tried"
fi

[ $failed -eq 0 ] && echo "train by several ranks: all is right"
[ $failed -eq 0 ]
