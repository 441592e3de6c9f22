#!/usr/bin/env bash
# Compiles the library for AArch64 with Debian's cross compiler (package g++-aarch64-linux-gnu), to show that nothing in it
# needs x86-64. Nothing is linked or run. Status 77 where there is no cross compiler.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: scripts/check_aarch64.sh [BUILD_DIR]
  Compiles liblockstep for AArch64 in BUILD_DIR (build/aarch64)
EOF
}
if [[ ${1-} == -h || ${1-} == --help ]]; then usage && exit 0; fi
if ! command -v aarch64-linux-gnu-g++ >/dev/null; then
  echo "check_aarch64.sh: skipped: there is no aarch64-linux-gnu-g++; install g++-aarch64-linux-gnu"
  exit 77
fi
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/aarch64}
architecture=$(uname -m)-linux-gnu
export PKG_CONFIG_LIBDIR=/usr/lib/$architecture/pkgconfig:/usr/share/pkgconfig
cmake -G Ninja -S . -B "$build" -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_INSTALL=OFF \
  -DLOCKSTEP_BUILD_TESTS=OFF -DLOCKSTEP_BUILD_BENCH=OFF -DLOCKSTEP_BUILD_EXAMPLES=OFF
cmake --build "$build" --target lockstep -j "$(nproc)"
echo "check_aarch64.sh: compiled for AArch64"
