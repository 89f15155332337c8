#!/usr/bin/env bash
# Starts ranks on this workstation by mpirun, with what Open MPI must be told there (as root, more ranks than cores).
#   jobs/local_mpi.sh RANKS PROGRAM [arguments...]    e.g. jobs/local_mpi.sh 2 build/default/bin/ssd_train --save
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
fail() { printf 'local_mpi: error: %s\n' "$*" >&2; exit 2; }
[ $# -ge 2 ] || fail 'jobs/local_mpi.sh RANKS PROGRAM [arguments...]'
ranks=$1
shift
case $ranks in ''|*[!0-9]*|0*) fail "'$ranks' ranks: a number of 1 or more" ;; esac
command -v "$1" >/dev/null || fail "no program '$1'; jobs/setup.sh builds those of this project"
command -v mpirun >/dev/null || fail 'no mpirun; jobs/setup.sh installs Open MPI'
# shellcheck source=jobs/mpi_environment.sh
. "$here/mpi_environment.sh"
exec mpirun -np "$ranks" "$@"
