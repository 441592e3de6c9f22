#!/usr/bin/env bash
# Compiles each header for users by itself, and refuses those that bring a library, or the engine of the trainer, that programs need
# not pay for.
# Usage: check.sh ROOT COMPILER FLAG... < list of headers, one a line; exits 1 if there is a breach.
set -euo pipefail
root=$1 compiler=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
while read -r header; do
  printf '#include "%s"\n' "$header" >"$work/alone.cpp"
  if ! "$compiler" -std=c++20 "$@" -I"$root/framework" -I"$root" -fsyntax-only -MD -MF "$work/alone.d" "$work/alone.cpp"; then
    echo "$header: does not compile by itself" >&2
    status=1
  elif heavy=$(grep -oE '[^ ]*/(CLI|nlohmann|spdlog|fmt)/[^ ]*|[^ ]*/parallel/gradient_engine\.h' "$work/alone.d" | head -n 1); then
    echo "$header: includes $heavy" >&2
    status=1
  fi
done
exit $status
