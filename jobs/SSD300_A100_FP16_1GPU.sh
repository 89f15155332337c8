#!/usr/bin/env bash
# Trains SSD300-ResNet50 in half precision on an A100, batch 256.
#   jobs/SSD300_A100_FP16_1GPU.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 1 --fp16 --batch-size 256 --warmup 300 -- "$@"
