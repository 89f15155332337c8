#!/usr/bin/env bash
# Sets the machine up, builds and runs the tests. SSD_TEST_LONG=1 adds the long forms.
#   tests/run.sh [PRESET] [ctest options...]      PRESET: default, no-cuda, debug, sanitize
set -euo pipefail
cd "$(dirname "$0")/.."
preset=default
case ${1:-} in default|no-cuda|debug|sanitize) preset=$1; shift ;; esac
jobs/setup.sh --tests "$preset"
ctest --preset "$preset" -j "$(nproc)" "$@"
