#!/usr/bin/env bash
# The batch files, unchanged, in a real cluster of one node with 8 GPUs: COCO is packed; 8 ranks by mpirun train an epoch
# of twelve photos, evaluate and save; 2 ranks by srun, in a container's place, evaluate what was saved; each line of the
# preflight; the scaling table; every file is accepted.
#   one_node_test.sh BIN      BIN: the folder of the programs. Exit code 77: skipped.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/slurm/cluster.sh
. "$here/cluster.sh"
enter_cluster "$0" "$@"
bin=$(cd "$1" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=tests/slurm/batch_job.sh
. "$here/batch_job.sh"
start_cluster 1 8

batch=ssd_preprocess.sbatch
job pack DATA="$root/tests/data/coco_free" --
expect_outcome 'COMPLETED 0:0'
[ -s shards/train.manifest.json ] || fail 'no train shards'
[ -s shards/val.manifest.json ] || fail 'no val shards'

batch=ssd_8gpu_fp16.sbatch
job train RESULTS="$work/results" -- "${small[@]}" --epochs 1 --evaluation 0 --seed 1
expect_outcome 'COMPLETED 0:0'
expect '8 ranks on node1 by mpirun' 1
expect '8 ranks, 8 on this node' 1
expect 'learning rate 0.0013 = 0.0026 * 8 ranks * 2 / 32, warmup 300 iterations' 1
expect 'done: 1 epochs' 1
expect 'Average ' 12
expect 'rank  host   local rank  device' 1
expect 'ok: 2 averages, no wrong value; the gradient in FP16+FP32: ' 1
# On a machine of fewer cores than ranks, that warning.
! grep 'warning:' "$log" | grep -v 'warning: 8 ranks share' || fail 'a warning'
expect 'error:' 0
! grep -q $'[\r\033]' "$log" || fail 'the log holds carriage returns or escapes'
[ -s results/models/epoch_0.pt ] || fail 'no checkpoint'
[ -s results/log.jsonl ] || fail 'no JSON log'
[ -s results/detections.json ] || fail 'no detections'
grep 'Average ' "$log" >trained

# A stand-in for the container's program: it takes the same words, and runs what it is given.
mkdir container
cat >container/singularity <<'PROGRAM'
#!/bin/bash
[ "$1" = exec ] || exit 9
shift
while [ "$1" = --bind ]; do [ -e "$2" ] || exit 8; shift 2; done
[ "${1##*.}" = sif ] && [ "$2" != "${2#/opt/ssd/bin/}" ] || exit 7
image=$1 program=$2
shift 2
exec "$(dirname "$image")/bin/${program##*/}" "$@"
PROGRAM
chmod +x container/singularity
ln -s "$bin" container/bin
touch container/image.sif
batch=ssd_evaluate.sbatch sbatch_options=(--ntasks-per-node=2 --gres=gpu:2)
job evaluate LAUNCHER=srun RESULTS="$work/evaluated" CHECKPOINT="$work/results/models/epoch_0.pt" BIN= \
  CONTAINER="$work/container/image.sif" PATH="$work/container:$PATH" -- "${small[@]}"
expect_outcome 'COMPLETED 0:0'
expect '2 ranks on node1 by srun' 1
expect '2 ranks, 2 on this node' 1
grep 'Average ' "$log" | diff trained - || fail 'the evaluation in training and that of the checkpoint differ'
cmp results/detections.json evaluated/detections.json || fail 'detections differ'

batch=ssd_benchmark.sbatch
job scaling RESULTS="$work/scaling" RANKS='1 2' -- "${small[@]}" --benchmark-warmup 1 --benchmark-iterations 1
expect_outcome 'COMPLETED 0:0'
[ "$(awk 'NR > 1 && $2 > 0 { print $1 }' scaling/scaling.txt | paste -sd ' ')" = '1 2' ] || fail 'no table'

# A task of the array goes on from what the one before it has saved: here, nothing is left.
batch=ssd_8gpu_fp16.sbatch sbatch_options=(--ntasks-per-node=2 --gres=gpu:2 --array=1-2%1)
submit array -- "${small[@]}" --epochs 1 --evaluation none --seed 1
for task in 1 2; do
  outcome=$(wait_for_job "${id}_$task" 120)
  printf '%4d s  array task %s: %s\n' "$SECONDS" "$task" "$outcome"
  expect_outcome 'COMPLETED 0:0'
done
cat array-*.log >array
log=$work/array
expect "results array-$id" 2
expect 'done: 1 epochs' 1
expect 'done: 0 epochs' 1
sbatch_options=()

# Each failure is one line, and the job has its exit code.
refused() { expect_outcome 'FAILED 2:0'; expect 'error: ' 1; expect "error: $1" 1; expect 'SSD300 with' 0; }
job no_shards SHARDS=/nowhere -- "${small[@]}"
refused 'SHARDS=/nowhere: no train.manifest.json in it; '
job coco SHARDS="$root/tests/data/coco_free" -- "${small[@]}"
refused "SHARDS=$root/tests/data/coco_free: is COCO itself; pack it first: "
cp -r shards cut
truncate --size=-1 cut/train-00000-of-00001.h5
job cut SHARDS="$work/cut" -- "${small[@]}"
refused "SHARDS=$work/cut: 1 of 1 train shards are missing or of another size, train-00000-of-00001.h5 first; "
job no_program BIN=/nowhere -- "${small[@]}"
refused 'BIN=/nowhere: no ssd_train in it; '
job no_space NEED_GB=1000000 -- "${small[@]}"
refused "RESULTS=no_space-$id: "
job no_folder RESULTS=/proc/ssd -- "${small[@]}"
refused 'RESULTS=/proc/ssd: cannot be made by '
job launcher LAUNCHER=ssh -- "${small[@]}"
refused 'LAUNCHER=ssh: mpirun or srun'
job no_image CONTAINER=/nowhere.sif PATH="$work/container:$PATH" -- "${small[@]}"
refused 'CONTAINER=/nowhere.sif: no such image; '
batch=ssd_4gpu_fp16.sbatch sbatch_options=(--ntasks-per-node=8)
job few_gpus --
refused 'Slurm gave 4 GPUs a node for 8 ranks; '
batch=ssd_8gpu_fp16.sbatch sbatch_options=()
job no_driver --
refused 'node1 has no nvidia-smi, so no NVIDIA driver; '
mkdir seven
printf '#!/bin/sh\nprintf "GPU %%s: made up\\n" 0 1 2 3 4 5 6\n' >seven/nvidia-smi
chmod +x seven/nvidia-smi
job seven_gpus PATH="$work/seven:$PATH" --
refused 'node1: nvidia-smi lists 7 GPUs for 8 ranks; '

mkdir wrong
ln -s "$bin/ssd_train" wrong
printf '#!/bin/sh\necho "FAILED: 1 wrong value"\nexit 1\n' >wrong/ssd_comm_bench
chmod +x wrong/ssd_comm_bench
job wrong_averages BIN="$work/wrong" -- "${small[@]}"
expect_outcome 'FAILED 1:0'
expect 'SSD300 with' 0

# Copied out of the project, the file says what it misses, and finds it by SSD_HOME.
cp "$root/slurm/ssd_1gpu_fp32.sbatch" lonely.sbatch
batch=$work/lonely.sbatch
job lonely --
expect_outcome 'FAILED 2:0'
expect 'error: no slurm/ssd_common.sh found; set SSD_HOME' 1
job home SSD_HOME="$root" -- --device cpu --print-config
expect_outcome 'COMPLETED 0:0'
expect 'data-layout = channels_first' 1

for file in "$root"/slurm/*.sbatch; do
  nodes=()
  [ "${file##*/}" != ssd_multinode_fp16.sbatch ] || nodes=(--nodes=1)
  sbatch --test-only "${nodes[@]}" "$file" 2>test_only || { cat test_only >&2; fail "$file: not accepted"; }
done
