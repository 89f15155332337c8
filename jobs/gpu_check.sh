#!/usr/bin/env bash
# One command for a machine with GPUs: builds, runs the GPU tests, compares 20 training steps on CPU and GPU, trains one
# epoch, and prints throughput and where a step's time goes at batch 8, 32, 128 and 256, as a table and as JSON.
#   jobs/gpu_check.sh [RESULTS]      RESULTS: a folder, default build/gpu_check
# Environment: RANKS (default: one for each GPU), BACKBONE (default resnet50), SEED (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
results=${1:-build/gpu_check}
backbone=${BACKBONE:-resnet50}
seed=${SEED:-1}

say() { printf 'gpu_check: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }

command -v nvidia-smi >/dev/null || fail 'no nvidia-smi: is there a GPU, and in a container --nv?'
gpus=$(nvidia-smi --list-gpus | wc -l)
[ "$gpus" -gt 0 ] || fail 'nvidia-smi lists no GPU'
ranks=${RANKS:-$gpus}
nvidia-smi --query-gpu=index,name,driver_version,memory.total --format=csv,noheader | sed 's/^/gpu_check: GPU /' >&2

jobs/setup.sh --tests
bin=build/default/bin
mkdir -p "$results"
# shellcheck source=jobs/mpi_environment.sh
. jobs/mpi_environment.sh

say 'GPU tests'
ctest --preset default -L gpu --output-on-failure

say "packing the photos into $results/shards"
photos=tests/data/bccd
pack() { "$bin/ssd_preprocess" --split "$1" --annotations "$photos/coco/instances_$2.json" --images "$photos/JPEGImages" --force "$results/shards"; }
pack train train
pack val test

say '20 steps in FP32 on CPU and GPU'
for device in cpu cuda; do
  rm -f "$results/$device.jsonl"
  "$bin/ssd_train" --data "$results/shards" --backbone resnet18 --device "$device" --no-allow-tf32 --batch-size 10 --epochs 1 \
    --evaluation none --seed "$seed" --warmup 20 --log-interval 1 --json-summary "$results/$device.jsonl"
done
losses() { sed -n 's/.*"loss":\([-0-9.e+]*\).*/\1/p' "$results/$1.jsonl" | head -n 20; }
paste <(losses cpu) <(losses cuda) | awk '
  { d = ($1 > $2 ? $1 - $2 : $2 - $1) / $1; if (d > worst) worst = d; n++ }
  END { printf "gpu_check: %d losses, largest relative difference %.2e\n", n, worst; exit !(n == 20 && worst < 1e-2) }' >&2 ||
  fail "losses of CPU and GPU differ: $results/cpu.jsonl, $results/cuda.jsonl"

say "one epoch, $ranks ranks, FP16"
mpirun -np "$ranks" "$bin/ssd_train" --data "$results/shards" --backbone "$backbone" --device cuda --fp16 --batch-size 8 --epochs 1 \
  --evaluation last --seed "$seed" --warmup 20 --save "$results/models" --log-interval 5

table=$results/throughput.txt
rm -f "$results/throughput.jsonl"
printf '%6s %6s %10s  %9s %9s %9s %13s %10s\n' ranks batch img/s data,ms forward backward exposed_comm optimizer >"$table"
for n in $(printf '%s\n' 1 "$ranks" | sort -nu); do
  for batch in 8 32 128 256; do
    say "benchmark: $n ranks, batch $batch"
    mpirun -np "$n" "$bin/ssd_train" --data "$results/shards" --backbone "$backbone" --device cuda --fp16 --batch-size "$batch" \
      --mode benchmark-training --warmup 1000 --seed "$seed" --json-summary "$results/throughput.jsonl" >/dev/null ||
      { say "batch $batch did not run: out of memory?"; continue; }
    tail -n 1 "$results/throughput.jsonl" | sed 's/^DLLL //' | python3 -c '
import json, sys
data = json.loads(sys.stdin.read())["data"]
step = data["step_ms"]
print("%6d %6s %10.1f  %9.2f %9.2f %9.2f %13.2f %10.2f" % (data["ranks"], sys.argv[1], data["avg_img/sec"],
      step["data"], step["forward"], step["backward"], step["exposed_comm"], step["optimizer"]))' "$batch" >>"$table"
  done
done
cat "$table"
say "done: $table, $results/throughput.jsonl"
