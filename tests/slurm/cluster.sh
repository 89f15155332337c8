# shellcheck shell=bash
# Sourced: a real Slurm cluster of one node with 8 GPUs, on a machine that has none, for the time of one script.
# Everything of it runs in namespaces of its own (processes, network, host name, mounts), whose first process is the
# script: when the script ends, in whatever way, the kernel ends every daemon and every job. Nothing under /etc, /var or
# /run is touched, and no port of the machine is used.
#   enter_cluster SCRIPT ARGUMENT...  the first line of a script: starts it again inside; returns there
#   start_cluster                     slurmctld, slurmd and munged, waits until the node is idle
#   wait_for_job ID SECONDS           until the job has ended; prints its state and exit code: "COMPLETED 0:0"
# Exit code 77 where this machine cannot do it: not root, no Slurm, no namespaces.

readonly cluster_gpus=8 cluster_cpus=64 cluster_memory_mb=400000

skip() { printf 'skipped: %s\n' "$*" >&2; exit 77; }
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

enter_cluster() {
  if [ -n "${CLUSTER_FOLDER:-}" ]; then
    hostname node1
    # An interface besides the loopback: without one the C library finds no address to listen at.
    ip link set lo up
    ip link add cluster type veth peer name cluster_end || skip 'this machine lets no network interface be made'
    ip address add 10.0.0.1/24 dev cluster
    ip link set cluster up
    ip link set cluster_end up
    printf '127.0.0.1 localhost\n10.0.0.1 node1\n' >"$CLUSTER_FOLDER/hosts"
    mount --bind "$CLUSTER_FOLDER/hosts" /etc/hosts
    mount -t tmpfs none /dev/shm
    return 0
  fi
  [ "$(id -u)" -eq 0 ] || skip 'a cluster is started by root only'
  local program
  for program in slurmctld slurmd munged sbatch ip unshare; do
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
  local folder=$CLUSTER_FOLDER gpu
  mkdir -p "$folder"/{state,spool,tmp,log,run}
  # gres/gpu wants device files.
  for ((gpu = 0; gpu < cluster_gpus; ++gpu)); do ln -s /dev/null "$folder/gpu$gpu"; done
  printf 'Name=gpu File=%s/gpu[0-%d]\n' "$folder" $((cluster_gpus - 1)) >"$folder/gres.conf"
  # No cgroups, no accounting; the node claims more cores and memory than the machine has.
  cat >"$folder/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$folder/run/munge.socket
CredType=cred/munge
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
TmpFS=$folder/tmp
SlurmctldPidFile=$folder/run/slurmctld.pid
SlurmdPidFile=$folder/run/slurmd.pid
SlurmctldLogFile=$folder/log/slurmctld.log
SlurmdLogFile=$folder/log/slurmd.log
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
KillWait=5
NodeName=node1 CPUs=$cluster_cpus RealMemory=$cluster_memory_mb Gres=gpu:$cluster_gpus
PartitionName=main Nodes=node1 Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$folder/slurm.conf
}

start_cluster() {
  local folder=$CLUSTER_FOLDER
  write_configuration
  head -c 1024 /dev/urandom >"$folder/run/munge.key"
  chmod 400 "$folder/run/munge.key"
  munged --force --key-file="$folder/run/munge.key" --socket="$folder/run/munge.socket" \
    --pid-file="$folder/run/munged.pid" --log-file="$folder/log/munged.log" --seed-file="$folder/run/munge.seed"
  slurmctld
  slurmd
  local attempt
  for ((attempt = 0; attempt < 200; ++attempt)); do
    [ "$(timeout 2 sinfo --noheader --format %t 2>/dev/null)" = idle ] && return 0
    sleep 0.1
  done
  tail -n 20 "$folder"/log/*.log >&2
  fail 'the node of the cluster did not become idle within 20 s'
}

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
