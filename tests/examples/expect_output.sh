#!/usr/bin/env bash
# expect_output.sh STATUS REGEX COMMAND...: the command ends with this status, and what it prints has the extended regular expression, of which a
# dot is any character, the end of a line too. ctest's PASS_REGULAR_EXPRESSION looks at no status.
set -uo pipefail
status=$1 regex=$2
shift 2
output=$("$@" 2>&1 </dev/null)
got=$?
printf '%s\n' "$output"
if ((got != status)); then
  echo "expect_output.sh: status $got, expected $status"
  exit 1
fi
if ! [[ $output =~ $regex ]]; then
  echo "expect_output.sh: expected output with '$regex'"
  exit 1
fi
