# shellcheck shell=bash
# Sourced by the batch files: what is checked before a run, how ranks are started, what a signal does, how a job goes on.
# Variables of all files, taken from the environment that sbatch is started in:
#   SHARDS         what ssd_preprocess made, seen by all nodes (default $SSD_DATA, else /scratch/shards)
#   RESULTS        models/ (the checkpoints), log.jsonl, detections.json (default NAME-JOBID in the folder sbatch is
#                  started in). A later job with the same RESULTS goes on from the newest checkpoint in it
#   BACKBONE_PATH  torchvision's ResNet-50 weights (default: none, the backbone starts from random weights)
#   CONTAINER      an image made by singularity/build.sh (default: none, the programs of this project's build)
#   BIN            folder of the programs (default build/default/bin of the project; in the container /opt/ssd/bin)
#   LAUNCHER       mpirun (default), or srun, which starts the ranks by PMIx
#   REQUEUE        yes (default): after USR1 and the save the job is requeued; no: it ends with exit code 75
#   NEED_GB        free space that RESULTS must have (default 12: 65 checkpoints of 184 MB)
#   NODE_LOST_WAIT seconds in which Slurm has to notice a lost node and requeue (default 900; SlurmdTimeout is 300)
#   SSD_HOME       the project's folder, where the batch file has been copied out of it
# Exit codes: 0 done, 1 failed, 2 wrong set-up (a line of the preflight says what), 75 stopped and saved: go on.

stop_signal=
job_name=${SLURM_JOB_NAME:-ssd}
say() { printf '%s: %s\n' "$job_name" "$*" >&2; }
fail() { say "error: $*"; exit 2; }

# USR1: time is nearly up: save, requeue. TERM (scancel --batch --signal=TERM): save, end. run_child hands it on.
on_signal() { stop_signal=$1; say "$1: asking the ranks to save and stop"; }
trap 'on_signal USR1' USR1
trap 'on_signal TERM' TERM

# --- what is run, and how --------------------------------------------------------------------------------------------
: "${SSD_HOME:?}"
SHARDS=${SHARDS:-${SSD_DATA:-/scratch/shards}}
RESULTS=${RESULTS:-$job_name-${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}}
BACKBONE_PATH=${BACKBONE_PATH:-}
CONTAINER=${CONTAINER:-}
BIN=${BIN:-$([ -n "$CONTAINER" ] && echo /opt/ssd/bin || echo "$SSD_HOME/build/default/bin")}
LAUNCHER=${LAUNCHER:-mpirun}
REQUEUE=${REQUEUE:-yes}
NEED_GB=${NEED_GB:-12}
NODE_LOST_WAIT=${NODE_LOST_WAIT:-900}
ranks_per_node=${SLURM_NTASKS_PER_NODE:-}
inside=()  # in front of every program

choose_programs() {
  if [ -z "$CONTAINER" ]; then
    [ -x "$BIN/ssd_train" ] || fail "BIN=$BIN: no ssd_train in it; build with $SSD_HOME/jobs/setup.sh, or set BIN or CONTAINER"
    BIN=$(realpath "$BIN")
    return
  fi
  local runner path
  runner=$(command -v apptainer || command -v singularity) ||
    fail "CONTAINER=$CONTAINER: neither apptainer nor singularity on $(hostname); 'module load' one in front of sbatch"
  [ -r "$CONTAINER" ] || fail "CONTAINER=$CONTAINER: no such image; make it with singularity/build.sh"
  # No --cleanenv or --contain: ranks need PMIx's and Slurm's variables, and /tmp, where PMIx meets.
  inside=("$runner" exec)
  runs_on_cpu "$@" || inside+=(--nv)
  for path in "$PWD" "$SHARDS" "$RESULTS" "${DATA:-$PWD}" "$(dirname "${BACKBONE_PATH:-$PWD/x}")" "$(dirname "${CHECKPOINT:-$PWD/x}")"; do
    [ ! -e "$path" ] || inside+=(--bind "$(realpath "$path")")
  done
  inside+=("$CONTAINER")
}

# Whether the options ask for a run without GPUs.
runs_on_cpu() { case " $* " in *' --device cpu '*|*' --device=cpu '*|*' --no-cuda '*) ;; *) false ;; esac; }

# Sets launch (the ranks of the job) and launch_nodes (a process on each node). Ranks share a node's cores, which
# ssd_train divides, so nothing is bound here.
choose_launcher() {
  case $LAUNCHER in
    mpirun)
      command -v mpirun >/dev/null || fail "no mpirun on $(hostname); 'module load' Open MPI in front of sbatch"
      launch=(mpirun -np "$SLURM_NTASKS" --bind-to none)
      launch_nodes=(mpirun -np "$SLURM_NNODES" --map-by ppr:1:node --bind-to none) ;;
    srun)
      launch=(srun --mpi=pmix --cpu-bind=none --cpus-per-task="$((SLURM_CPUS_ON_NODE / ranks_per_node))")
      launch_nodes=(srun --mpi=pmix --ntasks="$SLURM_NNODES" --ntasks-per-node=1 --cpu-bind=none) ;;
    *) fail "LAUNCHER=$LAUNCHER: mpirun or srun" ;;
  esac
}

# --- preflight: each failure is one line -----------------------------------------------------------------------------
check_ranks() {
  [ -n "$ranks_per_node" ] || fail "no --ntasks-per-node: ask for ranks by --nodes and --ntasks-per-node, not by --ntasks"
  [ "$SLURM_NTASKS" = $((SLURM_NNODES * ranks_per_node)) ] ||
    fail "$SLURM_NTASKS ranks on $SLURM_NNODES nodes are not $ranks_per_node a node; give --nodes and --ntasks-per-node alone"
  runs_on_cpu "$@" || [ "${SLURM_GPUS_ON_NODE:-0}" -ge "$ranks_per_node" ] ||
    fail "Slurm gave ${SLURM_GPUS_ON_NODE:-0} GPUs a node for $ranks_per_node ranks; add --gres=gpu:$ranks_per_node"
}

# check_shards SPLIT...: the manifest is there, and files of the sizes it lists. One process looks, once.
check_shards() {
  local split listed found
  for split in "$@"; do
    [ -r "$SHARDS/$split.manifest.json" ] || {
      [ ! -d "$SHARDS/annotations" ] ||
        fail "SHARDS=$SHARDS: is COCO itself; pack it first: DATA=$SHARDS SHARDS=/scratch/shards sbatch slurm/ssd_preprocess.sbatch"
      fail "SHARDS=$SHARDS: no $split.manifest.json in it; set SHARDS, or make them with slurm/ssd_preprocess.sbatch"
    }
    listed=$(sed -n -e 's/^ *"file": "\(.*\)",$/\1/p' -e 's/^ *"file_bytes": \([0-9]*\),$/\1/p' "$SHARDS/$split.manifest.json" | paste -d ' ' - -)
    [ -n "$listed" ] || fail "$SHARDS/$split.manifest.json: lists no shards; pack again with slurm/ssd_preprocess.sbatch"
    found=$(cut -d ' ' -f 1 <<<"$listed" | (cd "$SHARDS" && xargs stat -c '%n %s' 2>&1) || true)
    [ "$found" = "$listed" ] ||
      fail "SHARDS=$SHARDS: $(diff <(echo "$listed") <(echo "$found") | grep -c '^<') of $(wc -l <<<"$listed") $split shards are missing or of another size, $(
        diff <(echo "$listed") <(echo "$found") | sed -n '/^</{s/^< \([^ ]*\) .*/\1/p;q}') first; copy them again"
  done
}

# The folder takes a file as a checkpoint is written: under another name, synced, renamed.
check_results() {
  local probe=$RESULTS/.write_test.$SLURM_JOB_ID free
  mkdir -p "$RESULTS" 2>/dev/null || fail "RESULTS=$RESULTS: cannot be made by $(id -un) on $(hostname); set RESULTS to a folder of your own"
  { dd if=/dev/zero of="$probe.tmp" bs=1M count=1 conv=fsync status=none && mv "$probe.tmp" "$probe" && [ "$(stat -c %s "$probe")" = 1048576 ]; } 2>/dev/null || {
    rm -f "$probe" "$probe.tmp"
    fail "RESULTS=$RESULTS: a file cannot be written, synced and renamed there (read-only, full, or over quota?)"
  }
  rm -f "$probe"
  free=$(df -Pk "$RESULTS" | awk 'NR == 2 { print int($4 * 1024 / 1e9) }')
  [ "$free" -ge "$NEED_GB" ] ||
    fail "RESULTS=$RESULTS: $free GB free, $NEED_GB needed; free some, or keep fewer checkpoints: --keep 3, with NEED_GB=1"
}

# What each node sees, by one process there: name, GPUs (- without a driver), whether shards and programs are there.
# shellcheck disable=SC2016
node_facts='
  gpus=$(nvidia-smi -L 2>/dev/null | grep -c "^GPU"); command -v nvidia-smi >/dev/null || gpus=-
  shards=no; [ -r "$1" ] && shards=yes
  program=no; [ -r "$2" ] && program=yes
  echo "node $(hostname) $gpus $shards $program"'
check_nodes() {
  local facts name gpus shards program seen=0 log
  log=$(mktemp)
  facts=$("${launch_nodes[@]}" bash -c "$node_facts" - "$SHARDS" "${CONTAINER:-$BIN/ssd_train}" 2>"$log") ||
    { cat "$log" >&2; rm -f "$log"; fail "$LAUNCHER cannot start a process on each of $SLURM_JOB_NODELIST (its text is above)"; }
  rm -f "$log"
  while read -r _ name gpus shards program; do
    seen=$((seen + 1))
    [ "$shards" = yes ] || fail "$name does not see SHARDS=$SHARDS; it must lie on a file system of all nodes"
    [ "$program" = yes ] || fail "$name does not see ${CONTAINER:-$BIN/ssd_train}; it must lie on a file system of all nodes"
    runs_on_cpu "$@" && continue
    [ "$gpus" != - ] || fail "$name has no nvidia-smi, so no NVIDIA driver; choose nodes with GPUs (--partition), or train with --device cpu"
    [ "$gpus" -ge "$ranks_per_node" ] ||
      fail "$name: nvidia-smi lists $gpus GPUs for $ranks_per_node ranks; leave it out (--exclude=$name) and tell the operators"
  done < <(grep '^node ' <<<"$facts" | sort)
  [ "$seen" = "$SLURM_NNODES" ] || fail "$seen of $SLURM_NNODES nodes answered: $(grep '^node ' <<<"$facts" | cut -d ' ' -f 2 | paste -sd ' ')"
}

# Seconds: 4 MB and the gradient of ResNet-50. Wrong values or no connection end the job here.
check_averages() {
  local type=fp32 cpu=()
  case " $* " in *' --fp16 '*|*' --amp '*) type=fp16 ;; esac
  if runs_on_cpu "$@"; then cpu=(--device cpu); fi
  "${launch[@]}" "${inside[@]}" "$BIN/ssd_comm_bench" --type "$type" --min-bytes 4M --max-bytes 4M --iterations 2 --warmup 1 "${cpu[@]}"
}

# preflight SPLIT OPTION...: everything above for a run with these options; of val shards beside train's, too
preflight() {
  local split=$1; shift
  check_ranks "$@"
  check_shards "$split"
  [ ! -e "$SHARDS/val.manifest.json" ] || check_shards val
  check_results
  choose_programs "$@"
  choose_launcher
  check_nodes "$@"
  say "$SLURM_NTASKS ranks on $SLURM_JOB_NODELIST by $LAUNCHER, shards $SHARDS, results $RESULTS"
  check_averages "$@"
}

# --- the run ---------------------------------------------------------------------------------------------------------
# Runs the command as a child and sets code to its exit code. The first signal is handed on as USR1, which mpirun and srun
# pass to each rank; once the log shows that the ranks have begun: before, they would die of it.
run_child() {
  local child handed_on=
  "$@" & child=$!
  while :; do
    if [ -n "$stop_signal" ] && [ -z "$handed_on" ] && kill -0 "$child" 2>/dev/null; then
      if [ "$RESULTS/log.jsonl" -nt "$RESULTS/.started" ]; then
        handed_on=yes
        kill -USR1 "$child" 2>/dev/null || true
      else
        sleep 0.5
      fi
      continue
    fi
    code=0
    wait "$child" || code=$?
    # Above 128: the child was killed, or a trap has run and the child goes on.
    [ "$code" -gt 128 ] && kill -0 "$child" 2>/dev/null || return 0
  done
}

has_checkpoint() { compgen -G "$RESULTS/models/*.pt" >/dev/null; }

# What follows from the exit code. Never returns.
end_job() {
  case $code in
    0) say 'done'; exit 0 ;;
    205)
      # mpirun has lost a node. Slurm notices later and requeues; scontrol requeue before that breaks the job's GPUs
      # (Slurm 22.05), and an exit now would make it FAILED for good.
      say "a node was lost: waiting up to $NODE_LOST_WAIT s for Slurm to requeue the job"
      sleep "$NODE_LOST_WAIT" &
      wait $! || true
      exit 1 ;;
    75) ;;
    *) exit "$code" ;;
  esac
  [ "$stop_signal" = USR1 ] || { say 'stopped and saved; submit again with the same RESULTS to go on'; exit 75; }
  [ -z "${SLURM_ARRAY_JOB_ID:-}" ] || { say 'stopped and saved; the next task of the array goes on'; exit 75; }
  [ "$REQUEUE" = yes ] || { say "stopped and saved; REQUEUE=$REQUEUE, so a later job with the same RESULTS goes on"; exit 75; }
  [ -n "$(find "$RESULTS/models" -name '*.pt' -newer "$RESULTS/.started" 2>/dev/null)" ] ||
    { say 'stopped without a new checkpoint: not requeued, it would stop there again; ask for more --time'; exit 75; }
  say 'stopped and saved: requeue'
  scontrol requeue "$SLURM_JOB_ID" || { say 'Slurm does not requeue it (no --requeue?); submit again with the same RESULTS'; exit 75; }
  exit 0
}

# ssd_train OPTION...: checks, trains, saves into RESULTS, goes on from there
ssd_train() {
  local start=(--checkpoint auto)
  # A file that the user names is where the first run starts; what this job itself has saved is further.
  case " $* " in *' --checkpoint '*|*' --checkpoint='*) has_checkpoint || start=() ;; esac
  preflight train "$@"
  touch "$RESULTS/.started"
  sleep 0.01  # what is written from here on is newer
  code=75
  [ -n "$stop_signal" ] || run_child "${launch[@]}" "${inside[@]}" "$BIN/ssd_train" --data "$SHARDS" \
    ${BACKBONE_PATH:+--backbone-path "$BACKBONE_PATH"} --results "$RESULTS/detections.json" "$@" \
    --save "$RESULTS/models" --json-summary "$RESULTS/log.jsonl" "${start[@]}"
  end_job
}

# ssd_evaluate CHECKPOINT OPTION...
ssd_evaluate() {
  local checkpoint=$1; shift
  NEED_GB=1
  [ -r "$checkpoint" ] || fail "CHECKPOINT=$checkpoint: no such file; CHECKPOINT=RESULTS/models/epoch_64.pt sbatch ..."
  preflight val "$@"
  run_child "${launch[@]}" "${inside[@]}" "$BIN/ssd_train" --mode evaluation --data "$SHARDS" \
    --checkpoint "$checkpoint" --results "$RESULTS/detections.json" "$@"
  exit "$code"
}

# ssd_scaling RANKS OPTION...: a table of jobs/scaling.sh, also as RESULTS/scaling.txt
ssd_scaling() {
  local counts=$1 start; shift
  NEED_GB=1
  preflight train "$@"
  start=(mpirun --bind-to none)
  [ "$LAUNCHER" = mpirun ] || start=(srun --mpi=pmix --cpu-bind=none --cpus-per-task="$((SLURM_CPUS_ON_NODE / ranks_per_node))")
  LAUNCH=$(printf '%q ' "${start[@]}") PROGRAM=$(printf '%q ' "${inside[@]}" "$BIN/ssd_train") RANKS=$counts \
    "$SSD_HOME/jobs/scaling.sh" "$(realpath "$SHARDS")" "$@" | tee "$RESULTS/scaling.txt"
  exit 0
}

# ssd_pack DATA OPTION...: COCO, or the set that the options name, into SHARDS; a process on each node
ssd_pack() {
  local data=$1 folder needed free launch_nodes=(); shift
  [ -z "$CONTAINER" ] || mkdir -p "$SHARDS"
  case " $* " in
    *' --voc '*|*' --annotations '*) data= ;;
    *)
      [ -d "$data/annotations" ] || fail "DATA=$data: no annotations/ in it; jobs/download_dataset.sh DIR fetches COCO 2017; then DATA=DIR sbatch ..."
      folder=$SHARDS
      while [ ! -d "$folder" ]; do folder=$(dirname "$folder"); done
      needed=$(du -sk --apparent-size "$data/train2017" "$data/val2017" | awk '{ kib += $1 } END { print int(kib * 1024 / 1e9) + 1 }')
      free=$(df -Pk "$folder" | awk 'NR == 2 { print int($4 * 1024 / 1e9) }')
      [ "$free" -ge "$needed" ] || fail "SHARDS=$SHARDS: $free GB free, $needed needed; set SHARDS to a larger file system" ;;
  esac
  choose_programs --device cpu
  [ "$SLURM_NNODES" = 1 ] || choose_launcher
  run_child "${launch_nodes[@]}" "${inside[@]}" "$BIN/ssd_preprocess" "$@" ${data:+"$data"} "$SHARDS"
  exit "$code"
}
