#!/usr/bin/env bash
# Runs clang-tidy over the compiled sources: scripts/tidy.sh [-p BUILD] [REGEX...]
# BUILD is a build directory with compile_commands.json; without it, build/tidy is configured. REGEX selects files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=
if [[ ${1-} == -p ]]; then
  if (($# < 2)); then echo "tidy.sh: -p needs a build directory" >&2 && exit 2; fi
  build=$2
  shift 2
fi
if ! command -v clang-tidy >/dev/null; then
  echo "tidy.sh: clang-tidy is not installed (scripts/setup.sh --lint installs it)" >&2
  exit 1
fi
if [[ -z $build ]]; then
  build=build/tidy # clang cannot read the headers that gcc has precompiled
  cmake -G Ninja -S . -B $build -DCMAKE_BUILD_TYPE=Release -DLOCKSTEP_PRECOMPILE=OFF >/dev/null
elif [[ ! -f $build/compile_commands.json ]]; then
  echo "tidy.sh: no $build/compile_commands.json; configure it first, with -DLOCKSTEP_PRECOMPILE=OFF" >&2
  exit 1
fi
pattern=$(IFS='|' && echo "${*:-.}")
# Sources that are compiled together are read together, in a fifth of the time: such a file is chosen if one of its sources is.
mapfile -t sources < <(sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | grep -F "$PWD/" | sort -u |
  while read -r file; do
    if [[ $file == */Unity/unity_*.cxx ]]; then
      if sed -n 's/^#include "\(.*\)"$/\1/p' "$file" | grep -qE -- "$pattern"; then echo "$file"; fi
    elif [[ $file != "$PWD"/build/* && $file != *.f90 ]] && grep -qE -- "$pattern" <<<"$file"; then
      echo "$file"
    fi
  done)
if ((${#sources[@]} == 0)); then
  echo "tidy.sh: no source in $build matches '$pattern'" >&2
  exit 1
fi
# bugprone-suspicious-include: a file of joined sources includes them, and no other file includes a .cpp by mistake without a
# definition that is there twice. gcc's flags that clang does not know, and counts of what was found in system headers, are no news
# about the sources.
# check LEFT_OUT GREP...: reads the sources that grep chooses with these arguments, without the checks LEFT_OUT.
check() {
  local left_out=$1
  shift
  printf '%s\n' "${sources[@]}" | { grep "$@" || true; } | tr '\n' '\0' |
    xargs -0 -r -n 1 -P "${LOCKSTEP_JOBS:-$(nproc)}" clang-tidy -p "$build" --quiet --warnings-as-errors='*' --checks="$left_out" \
      --extra-arg=-Wno-unknown-warning-option 2> >(grep -vE '^[0-9]+ warnings?( and [0-9]+ errors?)? generated' >&2)
}
status=0
check -bugprone-suspicious-include -v /tests/ || status=1
# Tests may copy, compare the bytes of floats, and divide whole numbers before they convert them.
check '-bugprone-suspicious-include,-performance-*,-bugprone-integer-division,-bugprone-misplaced-widening-cast,-bugprone-suspicious-memory-comparison' /tests/ || status=1
((status == 0)) || exit 1
echo "tidy.sh: ${#sources[@]} files clean"
