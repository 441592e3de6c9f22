# Sourced by the tests of scripts: runs commands, and ends the test at the first thing that is not as it must be.
# shellcheck shell=bash

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
output=
status=0

# run COMMAND...: keeps what it prints in $output, both streams together, and its exit status in $status.
run() {
  status=0
  output=$("$@" 2>&1 </dev/null) || status=$?
}

die() {
  printf '%s\n--- status %s, output:\n%s\n' "$1" "$status" "$output" >&2
  exit 1
}

expect_status() { # NUMBER, or "failure" for any but 0
  if [[ $1 == failure ]]; then
    ((status != 0)) || die "expected a failure"
  else
    ((status == $1)) || die "expected status $1"
  fi
}

expect_line() { # EXTENDED-REGEX [COUNT]: that many lines match; at least one if COUNT is not given
  local found
  found=$(grep -cE -- "$1" <<<"$output" || true)
  if (($# > 1)); then
    ((found == $2)) || die "expected $2 lines like '$1', found $found"
  else
    ((found > 0)) || die "expected a line like '$1'"
  fi
}

expect_no_line() { expect_line "$1" 0; }

# stub NAME BODY: a command that stands in for a real one on PATH.
stub() {
  mkdir -p "$scratch/bin"
  printf '#!/usr/bin/env bash\n%s\n' "$2" >"$scratch/bin/$1"
  chmod +x "$scratch/bin/$1"
}
