#!/usr/bin/env bash
# Checks the C++ sources against .clang-format; --fix rewrites them. Exit 1 if something is off, 77 without clang-format 14.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v clang-format >/dev/null; then
  echo "SKIP: clang-format is not installed (scripts/setup.sh --tests installs it)"
  exit 77
fi
version=$(clang-format --version)
if [[ ! $version =~ version\ 14\. ]]; then
  echo "SKIP: the sources have the form of clang-format 14 (Debian 12's), which other versions change; here is $version"
  exit 77
fi
case ${1-} in
  '') mode=(--dry-run -Werror) ;;
  --fix) mode=(-i) ;;
  *) echo "Usage: scripts/format.sh [--fix]" >&2 && exit 2 ;;
esac
# What git knows and what it would add, or without git (a source archive) every source outside build directories.
if git rev-parse --is-inside-work-tree &>/dev/null; then
  list=(git ls-files -z --cached --others --exclude-standard -- '*.h' '*.cpp')
else
  list=(find . -path './build*' -prune -o '(' -name '*.h' -o -name '*.cpp' ')' -type f -print0)
fi
mapfile -d '' -t found < <("${list[@]}")
sources=()
for source in "${found[@]}"; do
  if [[ -f $source ]]; then sources+=("$source"); fi # git still lists what was deleted and not yet committed
done
if ((${#sources[@]} == 0)); then
  echo "format.sh: no sources found" >&2
  exit 1
fi
if ! printf '%s\0' "${sources[@]}" | xargs -0 -n 64 -P "$(nproc)" clang-format "${mode[@]}"; then
  echo "format.sh: run scripts/format.sh --fix" >&2
  exit 1
fi
echo "format.sh: ${#sources[@]} files in order"
