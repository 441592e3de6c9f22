#!/bin/sh
# check_guide.sh ROOT: every line of C++ that the documentation shows under "<!-- FILE -->" stands in that file, which is
# built and run by the tests, but for its indentation; and no C++ is shown without the name of its file.
set -eu
cd "$1"
awk '
  function bare(line) { sub(/^ +/, "", line); return line }
  /^<!-- .* -->$/ { file = $2; next }
  /^```cpp$/ { if (file == "") { printf "%s:%d: code without the name of its file\n", FILENAME, FNR; bad = 1 } code = 1; next }
  /^```/ { code = 0; file = ""; next }
  code && NF {
    shown++
    if (!(file in read)) {
      read[file] = 1
      while ((getline line < file) > 0) known[file, bare(line)] = 1
    }
    if (!((file, bare($0)) in known)) { printf "%s:%d: not in %s: %s\n", FILENAME, FNR, file, $0; bad = 1 }
  }
  END { printf "%d lines compared\n", shown; exit bad || shown == 0 }
' README.md docs/*.md
