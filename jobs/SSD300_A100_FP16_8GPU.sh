#!/usr/bin/env bash
# Trains SSD300-ResNet50 in half precision on 8 A100, batch 128 per GPU.
#   jobs/SSD300_A100_FP16_8GPU.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 8 --fp16 --batch-size 128 --warmup 1200 --learning-rate 2.7e-3 -- "$@"
