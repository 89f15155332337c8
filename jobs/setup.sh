#!/usr/bin/env bash
# Brings a bare Debian 12 or 13 to the point where the project builds, and builds it. Asks nothing; a second run takes
# seconds and needs no network.
#   jobs/setup.sh [--no-build|--programs|--tests] [PRESET]
# PRESET: default (CUDA where the toolkit is), no-cuda, debug, sanitize. --programs: without the tests. --tests: with the
# packages that only tests run, too.
# Environment: SSD_DEPS (downloads, default ~/.cache/ssd), LIBTORCH_ROOT (a LibTorch of your own: none is fetched),
# CUDA_HOME (the toolkit, where it is not found by itself).
set -euo pipefail
cd "$(dirname "$0")/.."

build=all tests=no
case ${1:-} in
  --no-build) build=no; shift ;;
  --programs) build=programs; shift ;;
  --tests) tests=yes; shift ;;
esac
preset=${1:-default}
deps=${SSD_DEPS:-$HOME/.cache/ssd}

say() { printf 'setup: %s\n' "$*" >&2; }
fail() { printf 'setup: error: %s\n' "$*" >&2; exit 1; }

# --- packages -------------------------------------------------------------------------------------------------------
packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates python3 python3-pip unzip xz-utils
  openmpi-bin libopenmpi-dev libhdf5-dev hdf5-tools libjpeg62-turbo-dev libpng-dev libwebp-dev libstb-dev libisal-dev liblzma-dev zlib1g-dev
  libboost-program-options-dev libfmt-dev libsimdjson-dev nlohmann-json3-dev libxxhash-dev libhwy-dev
  libcairo2-dev libpugixml-dev
  libgtest-dev libgmock-dev
)
# What only tests run. Root alone can start the cluster of tests/slurm.
if [ "$tests" = yes ]; then packages+=(curl wget gawk busybox); fi
if [ "$tests" = yes ] && [ "$(id -u)" -eq 0 ]; then packages+=(slurm-wlm munge iproute2); fi
if [ "$tests" = yes ] && [ "${SSD_TEST_LONG:-}" = 1 ] && [ "$(uname -m)" = x86_64 ]; then
  packages+=(g++-aarch64-linux-gnu qemu-user)  # for tests/aarch64.sh
fi

known=yes
# shellcheck disable=SC1091
distribution=$(. /etc/os-release 2>/dev/null && echo "${ID:-unknown} ${VERSION_ID:-}" || echo unknown)
case $distribution in
  'debian 12' | 'debian 13') ;;
  'ubuntu 24.04')
    say 'Ubuntu 24.04: not tested; taken are the same packages, with the name of its JPEG library'
    packages=("${packages[@]/libjpeg62-turbo-dev/libjpeg-turbo8-dev}") ;;
  *)
    known=no
    say "$distribution: only Debian 12 and 13 are set up by this script; install what these Debian packages hold:"
    say "  ${packages[*]}" ;;
esac

if [ "$known" = yes ]; then
  missing=()
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" = installed ] || missing+=("$package")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
      command -v sudo >/dev/null || fail "packages are missing and this is neither root nor is there sudo: apt-get install ${missing[*]}"
      as_root=(sudo)
    fi
    say "installing ${#missing[@]} packages: ${missing[*]}"
    log=$(mktemp)
    if ! { "${as_root[@]}" apt-get update -q &&
           "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } >"$log" 2>&1; then
      tail -n 15 "$log" >&2
      fail "apt-get failed (whole log: $log)"
    fi
    rm -f "$log"
  fi
fi

# --- LibTorch -------------------------------------------------------------------------------------------------------
# From PyPI's wheels, by pip; no Python is needed to use it. Everything is fetched into a temporary folder, checked
# against the digest below and renamed: what lies at its final name is whole.
torch_version=2.11.0
declare -A sha256=()  # of the wheels for this machine
case $(uname -m) in
  x86_64) sha256=(
    [torch]=7aa2f9bbc6d4595ba72138026b2074be1233186150e9292865e04b7a63b8c67a
    [nvidia-cuda-runtime]=7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
    [nvidia-cuda-cupti]=4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8
    [nvidia-cufile]=d134f10ce336c411664d79e3538e4797b38a41d3388edad1ec4a1a8c64c8c03a
    [nvidia-cusparselt-cu13]=25e30a8a7323935d4ad0340b95a0b69926eee755767e8e0b1cf8dd85b197d3fd
    [nvidia-nvshmem-cu13]=290f0a2ee94c9f3687a02502f3b9299a9f9fe826e6d0287ee18482e78d495b80
  ) ;;
  aarch64) sha256=(
    [torch]=d91aac77f24082809d2c5a93f52a5f085032740a1ebc9252a7b052ef5a4fddc6
    [nvidia-cuda-runtime]=ef9bcbe90493a2b9d810e43d249adb3d02e98dd30200d86607d8d02687c43f55
    [nvidia-cuda-cupti]=796bd679890ee55fb14a94629b698b6db54bcfd833d391d5e94017dd9d7d3151
    [nvidia-cufile]=cbd04b0f7b7ae24c1e7c3c52514b80cf89e7157db19c9ae6f3c274fc72af83e6
    [nvidia-cusparselt-cu13]=400c6ed1cf6780fc6efedd64ec9f1345871767e6a1a0a552a1ea0578117ea77c
    [nvidia-nvshmem-cu13]=6dc2a197f38e5d0376ad52cd1a2a3617d3cdc150fd5966f4aee9bcebb1d68fe9
  ) ;;
esac
root=$deps/libtorch-$torch_version
unfinished=
trap '[ -z "$unfinished" ] || rm -rf "$unfinished"' EXIT

# fetch_wheel NAME==VERSION FOLDER
fetch_wheel() {
  local requirement=$1 folder=$2
  say "fetching $requirement"
  mkdir -p "$folder"
  printf '%s --hash=sha256:%s\n' "$requirement" "${sha256[${requirement%%==*}]}" >"$folder/requirement.txt"
  python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary=:all: --require-hashes \
    --python-version 3.11 --implementation cp --abi cp311 --abi none -d "$folder" -r "$folder/requirement.txt" ||
    fail "cannot fetch $requirement (network? free space in $deps?); or set LIBTORCH_ROOT to a LibTorch $torch_version"
}

# unpack_libraries FOLDER PATTERN...: the files of the wheel, without their folders, into FOLDER/lib
unpack_libraries() {
  local folder=$1; shift
  mkdir -p "$folder/lib"
  unzip -q -j -o "$folder"/*.whl "$@" -d "$folder/lib"
}

# add_library FILE NAME==VERSION PATTERN...: FILE in $root/lib, from a wheel, unless it is there
add_library() {
  local file=$1 requirement=$2; shift 2
  [ ! -e "$root/lib/$file" ] || return 0
  local work; work=$(mktemp -d "$deps/tmp.XXXXXX")
  unfinished=$work
  fetch_wheel "$requirement" "$work"
  unpack_libraries "$work" "$@"
  local other
  for other in "$work"/lib/*; do mv "$other" "$root/lib/"; done
  rm -rf "$work"
}

if [ -n "${LIBTORCH_ROOT:-}" ]; then
  [ -e "$LIBTORCH_ROOT/lib/libtorch_cpu.so" ] || fail "LIBTORCH_ROOT=$LIBTORCH_ROOT: no lib/libtorch_cpu.so in it"
else
  [ ${#sha256[@]} -gt 0 ] || fail "this is $(uname -m); the LibTorch that is fetched is for x86_64 and aarch64: set LIBTORCH_ROOT to one for this machine"
  mkdir -p "$deps"
  if [ ! -e "$root/lib/libtorch_cpu.so" ]; then
    work=$(mktemp -d "$deps/tmp.XXXXXX")
    unfinished=$work
    fetch_wheel "torch==$torch_version" "$work"
    say 'unpacking LibTorch (1 GB)'
    unzip -q "$work"/*.whl 'torch/include/*' 'torch/lib/*.so*' -d "$work"
    rm -rf "$root"
    mv "$work/torch" "$root"
    rm -rf "$work"
  fi
  # Needed by libtorch_cpu.so itself.
  add_library libcudart.so.13 nvidia-cuda-runtime==13.0.96 '*/libcudart.so.13'
  add_library libcupti.so.13 nvidia-cuda-cupti==13.0.85 '*/libcupti.so.13'
  # Needed by libtorch_cuda.so, and not in the CUDA toolkit.
  if [ "$preset" = default ] && { command -v nvcc >/dev/null || [ -e "${CUDA_HOME:-/usr/local/cuda}/include/cuda_runtime_api.h" ]; }; then
    add_library libcufile.so.0 nvidia-cufile==1.20.0.107 '*/libcufile.so.0'
    add_library libcusparseLt.so.0 nvidia-cusparselt-cu13==0.8.0 '*/libcusparseLt.so.0'
    add_library libnvshmem_host.so.3 nvidia-nvshmem-cu13==3.4.5 '*/libnvshmem_host.so.3'
  fi
fi

# --- build ----------------------------------------------------------------------------------------------------------
[ "$build" != no ] || exit 0
log=build/$preset-setup.log
mkdir -p build
if ! cmake --preset "$preset" >"$log" 2>&1; then
  grep -A 6 -m 1 'CMake Error' "$log" >&2 || tail -n 15 "$log" >&2
  fail "configuring failed (whole log: $log)"
fi
say "building preset $preset (log: $log)"
start=$SECONDS
if [ -t 2 ]; then
  cmake --build --preset "$preset" --target "$build" 2>&1 | tee -a "$log" >&2 || fail "the build failed (log: $log)"
elif ! cmake --build --preset "$preset" --target "$build" >>"$log" 2>&1; then
  grep -E -A 5 -m 3 'FAILED|error:' "$log" >&2 || tail -n 15 "$log" >&2
  fail "the build failed (whole log: $log)"
fi
say "built in $((SECONDS - start)) s; programs are in build/$preset/bin"
