#!/usr/bin/env bash
# Trains SSD300-ResNet50 in half precision on 1 GPU, batch 64 per GPU.
#   jobs/SSD300_FP16_1GPU.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 1 --fp16 --batch-size 64 --warmup 300 -- "$@"
