#!/usr/bin/env bash
# Installs, builds and trains a small convolutional network on the built-in digits with two ranks, then checks the
# accuracy against the one stated here. Can be run again: it replaces its own runs/quickstart and nothing else.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

goal=0.97
output=runs/quickstart

echo "quickstart.sh: installs what is missing, compiles (some ten minutes on two cores), trains (under a minute)"
scripts/setup.sh
cmake --preset release
cmake --build --preset release -j "$(nproc)" --target train_mnist train_toy train_resnet lockstep_tool

# The marker tells this script's earlier run from a directory that somebody else gave that name.
if [[ -e $output && ! -e $output/.quickstart ]]; then
  echo "quickstart.sh: $output exists and was not made by this script; move it away first" >&2
  exit 1
fi
rm -rf "$output"
mkdir -p "$output"
touch "$output/.quickstart"

if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
# --bind-to none: Open MPI would bind each of two ranks to one core and leave the machine's other cores idle.
# --oversubscribe: two ranks, also on a machine with one core.
options=(--bind-to none --oversubscribe)
if ! mpirun --version 2>/dev/null | grep -q 'Open MPI'; then options=(); fi # MPICH's needs neither
run=(mpirun "${options[@]}" -n 2 scripts/train.sh build/release/bin/train_mnist
  --model convnet --dataset digits --epochs 3 --output "$output")
echo "\$ ${run[*]}"
"${run[@]}"

accuracy=$(sed -n '/"split": *"eval"/ s/.*"accuracy": *\([0-9.eE+-]*\).*/\1/p' "$output/metrics.jsonl" | tail -n 1)
if [[ -z $accuracy ]]; then
  echo "quickstart.sh: no evaluation in $output/metrics.jsonl" >&2
  exit 1
fi
awk -v got="$accuracy" -v goal="$goal" 'BEGIN {
  printf "quickstart.sh: test accuracy %.2f%%, at least %.0f%% expected: %s\n",
    100 * got, 100 * goal, (got >= goal) ? "reached" : "MISSED"
  exit !(got >= goal)
}'
echo "quickstart.sh: results are in $output; next: build/release/bin/train_resnet --help, README.md"
