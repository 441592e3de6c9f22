#!/usr/bin/env bash
# A level of kernels/native is compiled for instructions that other machines lack, so its objects may export nothing but their
# table: a weak symbol (an inline function of a header) could be the copy that the linker keeps for baseline code.
# Usage: native_symbols.sh LEVEL OBJECT...
set -euo pipefail
level=$1
shift
exported=$(nm --defined-only --extern-only "$@" | awk 'NF == 3 {print $3}' | c++filt)
if [[ $exported != "lockstep::kernels::native::$level::kernels" ]]; then
  echo "native_symbols.sh: level $level exports, expected its table alone:" >&2
  echo "$exported" >&2
  exit 1
fi
