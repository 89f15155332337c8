# shellcheck shell=bash
# Sourced: a real Slurm cluster of some nodes with made-up GPUs, on one machine that has none, for the time of one script.
# Everything of it runs in namespaces of its own (processes, network, host names, mounts), whose first process is the
# script: when the script ends, in whatever way, the kernel ends every daemon and every job. Nothing under /etc, /var or
# /run is touched, and no port of the machine is used. Each node is a namespace in turn: it can be killed.
#   enter_cluster SCRIPT ARGUMENT...  the first line of a script: starts it again inside; returns there
#   start_cluster NODES GPUS          slurmctld, munged and a slurmd a node: node1, node2, ...; waits until all are idle
#   on_node I COMMAND...              runs it on a node, where mounts are the node's own
#   kill_node I                       all that runs on the node ends at once
#   mark_node_down I                  what Slurm does by itself when SlurmdTimeout has passed
#   wait_for_job ID SECONDS           until the job has ended; prints its state and exit code: "COMPLETED 0:0"
#   wait_for_line FILE TEXT SECONDS   until a line of the file holds the text
#   release_requeued ID SECONDS       waits until the job has been requeued, and lets it start at once
# Exit code 77 where this machine cannot do it: not root, no Slurm, no namespaces.

readonly cluster_cpus=64 cluster_memory_mb=400000

skip() { printf 'skipped: %s\n' "$*" >&2; exit 77; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

enter_cluster() {
  if [ -n "${CLUSTER_FOLDER:-}" ]; then
    hostname head
    ip link set lo up
    ip link add cluster type bridge || skip 'this machine lets no network interface be made'
    ip address add 10.0.0.254/24 dev cluster
    ip link set cluster up
    mount -t tmpfs none /dev/shm
    # Of Open MPI and Slurm: nothing stays in /tmp.
    export TMPDIR=$CLUSTER_FOLDER/t
    mkdir -p "$TMPDIR"
    return 0
  fi
  [ "$(id -u)" -eq 0 ] || skip 'a cluster is started by root only'
  local program
  for program in slurmctld slurmd munged sbatch ip unshare nsenter; do
    command -v "$program" >/dev/null || skip "no $program here (Debian packages slurm-wlm munge iproute2 util-linux)"
  done
  local namespaces=(unshare --pid --fork --kill-child --mount-proc --uts --net)
  "${namespaces[@]}" true 2>/dev/null || skip 'this machine lets no namespaces be made'
  # A short name: paths of sockets have at most 107 characters.
  CLUSTER_FOLDER=$(mktemp -d /tmp/ssd_slurm.XXXXXX)
  chmod 755 "$CLUSTER_FOLDER"
  export CLUSTER_FOLDER
  "${namespaces[@]}" "$@" &
  # shellcheck disable=SC2064
  trap "kill -KILL $! 2>/dev/null || true; wait; rm -rf '$CLUSTER_FOLDER'" EXIT
  trap 'exit 1' TERM INT HUP
  local code=0
  wait $! || code=$?
  exit "$code"
}

write_configuration() {
  local folder=$CLUSTER_FOLDER nodes=$1 gpus=$2 node gpu
  mkdir -p "$folder"/{state,log,run}
  # gres/gpu wants device files.
  for ((gpu = 0; gpu < gpus; ++gpu)); do ln -s /dev/null "$folder/gpu$gpu"; done
  printf 'Name=gpu File=%s/gpu[0-%d]\n' "$folder" $((gpus - 1)) >"$folder/gres.conf"
  # No cgroups, no accounting; the nodes claim more cores and memory than the machine has.
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=head(10.0.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/%n/spool
TmpFS=$folder/%n/tmp
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.%n.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.%n.log
MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1,batch_sched_delay=0
GresTypes=gpu
JobRequeue=1
KillWait=5
SlurmdTimeout=30
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  printf '127.0.0.1 localhost\n10.0.0.254 head\n' >"$folder/hosts"
  for ((node = 1; node <= nodes; ++node)); do
    mkdir -p "$folder/node$node"/{spool,tmp}
    printf '10.0.0.%d node%d\n' "$node" "$node" >>"$folder/hosts"
    echo "NodeName=node$node NodeAddr=10.0.0.$node CPUs=$cluster_cpus RealMemory=$cluster_memory_mb Gres=gpu:$gpus" >>"$folder/slurm.conf"
  done
  mount --bind "$folder/hosts" /etc/hosts
  export SLURM_CONF=$folder/slurm.conf
}

node_processes=()  # of the nodes' namespaces, from 1

start_node() {
  local node=$1
  unshare --uts --pid --fork --mount-proc --net --kill-child bash -c "
    hostname node$node
    mount -t tmpfs none /dev/shm
    until ip link set eth0 up 2>/dev/null; do sleep 0.01; done
    ip link set lo up
    ip address add 10.0.0.$node/24 dev eth0
    slurmd -D -N node$node" </dev/null >"$CLUSTER_FOLDER/log/node$node.log" 2>&1 &
  node_processes[node]=$!
  disown
  # Its network namespace is there once it differs from this one.
  while [ "$(readlink "/proc/$!/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do sleep 0.01; done
  ip link add "node$node" type veth peer name eth0 netns "$!"
  ip link set "node$node" master cluster up
}

start_cluster() {
  local folder=$CLUSTER_FOLDER nodes=$1 node
  write_configuration "$@"
  head -c 1024 /dev/urandom >"$folder/run/munge.key"
  chmod 400 "$folder/run/munge.key"
  munged --force --key-file="$folder/run/munge.key" --socket="$folder/run/munge.socket" \
    --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" --seed-file="$folder/run/munge.seed"
  slurmctld
  for ((node = 1; node <= nodes; ++node)); do start_node "$node"; done
  local attempt
  for ((attempt = 0; attempt < 300; ++attempt)); do
    [ "$(timeout 2 sinfo --noheader --Node --format %t 2>/dev/null | grep -c '^idle$')" = "$nodes" ] && return 0
    sleep 0.1
  done
  tail -n 20 "$folder"/log/*.log >&2
  fail "the $nodes nodes of the cluster did not become idle within 30 s"
}

# The process in the node's innermost namespaces is the child of unshare.
on_node() {
  local process=${node_processes[$1]}
  shift
  nsenter --target "$(cut -d ' ' -f 1 "/proc/$process/task/$process/children")" --mount --uts --pid --net -- "$@"
}

kill_node() { kill -KILL "${node_processes[$1]}"; }
mark_node_down() { scontrol update nodename="node$1" state=down reason=killed; }

wait_for_job() {
  local job=$1 tenths=$(($2 * 10)) line state
  while :; do
    line=$(scontrol --oneliner show job "$job")
    state=$(grep -o ' JobState=[A-Z_]*' <<<"$line")
    case ${state#*=} in
      PENDING|CONFIGURING|RUNNING|COMPLETING) ;;
      *) break ;;
    esac
    ((tenths-- > 0)) || { printf '%s\n' "$line" >&2; fail "job $job has not ended after $2 s"; }
    sleep 0.1
  done
  printf '%s %s\n' "${state#*=}" "$(grep -o ' ExitCode=[0-9:]*' <<<"$line" | cut -d = -f 2)"
}

wait_for_line() {
  local tenths=$(($3 * 10))
  until grep -q -F -- "$2" "$1" 2>/dev/null; do
    ((tenths-- > 0)) || { cat "$1" >&2; fail "no line with '$2' after $3 s"; }
    sleep 0.1
  done
}

# A job that starts within the second of its requeue dies ("Job credential revoked"), and Slurm holds it for two minutes.
release_requeued() {
  local tenths=$(($2 * 10)) state
  until state=$(squeue --noheader --states all --jobs "$1" --format '%T %r') && [ "$state" = 'PENDING BeginTime' ]; do
    [[ ! "$state" =~ ^(FAILED|COMPLETED|CANCELLED|TIMEOUT) && $((tenths--)) -gt 0 ]] || { scontrol show job "$1" >&2; fail "job $1 has not been requeued after $2 s"; }
    sleep 0.1
  done
  sleep 2
  scontrol update jobid="$1" starttime=now
}
