#!/usr/bin/env bash
# Compiles headers for users and refuses those that bring a library, or the engine of the trainer, that programs need not pay for: all
# together in both orders, in which most headers that need an earlier one fail, or with --each one by one, which takes minutes.
# Usage: check.sh [--each] LIST ROOT COMPILER FLAG...: LIST is a file with a header on each line; exits 1 if there is a breach.
set -euo pipefail
each=false
[[ $1 != --each ]] || { each=true && shift; }
list=$1 root=$2 compiler=$3
shift 3
flags=("$@")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mapfile -t headers <"$list"
status=0

check() { # NAME HEADER...
  local name=$1 heavy
  shift
  printf '#include "%s"\n' "$@" >"$work/user.cpp"
  if ! "$compiler" -std=c++20 "${flags[@]}" -I"$root/framework" -I"$root" -fsyntax-only -MD -MF "$work/user.d" "$work/user.cpp"; then
    echo "$name: does not compile" >&2
    status=1
  elif heavy=$(grep -m 1 -oE '[^ ]*/(CLI|nlohmann|spdlog|fmt)/[^ ]*|[^ ]*/parallel/gradient_engine\.h' "$work/user.d"); then
    echo "$name: includes ${heavy%%$'\n'*}; check.sh --each names the header" >&2
    status=1
  fi
}

if $each; then
  for header in "${headers[@]}"; do check "$header by itself" "$header"; done
else
  backwards=()
  for header in "${headers[@]}"; do backwards=("$header" "${backwards[@]}"); done
  check 'all headers' "${headers[@]}"
  check 'all headers, the last one first' "${backwards[@]}"
fi
exit $status
