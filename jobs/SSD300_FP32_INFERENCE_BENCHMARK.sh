#!/usr/bin/env bash
# Measures inference of SSD300-ResNet50 in FP32 on 1 GPU, batch 32.
#   jobs/SSD300_FP32_INFERENCE_BENCHMARK.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 1 --eval-batch-size 32 --mode benchmark-inference -- "$@"
