# shellcheck shell=bash
# Sourced by the SSD300_*.sh, which are the reference's examples/ with their names and their order of arguments.
#   run_example RANKS OPTION... -- PROJECT SHARDS [CHECKPOINT] [ssd_train options...]
# PROJECT is this project's folder (".") or any that holds ssd_train, or bin/ssd_train; SHARDS what ssd_preprocess made
# of COCO. A CHECKPOINT is wanted where the options contain --checkpoint @. The user's options come last and override.
run_example() {
  local ranks=$1 options=() here=${BASH_SOURCE[0]%/*} name=${0##*/} wanted='PROJECT SHARDS' least=2 program i
  shift
  while [ "$1" != -- ]; do options+=("$1"); shift; done
  shift
  case " ${options[*]} " in *' @ '*) wanted='PROJECT SHARDS CHECKPOINT' least=3 ;; esac
  if [ $# -lt "$least" ]; then
    printf '%s: error: jobs/%s %s [ssd_train options...]\n' "$name" "$name" "$wanted" >&2
    exit 2
  fi
  for program in "$1/build/default/bin/ssd_train" "$1/bin/ssd_train" "$1/ssd_train" ''; do
    [ ! -x "$program" ] || break
  done
  if [ -z "$program" ]; then
    printf "%s: error: no ssd_train in '%s', '%s/bin' or '%s/build/default/bin'; jobs/setup.sh builds it\n" "$name" "$1" "$1" "$1" >&2
    exit 2
  fi
  for i in "${!options[@]}"; do [ "${options[i]}" != @ ] || options[i]=$3; done
  exec "$here/local_mpi.sh" "$ranks" "$program" --data "$2" "${options[@]}" "${@:least + 1}"
}
