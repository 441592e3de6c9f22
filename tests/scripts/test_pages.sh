#!/usr/bin/env bash
# Completions and man pages as shells and man read them: test_pages.sh LOCKSTEP TRAINING_PROGRAM CASE
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
lockstep=$1 train=$2

# complete FUNCTION WORDS...: the proposals for the last word
complete_words() {
  local function=$1
  shift
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  "$function" || true # compopt fails outside of a completion
  output="${COMPREPLY[*]}"
}
expect_proposals() { [[ " $output " == *" $1 "* ]] || die "expected the proposal '$1'"; }
expect_no_proposal() { [[ " $output " != *" $1 "* ]] || die "the proposal '$1' is wrong here"; }

case_completions() {
  local program shell words
  "$lockstep" completion bash >"$scratch/lockstep.bash"
  "$train" --completion bash >"$scratch/train.bash"
  # shellcheck source=/dev/null
  source "$scratch/lockstep.bash"
  # shellcheck source=/dev/null
  source "$scratch/train.bash"
  complete_words _lockstep lockstep ins
  expect_proposals inspect
  expect_no_proposal models
  complete_words _lockstep lockstep inspect --pre
  expect_proposals --precision
  complete_words _lockstep lockstep inspect --precision f
  expect_proposals f64
  expect_no_proposal bf16
  complete_words _lockstep lockstep inspect --precision = b
  expect_proposals bf16
  complete_words _lockstep lockstep compare --
  expect_proposals --json
  expect_no_proposal --precision
  complete_words _lockstep lockstep he
  expect_proposals help
  # An argument that has a name too; --json of commands that give it to another program; generate's.
  complete_words _lockstep lockstep export --w
  expect_proposals --weights
  for program in evaluate predict generate; do
    complete_words _lockstep lockstep "$program" --js
    expect_proposals --json
  done
  complete_words _lockstep lockstep launch-
  expect_no_proposal launch-agent
  complete_words "_$(basename "$train")" "$train" --optimizer ad
  expect_proposals adam
  complete_words "_$(basename "$train")" "$train" --lr 0
  [[ -z $output ]] || die "a number has proposals"

  for program in "$lockstep completion" "$train --completion"; do
    for shell in bash zsh fish; do
      read -ra words <<<"$program"
      run "${words[@]}" "$shell"
      expect_status 0
      printf '%s\n' "$output" >"$scratch/page"
      if command -v "$shell" >/dev/null; then
        run "$shell" -n "$scratch/page" # reads it without running it
        expect_status 0
        [[ -z $output ]] || die "$shell complains"
      fi
    done
    run "${words[@]}" tcsh
    expect_status 2
  done
}

write_man_pages() {
  local name
  run "$lockstep" man --output "$scratch/man"
  expect_status 0
  "$train" --man >"$scratch/man/$(basename "$train").1"
  "$lockstep" man >"$scratch/man/whole.1"
  for name in lockstep lockstep-run lockstep-inspect; do
    [[ -s $scratch/man/$name.1 ]] || die "$name.1 is missing"
  done
}

case_man() { # as man formats them; minimal systems have none, or a command of that name that says so
  local page
  if [[ $(man --version 2>/dev/null) != man* ]] || ! command -v groff >/dev/null; then
    echo "SKIP: man or groff is not installed: the pages were not read (scripts/setup.sh --tests)"
    exit 77
  fi
  write_man_pages
  for page in "$scratch"/man/*.1; do
    run env LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -l "$page"
    expect_status 0
    expect_line 'EXIT STATUS' 1
    expect_no_line '<standard input>|warning:'
  done
}

case_help() {
  local words command
  write_man_pages
  # Help and the page of one command, by each name that one would try.
  for words in "help" "help run" "man run"; do
    read -ra words <<<"$words"
    run "$lockstep" "${words[@]}"
    expect_status 0
  done
  expect_line '^\.TH lockstep' 1
  run "$lockstep" man export
  expect_line '\\fB\\-\\-weights\\fR \\fIVALUE\\fR' 1
  run "$lockstep" man nothing
  expect_status 2
  run "$lockstep"
  expect_status 2
  expect_line 'Subcommands:' 1
  # Machines read these.
  for command in models "inspect toy"; do
    read -ra words <<<"$command"
    run "$lockstep" "${words[@]}" --json
    expect_status 0
    if command -v python3 >/dev/null; then python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$output"; fi
  done
}

"case_$3"
