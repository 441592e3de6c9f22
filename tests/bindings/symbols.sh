#!/bin/sh
# symbols.sh LIBRARY HEADER NM: the library exports the functions of the header, and nothing else.
set -eu
declared=$(grep -oE '\blockstep_[a-z_]+\(' "$2" | tr -d '(' | sort -u | grep -vE '_function$')
exported=$("$3" -D --defined-only "$1" | awk '$2 ~ /[A-Z]/ && $2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u)
if [ "$declared" != "$exported" ]; then
  echo "symbols.sh: declared and exported functions differ:" >&2
  printf '%s\n%s\n' "$declared" "$exported" | sort | uniq -u >&2
  exit 1
fi
