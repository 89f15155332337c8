#!/usr/bin/env bash
# What ends a job early, in a real cluster of three nodes with 4 GPUs each: the time limit, scancel, a signal, a node that
# dies. A chain of jobs with one folder of results goes on through all of it, each from the iteration that was saved last.
#   interruptions_test.sh BIN      BIN: the folder of the programs. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/slurm/cluster.sh
. "$here/cluster.sh"
enter_cluster "$0" "$@"
bin=$(cd "$1" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/slurm/batch_job.sh
. "$here/batch_job.sh"
start_cluster 3 4
said() { printf '%4d s  %s\n' "$SECONDS" "$*"; }

batch=ssd_preprocess.sbatch sbatch_options=(--nodes=2)
job pack DATA="$root/tests/data/coco_free" --
expect_outcome 'COMPLETED 0:0'

# Two nodes; only rank 0 writes, so for the other node the folder of results need not be writable.
mkdir results
on_node 2 mount --bind "$work/results" "$work/results"
on_node 2 mount -o remount,bind,ro "$work/results"
! on_node 2 touch "$work/results/x" 2>/dev/null || fail 'node2 can write into the results'
batch=ssd_multinode_fp16.sbatch sbatch_options=(--nodes=2 --ntasks-per-node=4 --gres=gpu:4)
job two_nodes RESULTS="$work/results" -- "${small[@]}" --epochs 1 --evaluation 0 --seed 1
expect_outcome 'COMPLETED 0:0'
expect '8 ranks on node[1-2] by mpirun' 1
expect '8 ranks, 4 on this node' 1
expect 'Average ' 12
expect 'done: 1 epochs' 1
[ -s results/models/epoch_0.pt ] || fail 'no checkpoint'

# The chain. An epoch has two iterations with two ranks, and each is saved.
long=("${small[@]}" --epochs 10000 --evaluation none --seed 1 --keep 2 --log-interval 1)
# saved_iterations: how many lie behind the newest checkpoint, which has to be whole
saved_iterations() {
  "$bin/ssd_checkpoint" "chain/models/$(cat chain/models/latest)" >listed || fail 'the newest checkpoint is damaged'
  sed -n 's/^iteration: \([0-9]*\) is next$/\1/p' listed
}
# goes_on_after N: the newest start in the log begins with the next iteration
goes_on_after() {
  wait_for_line "$log" "iter $(($1 + 1))/" 120
  [ "$(grep -o 'iter [0-9]*/' "$log" | grep -c "iter $(($1 + 1))/")" = 1 ] || { cat "$log" >&2; fail "iteration $(($1 + 1)) twice"; }
  said "goes on after iteration $1"
}

batch=ssd_8gpu_fp16.sbatch sbatch_options=(--ntasks-per-node=2 --gres=gpu:2 --time=2 --signal=B:USR1@60)
submit limit RESULTS="$work/chain" -- "${long[@]}"
release_requeued "$id" 150
said 'time limit near: requeued'
expect 'limit: USR1: asking the ranks to save and stop' 1
expect 'limit: stopped and saved: requeue' 1
stopped=$(sed -n 's/^stopped after iteration \([0-9]*\) by signal USR1.*/\1/p' "$log")
[ "$(saved_iterations)" = "$stopped" ] || fail "stopped after iteration $stopped, saved $(saved_iterations)"
goes_on_after "$stopped"

scancel "$id"
outcome=$(wait_for_job "$id" 60)
[[ $outcome = CANCELLED* ]] || fail "scancel: $outcome"
stopped=$(saved_iterations)
said "scancel: $outcome, iteration $stopped is saved"

# srun in mpirun's place; TERM to the batch script saves and ends.
sbatch_options=(--ntasks-per-node=2 --gres=gpu:2)
submit by_srun LAUNCHER=srun RESULTS="$work/chain" -- "${long[@]}"
goes_on_after "$stopped"
scancel --batch --signal=TERM "$id"
outcome=$(wait_for_job "$id" 120)
expect_outcome 'FAILED 75:0'
expect 'by_srun: stopped and saved; submit again with the same RESULTS to go on' 1
stopped=$(sed -n 's/^stopped after iteration \([0-9]*\) by signal USR1.*/\1/p' "$log")
said "TERM by srun: $outcome, stopped after iteration $stopped"

# A node dies: mpirun ends at once, the script waits, Slurm requeues on the nodes that are left.
batch=ssd_multinode_fp16.sbatch sbatch_options=(--nodes=2 --ntasks-per-node=1 --gres=gpu:1)
submit node_lost RESULTS="$work/chain" REQUEUE=no -- "${long[@]}"
goes_on_after "$stopped"
wait_for_line "$log" "saved '" 60
kill_node 2
wait_for_line "$log" 'node_lost: a node was lost: waiting up to 900 s for Slurm to requeue the job' 30
mark_node_down 2
release_requeued "$id" 60
said 'node lost: requeued'
stopped=$(saved_iterations)
wait_for_line "$log" '2 ranks on node[1,3] by mpirun' 60
wait_for_line "$log" "iter $((stopped + 1))/" 120
said "goes on after iteration $stopped"
scancel --batch --signal=USR1 "$id"
outcome=$(wait_for_job "$id" 120)
expect_outcome 'FAILED 75:0'
expect 'node_lost: stopped and saved; REQUEUE=no, so a later job with the same RESULTS goes on' 1
said "USR1 with REQUEUE=no: $outcome"
