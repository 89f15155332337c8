#!/usr/bin/env bash
# slurm/ssd_8gpu_fp16.sbatch, unchanged, in a real cluster of one node: 8 ranks by mpirun train an epoch of twelve photos,
# evaluate and save; 8 ranks by srun evaluate what was saved; a run that fails is a failed job, and so is one whose ranks
# do not average right.
#   one_node_test.sh BIN      BIN: the folder of ssd_train and ssd_preprocess. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/slurm/cluster.sh
. "$here/cluster.sh"
enter_cluster "$0" "$@"
bin=$(cd "$1" && pwd)
root=$here/../..

# What Open MPI must be told on a small machine and as root; sbatch hands the environment on.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1

work=$CLUSTER_FOLDER/work
mkdir "$work"
cd "$work"
"$bin/ssd_preprocess" "$root/tests/data/coco_free" shards >pack.log 2>&1 || { cat pack.log >&2; fail 'ssd_preprocess'; }
start_cluster

# job NAME VARIABLE=VALUE... -- OPTION...: runs the batch file to its end; sets outcome and log
job() {
  local name=$1 variables=(DATA="$work/shards" PROGRAM="$bin/ssd_train") id
  shift
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  id=$(env "${variables[@]}" sbatch --parsable --job-name="$name" "$root/slurm/ssd_8gpu_fp16.sbatch" \
    --device cpu --backbone resnet18 --batch-size 2 --eval-batch-size 2 "$@")
  log=$work/$name-$id.log
  outcome=$(wait_for_job "$id" 240)
  printf '%s: %s\n' "$name" "$outcome"
}

# expect TEXT TIMES: lines of the log that hold the text
expect() {
  local found
  found=$(grep -c -F -- "$1" "$log" || true)
  [ "$found" = "$2" ] || { cat "$log" >&2; fail "the log has $found lines with '$1', not $2"; }
}
expect_outcome() { [ "$outcome" = "$1" ] || { cat "$log" >&2; fail "the job ended as '$outcome', not '$1'"; }; }

job train RESULTS="$work/results" -- --epochs 1 --evaluation 0 --seed 1
expect_outcome 'COMPLETED 0:0'
expect '8 ranks on node1 by mpirun' 1
expect '8 ranks, 8 on this node' 1
expect 'learning rate 0.0013 = 0.0026 * 8 ranks * 2 / 32, warmup 300 iterations' 1
expect 'done: 1 epochs' 1
expect 'Average ' 12
expect 'rank  host   local rank  device' 1
expect 'ok: 5 averages, no wrong value; the gradient in FP16+FP32: ' 1
# On a machine of fewer cores than ranks, that warning.
! grep 'warning:' "$log" | grep -v 'warning: 8 ranks share' || fail 'a warning'
expect 'error:' 0
! grep -q $'[\r\033]' "$log" || fail 'the log holds carriage returns or escapes'
[ -s results/models/epoch_0.pt ] || fail 'no checkpoint'
[ -s results/log.jsonl ] || fail 'no JSON log'
[ -s results/detections.json ] || fail 'no detections'
grep 'Average ' "$log" >trained

job evaluate LAUNCHER=srun RESULTS="$work/evaluated" -- --mode evaluation --checkpoint "$work/results/models/epoch_0.pt"
expect_outcome 'COMPLETED 0:0'
expect '8 ranks on node1 by srun' 1
expect '8 ranks, 8 on this node' 1
grep 'Average ' "$log" | diff trained - || fail 'the evaluation in training and that of the checkpoint differ'
cmp results/detections.json evaluated/detections.json || fail 'detections differ'

cat >wrong_averages <<'PROGRAM'
#!/bin/sh
echo 'FAILED: 1 wrong value'
exit 1
PROGRAM
chmod +x wrong_averages
job wrong_averages COMM_BENCH="$work/wrong_averages" --
expect_outcome 'FAILED 1:0'
expect 'ssd_train ' 0

job no_data DATA=/nowhere --
expect_outcome 'FAILED 1:0'
expect "error: no folder '/nowhere'" 1

job no_program PROGRAM=/nowhere/ssd_train --
expect_outcome 'FAILED 2:0'
expect 'error: PROGRAM=/nowhere/ssd_train: no such program' 1
