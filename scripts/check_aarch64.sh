#!/usr/bin/env bash
# Compiles for AArch64 with Debian's cross compiler and tests under QEMU's emulation of a process: mpirun and Python are this machine's, each
# rank is emulated. Shows that nothing needs x86-64, and that results are the same bits there; nothing about speed, or about weak ordering of memory.
# Status 77 where a tool is missing.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: scripts/check_aarch64.sh [--root DIR] [-- COMMAND...]
  --root DIR  the folder of AArch64's libraries (/var/tmp/lockstep-aarch64), from the archive of this machine's Debian; it is made
              once and kept
  COMMAND     what runs with these libraries and the emulation. Without one: configure and build build/aarch64, and its quick tests
Example: scripts/check_aarch64.sh -- mpirun -n 2 build/aarch64/bin/train_toy
EOF
}

root=/var/tmp/lockstep-aarch64
command=()
while (($# > 0)); do
  case $1 in
    --root) root=${2:?check_aarch64.sh: --root needs a directory} && shift 2 ;;
    -h | --help) usage && exit 0 ;;
    --) shift && command=("$@") && break ;;
    *) echo "check_aarch64.sh: unknown argument '$1'" >&2 && usage >&2 && exit 2 ;;
  esac
done
for tool in aarch64-linux-gnu-g++ qemu-aarch64-static apt-get dpkg-deb; do
  if ! command -v "$tool" >/dev/null; then
    echo "check_aarch64.sh: skipped: there is no $tool; on Debian scripts/setup.sh --cross installs it"
    exit 77
  fi
done
root=$(realpath -m -- "$root") # before the cd: it may be relative
cd "$(dirname "${BASH_SOURCE[0]}")/.."

libraries=$root/usr/lib/aarch64-linux-gnu
packages=(libc6-dev libstdc++-12-dev libgomp1 libopenmpi-dev libhwloc-dev libopenblas-openmp-dev libdnnl-dev libhdf5-dev libxxhash-dev zlib1g-dev
  libminizip-dev libjpeg62-turbo-dev libpng-dev libarchive-dev libssl-dev libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev)
if [[ ! -e $root/.ready ]]; then
  # Packages are unpacked, not installed: no program of theirs runs.
  mkdir -p "$root"/apt/lists/partial "$root"/apt/cache/archives/partial
  : >"$root/apt/status"
  apt=(apt-get -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o "Dir::State=$root/apt" -o "Dir::State::Lists=$root/apt/lists"
    -o "Dir::State::status=$root/apt/status" -o "Dir::Cache=$root/apt/cache" -o Debug::NoLocking=1 -o APT::Install-Recommends=false
    -o APT::Sandbox::User="$(id -un)")
  if ! { "${apt[@]}" update && "${apt[@]}" -y --download-only install "${packages[@]}"; } >"$root/apt.log" 2>&1; then
    echo "check_aarch64.sh: no AArch64 packages; the last lines of $root/apt.log:" >&2 && tail -5 "$root/apt.log" >&2 && exit 1
  fi
  for package in "$root"/apt/cache/archives/*.deb; do dpkg-deb --extract "$package" "$root"; done
  rm -rf "$root/apt/cache"
  find "$root/usr/lib" -type l -lname '/*' -printf '%p %l\n' | while read -r link target; do ln -sfn "$root$target" "$link"; done
  ln -sfn openblas-openmp/libopenblas.so.0 "$libraries/libopenblas.so.0" # Debian's choice among BLAS libraries
  touch "$root/.ready"
fi

# Linux starts programs of another processor by the emulator that is registered for their first bytes.
formats=/proc/sys/fs/binfmt_misc
if [[ ! -e $formats/qemu-aarch64 ]]; then
  [[ -e $formats/register ]] || mount -t binfmt_misc none "$formats" 2>/dev/null || true
  { cat /usr/lib/binfmt.d/qemu-aarch64.conf >"$formats/register"; } 2>/dev/null || true
  if [[ ! -e $formats/qemu-aarch64 ]]; then
    echo "check_aarch64.sh: skipped: Linux does not start AArch64's programs here, and only root can register $formats/qemu-aarch64"
    exit 77
  fi
fi

export LOCKSTEP_AARCH64_ROOT=$root QEMU_LD_PREFIX=$root PKG_CONFIG_SYSROOT_DIR=$root
export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$libraries/openblas-openmp/pkgconfig:$root/usr/share/pkgconfig
# An emulated process cannot read the memory of another.
export OMPI_MCA_btl_vader_single_copy_mechanism=none LOCKSTEP_TEST_VARIABLES=OMPI_MCA_btl_vader_single_copy_mechanism
if ((${#command[@]} > 0)); then exec "${command[@]}"; fi
build=build/aarch64
cmake --preset release -B "$build" -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake
cmake --build "$build" -j "$(nproc)"
ctest --test-dir "$build" -L '^quick$' -j "$((2 * $(nproc)))" --output-on-failure --no-tests=error
