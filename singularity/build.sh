#!/usr/bin/env bash
# Makes the image of this project's last commit. Needs Apptainer or Singularity, root or --fakeroot, network, about 30 GB.
#   singularity/build.sh [IMAGE [build options...]]     default build/ssd.sif --fakeroot (as root: without)
set -euo pipefail
cd "$(dirname "$0")/.."
say() { printf 'build: %s\n' "$*" >&2; }
fail() { say "error: $*"; exit 1; }
image=${1:-build/ssd.sif}
options=("${@:2}")
[ ${#options[@]} -gt 0 ] || [ "$(id -u)" -eq 0 ] || options=(--fakeroot)
runner=$(command -v apptainer || command -v singularity) || fail 'neither apptainer nor singularity here'
mkdir -p build/singularity "$(dirname "$image")"
[ -z "$(git status --porcelain)" ] || say 'there are changes that are not committed: they will not be in the image'
git archive --format=tar --output=build/singularity/source.tar HEAD || fail 'not a git clone'
"$runner" build "${options[@]}" "$image" singularity/ssd.def
say "made $image; CONTAINER=$image sbatch slurm/ssd_8gpu_fp16.sbatch"
