#!/usr/bin/env bash
# Trains SSD300-ResNet50 in FP32 on 4 GPUs, batch 32 per GPU.
#   jobs/SSD300_FP32_4GPU.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 4 --batch-size 32 --warmup 300 --data-layout channels_first -- "$@"
