# shellcheck shell=bash
# Sourced after cluster.sh, with bin and root set: batch files are run to their end, and their logs looked at. Makes the
# folder the jobs run in, goes there, and sets work to it.
#   batch=FILE                        which of slurm/ follows
#   sbatch_options=(OPTION...)        in front of the file's name
#   job NAME VARIABLE=VALUE... -- OPTION...     runs it to its end; sets id, log and outcome
#   submit NAME VARIABLE=VALUE... -- OPTION...  returns at once; sets id and log
#   expect TEXT TIMES, expect_outcome 'STATE CODE'

# What Open MPI must be told on a small machine and as root; sbatch hands the environment on.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMP_NUM_THREADS=1

work=$CLUSTER_FOLDER/work
mkdir "$work"
cd "$work" || exit 1
batch='' id='' log='' outcome='' sbatch_options=()
# What makes a run of twelve photos small enough; for use by tests.
# shellcheck disable=SC2034
small=(--device cpu --backbone resnet18 --batch-size 2 --eval-batch-size 2)

submit() {
  local name=$1 variables=(SHARDS="$work/shards" BIN="$bin" NEED_GB=1)
  shift
  while [ "$1" != -- ]; do variables+=("$1"); shift; done
  shift
  id=$(env "${variables[@]}" sbatch --parsable --job-name="$name" "${sbatch_options[@]}" \
    "$(case $batch in /*) echo "$batch" ;; *) echo "${root:?}/slurm/$batch" ;; esac)" "$@") || fail "$name: not accepted"
  log=$work/$name-$id.log
}

job() {
  submit "$@"
  outcome=$(wait_for_job "$id" 240)
  printf '%4d s  %s: %s\n' "$SECONDS" "$1" "$outcome"
}

# Lines of the log that hold the text.
expect() {
  local found
  found=$(grep -c -F -- "$1" "$log" || true)
  [ "$found" = "$2" ] || { cat "$log" >&2; fail "the log has $found lines with '$1', not $2"; }
}
expect_outcome() { [ "$outcome" = "$1" ] || { cat "$log" >&2; fail "the job ended as '$outcome', not '$1'"; }; }
