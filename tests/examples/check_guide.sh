#!/bin/sh
# check_guide.sh ROOT: every line of code that docs/guide.md shows under "<!-- FILE -->" stands in that file.
set -eu
cd "$1"
awk '
  /^<!-- .* -->$/ { file = $2; next }
  /^```cpp$/ { if (file == "") { printf "guide.md:%d: code without the name of its file\n", FNR; bad = 1 } code = 1; next }
  /^```/ { code = 0; file = ""; next }
  code && NF {
    shown++
    if (!(file in read)) {
      read[file] = 1
      while ((getline line < file) > 0) known[file, line] = 1
    }
    if (!((file, $0) in known)) { printf "guide.md:%d: not in %s: %s\n", FNR, file, $0; bad = 1 }
  }
  END { printf "%d lines compared\n", shown; exit bad || shown == 0 }
' docs/guide.md
