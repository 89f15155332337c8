#!/usr/bin/env bash
# Weak scaling on this machine: ssd_train --mode benchmark-training with 1, 2, 4, ... ranks and the same batch per rank,
# as a table.
#   jobs/scaling.sh SHARDS [ssd_train options...]     e.g. jobs/scaling.sh /scratch/shards --fp16 --batch-size 64
# Environment: RANKS (default "1 2 4"), BIND (mpirun's --bind-to: default core, none for GPUs), PROGRAM (ssd_train), LAUNCH
# (how ranks are started, up to -n; default mpirun). PROGRAM and LAUNCH are words as a shell reads them.
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'scaling: %s\n' "$*" >&2; }
[ $# -ge 1 ] || { say 'error: no folder of shards; jobs/scaling.sh SHARDS [ssd_train options...]'; exit 2; }
shards=$1
shift
program=() launch=()
eval "program+=(${PROGRAM:-build/default/bin/ssd_train})"
command -v "${program[0]}" >/dev/null || { say "error: no program ${program[0]}; jobs/setup.sh builds it"; exit 2; }

# shellcheck source=jobs/mpi_environment.sh
. jobs/mpi_environment.sh
unset OMPI_MCA_hwloc_base_binding_policy
eval "launch+=(${LAUNCH:-mpirun --bind-to ${BIND:-core} --map-by slot})"
log=$(mktemp)
trap 'rm -f "$log" "$log.err"' EXIT

printf '%6s %10s %14s %11s %16s %13s\n' ranks img/s 'img/s a rank' efficiency 'exposed comm, ms' 'data wait, ms'
first=
for ranks in ${RANKS:-1 2 4}; do
  : >"$log"
  "${launch[@]}" -n "$ranks" "${program[@]}" --data "$shards" --mode benchmark-training --warmup 1000 \
    --seed 1 --json-summary "$log" "$@" >/dev/null 2>"$log.err" || { cat "$log.err" >&2; exit 1; }
  line=$(tail -n 1 "$log")
  value() { sed -n "s/.*\"$1\":\[\{0,1\}\([0-9.e+-]*\).*/\1/p" <<<"$line"; }
  rate=$(value 'avg_img\/sec')
  first=${first:-$(awk -v rate="$rate" -v ranks="$ranks" 'BEGIN { print rate / ranks }')}
  awk -v ranks="$ranks" -v rate="$rate" -v first="$first" -v comm="$(value exposed_comm_ms)" -v data="$(value data_ms)" 'BEGIN {
    printf "%6d %10.2f %14.2f %9.1f %% %16.2f %13.2f\n", ranks, rate, rate / ranks, 100 * rate / ranks / first, comm, data }'
done
