#!/usr/bin/env bash
# Measures inference of SSD300-ResNet50 in half precision on 1 GPU, batch 64.
#   jobs/SSD300_FP16_INFERENCE_BENCHMARK.sh PROJECT SHARDS [ssd_train options...]
set -euo pipefail
# shellcheck source=jobs/example.sh
. "$(dirname "$0")/example.sh"
run_example 1 --fp16 --eval-batch-size 64 --mode benchmark-inference -- "$@"
