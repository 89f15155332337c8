#!/usr/bin/env bash
# From a fresh clone to a trained detector on real photos: sets the machine up, builds, packs the BCCD blood-cell photos
# (tests/data/bccd, MIT), trains SSD300 with ResNet-18 from random weights on 2 MPI ranks, in half precision where the
# processor has it, evaluates on the test photos, draws some of them with what was found, and says where everything lies.
#   jobs/quickstart.sh
# Environment: RESULTS (default build/quickstart), QUICKSTART_EPOCHS (1 is a quick look; default 39, or on a slow machine as
# many as 15 minutes allow), SEED (default 1).
set -euo pipefail
cd "$(dirname "$0")/.."
results=${RESULTS:-build/quickstart}
epochs=${QUICKSTART_EPOCHS:-auto}
seed=${SEED:-1}
ranks=2 batch=4

# shellcheck source=jobs/quickstart_plan.sh
. jobs/quickstart_plan.sh

say() { printf 'quickstart: %s\n' "$*" >&2; }

[ $# -eq 0 ] || { say "error: '$1': it takes no arguments; for a training of your own see README.md"; exit 2; }
case $epochs in auto) ;; ''|*[!0-9]*|0*) say "error: QUICKSTART_EPOCHS=$epochs: must be a number of 1 or more"; exit 2 ;; esac
case $seed in ''|*[!0-9]*) say "error: SEED=$seed: must be a number"; exit 2 ;; esac

jobs/setup.sh --programs
bin=build/default/bin
photos=tests/data/bccd
mkdir -p "$results"

# shellcheck source=jobs/mpi_environment.sh
. jobs/mpi_environment.sh

say "packing the photos into $results/shards"
pack() { "$bin/ssd_preprocess" --split "$1" --annotations "$photos/coco/instances_$2.json" --images "$photos/JPEGImages" --force "$results/shards"; }
pack train train
pack val test

options=(
  --data "$results/shards" --backbone resnet18 --fp16 --batch-size "$batch" --eval-batch-size 8 --learning-rate 0.04
  --seed "$seed"
)

# How fast this machine is, hence how many epochs, unless the user has said.
benchmark=$(mktemp)
trap 'rm -f "$benchmark" "$benchmark.log"' EXIT
mpirun -np "$ranks" "$bin/ssd_train" "${options[@]}" --mode benchmark-training --benchmark-warmup 2 --benchmark-iterations 4 \
  --json-summary "$benchmark" 2>"$benchmark.log" || { cat "$benchmark.log" >&2; exit 1; }
rate=$(sed -n 's/.*"med_img\/sec":\([0-9.]*\).*/\1/p' "$benchmark" | tail -n 1)
case $rate in *[1-9]*) ;; *) say "error: the benchmark has measured no rate ('$rate')"; cat "$benchmark.log" >&2; exit 1 ;; esac
chosen=no
if [ "$epochs" = auto ]; then chosen=yes epochs=$(affordable_epochs "$rate"); fi
say "$(announcement "$rate" "$epochs" "$chosen")"

# Milestones, warmup and evaluations in proportion to 39 epochs of 26 iterations.
at() { local epoch=$((epochs * $1 / full_epochs)); echo $((epoch > 0 ? epoch : 1)); }
milestones=("$(at 27)")
[ "$(at 35)" -le "${milestones[0]}" ] || milestones+=("$(at 35)")
evaluation=() before=0
for k in 4 9 14 19 24 29 34; do
  epoch=$(at $k)
  if [ "$epoch" -gt "$before" ] && [ "$epoch" -lt $((epochs - 1)) ]; then evaluation+=("$epoch") before=$epoch; fi
done
options+=(
  --warmup $((80 * epochs / full_epochs)) --epochs "$epochs" --multistep "${milestones[@]}"
  --evaluation "${evaluation[@]}" last
)

rm -f "$results/log.jsonl"
mpirun -np "$ranks" "$bin/ssd_train" "${options[@]}" --save "$results/models" --json-summary "$results/log.jsonl" \
  --results "$results/detections.json" --plot "$results/curves.svg"

# The checkpoint written last, and the first eight test photos.
checkpoint=$(find "$results/models" -name 'epoch_*.pt' -printf '%T@ %p\n' | sort -n | tail -n 1 | cut -d ' ' -f 2-)
mapfile -t names < <(head -n 8 "$photos/ImageSets/Main/test.txt")
pictures=("${names[@]/#/$photos/JPEGImages/}")
say "drawing ${#pictures[@]} test photos"
"$bin/ssd_infer" --checkpoint "$checkpoint" --fp16 --truth "$photos/coco/instances_test.json" \
  --draw "$results/pictures" "${pictures[@]/%/.jpg}" >/dev/null

say 'done:'
say "  shards      $results/shards"
say "  checkpoints $results/models (epoch_N.pt, which Python's torch.load reads as well)"
say "  log         $results/log.jsonl"
say "  curves      $results/curves.svg (loss and AP over epochs)"
say "  pictures    $results/pictures (test photos: what is true beside what was found)"
say "  detections  $results/detections.json (COCO results of the test photos)"
say "evaluate again: mpirun -np $ranks $bin/ssd_train --mode evaluation --fp16 --eval-batch-size 8 --data $results/shards --checkpoint $checkpoint"
say "  (first, for mpirun as root or with more ranks than cores: . jobs/mpi_environment.sh)"
