#!/usr/bin/env bash
# The floating-point tests as other x86-64 processors run them: oneDNN, ATen and our own vector code are told to use
# less than this processor has. Prints a row for each setting; exit code 1 where a test failed or a setting ran none.
#   tests/isa.sh [--short] [BUILD]      BUILD: folder of a build with its tests (default build/default)
# --short: of golden steps, the model and data parallel training what takes seconds, as a processor with SSE4 alone runs
# it, and one with AVX2; with all that this processor has they run anyway. CTest runs the short form, as isa, and with
# SSD_TEST_LONG=1 the whole.
set -euo pipefail
cd "$(dirname "$0")/.."
short=no
if [ "${1:-}" = --short ]; then
  shift
  [ -n "${SSD_TEST_LONG:-}" ] || short=yes
fi
build=${1:-build/default}
[ -e "$build/CTestTestfile.cmake" ] || { printf "isa: error: no tests in '%s'; jobs/setup.sh --tests builds them\n" "$build" >&2; exit 2; }

# Name, then the variables. SSD_CPU_TARGETS is our own code's.
settings=(
  'SSE4     ONEDNN_MAX_CPU_ISA=SSE41 ATEN_CPU_CAPABILITY=default SSD_CPU_TARGETS=sse4'
  'AVX2     ONEDNN_MAX_CPU_ISA=AVX2 ATEN_CPU_CAPABILITY=avx2 SSD_CPU_TARGETS=avx2'
  'AVX-512  ONEDNN_MAX_CPU_ISA=AVX512_CORE ATEN_CPU_CAPABILITY=avx512 SSD_CPU_TARGETS=avx512'
  'all'
  'oneDNN   ONEDNN_MAX_CPU_ISA=SSE41'
  'ATen     ATEN_CPU_CAPABILITY=default'
  'ours     SSD_CPU_TARGETS=sse4'
)
tests='^(train|model|infer|eval|image|boxes|data_path)/|^comm/(half|gradient_communicator)|^programs/(ssd_train|ssd_infer|checkpoint_run)'
if [ "$short" = yes ]; then
  settings=("${settings[@]:0:2}")
  tests='^train/(golden_steps|data_parallel).*np[12]$|^model/'
  export GTEST_FILTER='*GoldenSteps*decay_probe_float32*:*GoldenSteps*two_ranks_float32*:*GoldenForward*resnet18_float32*:*GoldenDecode*:*GoldenLoss*:*BatchNorm*:DataParallelTest.in_float32*:DataParallelTest.with_gradients*'
fi

report=$(mktemp -d)
trap 'rm -rf "$report"' EXIT
# Of the line of the report that counts: <testsuite ... tests="12" failures="0" disabled="0" skipped="2" ... time="4.2"
value() { sed -n "s/^[[:space:]]*$1=\"\([0-9.]*\)\".*/\1/p" <<<"$suite" | head -n 1; }

result=0
printf '%-8s %6s %7s %7s %8s %8s  %s\n' setting run passed failed skipped seconds variables
for setting in "${settings[@]}"; do
  read -r -a words <<<"$setting"
  variables=("${words[@]:1}")
  start=$SECONDS
  env -u ONEDNN_MAX_CPU_ISA -u ATEN_CPU_CAPABILITY -u SSD_CPU_TARGETS "${variables[@]}" \
    ctest --test-dir "$build" -j "$(nproc)" -R "$tests" -LE 'isa|gpu' --output-on-failure --output-junit "$report/junit.xml" >"$report/log" 2>&1 || true
  suite=$(sed -n '/<testsuite/,/>/p' "$report/junit.xml" 2>/dev/null || true)
  skipped=$(($(value skipped) + $(value disabled)))
  run=$(($(value tests) - skipped)) failed=$(value failures)
  printf '%-8s %6d %7d %7d %8d %8d  %s\n' "${words[0]}" "$run" $((run - failed)) "$failed" "$skipped" $((SECONDS - start)) "${variables[*]:-none}"
  if [ "$failed" -ne 0 ] || [ "$run" -le 0 ]; then
    result=1
    cat "$report/log" >&2
  fi
  rm -f "$report/junit.xml"
done
exit "$result"
