#!/usr/bin/env bash
# Trains SSD300-ResNet50 in FP32 on 8 GPUs, batch 32 per GPU.
#   jobs/SSD300_FP32_8GPU.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 8 --batch-size 32 --warmup 300 --data-layout channels_first -- "$@"
