#!/usr/bin/env bash
# Builds what needs no LibTorch for 64-bit Arm with Debian's cross compiler, and runs its tests under qemu.
#   SSD_TEST_LONG=1 tests/aarch64.sh [ctest options...]      Exit code 77: skipped
# Needed: apt-get install g++-aarch64-linux-gnu qemu-user. The libraries come from Debian's arm64 packages, which are
# fetched once and unpacked into build/aarch64/sysroot; nothing is installed, and root is not needed.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf 'aarch64: %s\n' "$*" >&2; }
skip() { say "skipped: $*"; exit 77; }

[ "${SSD_TEST_LONG:-}" = 1 ] || skip 'takes long; SSD_TEST_LONG=1 runs it'
[ "$(uname -m)" != aarch64 ] || skip 'this is such a machine: tests/run.sh runs all tests'
# shellcheck disable=SC1091
release=$(. /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ] && echo "$VERSION_CODENAME") || skip 'this is not Debian'
for program in aarch64-linux-gnu-g++ qemu-aarch64; do
  command -v "$program" >/dev/null || skip "no $program; apt-get install g++-aarch64-linux-gnu qemu-user"
done

build=$PWD/build/aarch64
sysroot=$build/sysroot
packages=(
  libc6-dev libopenmpi-dev libhdf5-dev libjpeg62-turbo-dev libpng-dev libisal-dev liblzma-dev
  libboost-program-options-dev libfmt-dev libsimdjson-dev nlohmann-json3-dev libxxhash-dev libhwy-dev libcairo2-dev
  libpugixml-dev zlib1g-dev libwebp-dev libstb-dev libgtest-dev libgmock-dev
)

# --- sysroot --------------------------------------------------------------------------------------------------------
# The sources and keys are the system's own; lists, cache and the (empty) list of what is installed are ours.
make_sysroot() {
  local apt=$build/apt new=$build/sysroot.new
  rm -rf "$apt" "$new"
  mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$new"
  : >"$apt/status"
  cat >"$apt/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Dir::State "$apt";
Dir::State::status "$apt/status";
Dir::Cache "$apt";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Invoke;
#clear DPkg::Post-Invoke;
CONF
  say "fetching Debian's arm64 packages"
  apt-get -c "$apt/apt.conf" -q update
  apt-get -c "$apt/apt.conf" -q -y --download-only install "${packages[@]}"
  local package link target
  for package in "$apt"/archives/*.deb; do dpkg-deb -x "$package" "$new"; done
  [ -e "$new/lib" ] || ln -s usr/lib "$new/lib"  # Debian 12 has files in both, Debian 13 in /usr/lib alone
  # Absolute links lead out of the sysroot.
  find "$new" -type l -lname '/*' | while IFS= read -r link; do
    target=$(readlink "$link")
    ln -sfnr "$new$target" "$link"
  done
  rm -rf "$apt" "$sysroot"
  mv "$new" "$sysroot"
}
wanted="$release ${packages[*]}"
if [ "$(cat "$sysroot/made-of" 2>/dev/null)" != "$wanted" ]; then
  make_sysroot
  printf '%s\n' "$wanted" >"$sysroot/made-of"
fi

# --- build and tests ------------------------------------------------------------------------------------------------
# Only paths of LibTorch are needed: what is built includes and links none of it.
cmake -S . -B "$build" -G Ninja --toolchain cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release -DSSD_CUDA=OFF >&2
cmake --build "$build" --target torch_free >&2
env -u SSD_TEST_LONG ctest --test-dir "$build" -L torch_free --no-tests=error --output-on-failure -j "$(nproc)" "$@"
