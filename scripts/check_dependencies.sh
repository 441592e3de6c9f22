#!/usr/bin/env bash
# Checks the directions of #include between the library's folders, the files that may include mpi.h, HDF5 and oneDNN, and that
# namespaces follow folders.
# Usage: scripts/check_dependencies.sh [ROOT]; prints FILE:LINE for each breach and exits 1 if there is one.
set -euo pipefail
root=${1:-$(dirname "${BASH_SOURCE[0]}")/..}
cd "$root"

# A folder of framework/lockstep, and the folders beside itself that it may include. A row names rows above it alone, so folders include
# each other in no circle.
# Changing a row is changing the design: say why in the commit.
table='
core:
graph:      core
ops:        core graph
losses:     core graph ops
kernels:    core graph ops
nn:         core graph ops
metrics:    core graph ops
optim:      core
host:       core
comm:       core host
io:         core host
plan:       core host graph ops kernels
parallel:   core host graph plan optim comm
data:       core io comm
checkpoint: core host graph plan optim io
infer:      core graph plan nn io checkpoint
onnx:       core graph ops nn plan io
launch:     core host io
preflight:  core host comm io launch
train:      core host graph ops kernels nn metrics plan optim comm io parallel data checkpoint infer preflight onnx
'

# A room, which is a folder in one of these folders, and the rooms beside itself that it may include; "." are the files that lie in the
# folder itself. A row names rows above it alone. A room with the word "any" includes any other and is included by any: in kernels/ the
# registry, which all sets know and which knows all sets. A folder without rows has no rooms that are checked.
rooms='
kernels/.:        any
kernels/common:
kernels/native:   common
kernels/generic:  common native
kernels/onednn:   common native
train/monitor:
train/report:     monitor
train/prepare:    report monitor
train/runner:     prepare report monitor
train/state:      prepare report monitor
train/guard:      state runner prepare report monitor
train/step:       guard state runner prepare report monitor
train/options:    step guard state runner prepare report monitor
train/callbacks:  options step guard state runner prepare report monitor
train/run:        callbacks options step guard state runner prepare report monitor
parallel/tree:
parallel/exchange: tree
parallel/control: tree exchange
parallel/reduce:  tree exchange
parallel/guard:   tree control reduce
parallel/step:    tree exchange control reduce
parallel/update:  tree exchange control reduce guard step
parallel/tables:  tree exchange control update
parallel/.:       tree exchange control reduce guard step update
'

# A folder beside the library, and the folders of the library that it may include. The first row whose folder a file lies in counts.
beside='
data/datasets:    core comm io data metrics
data/generate:    core io ops nn data infer
data/tool:        core host io data train
models/zoo:       core graph ops losses nn metrics plan data infer onnx
tools/launcher:   core host comm io launch preflight
tools/doctor:     core host io launch preflight
tools/picture:    core io plan
tools/report:     core io checkpoint train
tools/supervisor: core io checkpoint launch train
tools/watch:      core io
'

# A header outside the project, and the paths that may include it. Tests and benchmarks may include what they measure.
outside='
mpi\.h            framework/lockstep/comm/|bindings/c/include/
hdf5(_hl)?\.h     framework/lockstep/io/
(oneapi/)?dnnl.*  framework/lockstep/kernels/onednn/
(jpeglib|jerror|png)\.h  framework/lockstep/data/images/
'

# The folders whose names are the vocabulary of all others and lie in namespace lockstep itself; any other folder F has lockstep::F.
root_folders='core graph ops losses'

# A folder beside the library, and the namespace below lockstep of its files. The first row whose folder a file lies in counts.
namespaces='
data:             datasets
models/recsys:    recsys
models:           models
tools/launcher:   launcher
tools/supervisor: supervisor
tools:            tools
bindings:         bindings
'

mapfile -d '' -t sources < <(find framework data models bindings tools -type f '(' -name '*.h' -o -name '*.cpp' ')' -print0 2>/dev/null | sort -z)
if ((${#sources[@]} == 0)); then
  echo "check_dependencies.sh: no sources under $PWD" >&2
  exit 1
fi
# ENVIRON and not -v: awk would read the backslashes of an assignment as escapes.
TABLE=$table ROOMS=$rooms OUTSIDE=$outside ROOT_FOLDERS=$root_folders BESIDE=$beside NAMESPACES=$namespaces awk '
  BEGIN {
    n = split(ENVIRON["TABLE"], rows, "\n")
    for (i = 1; i <= n; i++) {
      if (rows[i] == "") continue
      m = split(rows[i], words, /[: ]+/)
      known[words[1]] = 1
      allowed[words[1], words[1]] = 1
      for (j = 2; j <= m; j++) {
        must_be_above(words[1], words[j], words[j] in known)
        allowed[words[1], words[j]] = 1
      }
    }
    n = split(ENVIRON["ROOMS"], rows, "\n")
    for (i = 1; i <= n; i++) {
      if (rows[i] == "") continue
      m = split(rows[i], words, /[: ]+/)
      known_room[words[1]] = 1
      split(words[1], parts, "/")
      has_rooms[parts[1]] = 1
      allowed_room[words[1], parts[2]] = 1
      if (words[2] == "any") {
        free_room[words[1]] = 1
        continue
      }
      for (j = 2; j <= m; j++) {
        must_be_above(words[1], words[j], (parts[1] "/" words[j]) in known_room)
        allowed_room[words[1], words[j]] = 1
      }
    }
    n = split(ENVIRON["BESIDE"], rows, "\n")
    for (i = 1; i <= n; i++) {
      if (rows[i] == "") continue
      m = split(rows[i], words, /[: ]+/)
      beside[++besides] = words[1]
      for (j = 2; j <= m; j++) {
        if (!(words[j] in known)) must_be_above(words[1], words[j], 0)
        allowed_beside[words[1], words[j]] = 1
      }
    }
    n = split(ENVIRON["NAMESPACES"], rows, "\n")
    for (i = 1; i <= n; i++) {
      if (rows[i] == "") continue
      split(rows[i], words, /[: ]+/)
      named[++nameds] = words[1]
      namespace[words[1]] = words[2]
    }
    n = split(ENVIRON["ROOT_FOLDERS"], rows, " ")
    for (i = 1; i <= n; i++) in_root[rows[i]] = 1
    n = split(ENVIRON["OUTSIDE"], rows, "\n")
    for (i = 1; i <= n; i++) {
      if (split(rows[i], words, / +/) != 2) continue
      header[++headers] = "^" words[1] "$"
      place[headers] = "^(" words[2] ")"
    }
  }
  function must_be_above(row, name, is_above) {
    if (name == "" || is_above) return
    printf "check_dependencies.sh: the row of %s names %s, which is not above it\n", row, name
    breaches++
  }
  function breach(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    breaches++
  }
  function breach_of_namespace() {
    print opened
    opened = ""
    breaches++
  }
  # "train/step" of "train/step/trainer.h", "parallel/." of "parallel/gradient_engine.h"; "": its folder has no rooms.
  function room_of(path,    parts, m) {
    m = split(path, parts, "/")
    if (!(parts[1] in has_rooms)) return ""
    return parts[1] "/" (m > 2 ? parts[2] : ".")
  }
  # The first of `count` folders in which the file lies; "": none.
  function place_in(folders, count,    i) {
    for (i = 1; i <= count; i++) if (index(FILENAME, folders[i] "/") == 1) return folders[i]
    return ""
  }
  FNR == 1 {
    if (opened != "") breach_of_namespace()
    folder = room = ""
    stand = place_in(beside, besides)
    title = place_in(named, nameds)
    if (match(FILENAME, "^framework/lockstep/[^/]+/")) {
      split(FILENAME, parts, "/")
      folder = parts[3]
      if (!(folder in known)) breach("folder \"" folder "\" has no row in the table of check_dependencies.sh")
      room = room_of(substr(FILENAME, length("framework/lockstep/") + 1))
      if (room != "" && !(room in known_room)) breach("room \"" room "\" has no row in check_dependencies.sh")
    }
  }
  /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    name = $0
    quoted = name ~ /^[^<]*"/
    sub(/^[^<"]*[<"]/, "", name)
    sub(/[>"].*$/, "", name)
    for (i = 1; i <= headers; i++)
      if (name ~ header[i] && FILENAME !~ place[i]) breach("includes " name ", which belongs in " substr(place[i], 2))
    if (FILENAME ~ /^framework\// && name ~ /^(data|models|bindings|tools|tests|bench)\//) breach("the library includes " name)
    if (FILENAME ~ /^data\// && name ~ /^(models|tools|tests|bench)\//) breach("data sets include " name)
    if (FILENAME ~ /^models\/zoo\// && name ~ /^data\//) breach("the zoo includes " name)
    if (FILENAME ~ /^models\// && name ~ /^(bindings|tools|tests|bench)\//) breach("models include " name)
    if (FILENAME ~ /^bindings\// && name ~ /^(data|tools|tests|bench)\//) breach("the C library includes " name)
    if (quoted && name !~ /^(lockstep|data|models|bindings|tools)\//)
      breach("includes \"" name "\"; a path in quotes begins with lockstep/, data/, models/, bindings/ or tools/")
    if (stand != "" && name ~ /^lockstep\/[^\/]+\//) {
      split(name, parts, "/")
      if (!((stand, parts[2]) in allowed_beside)) breach(stand "/ may not include " name)
    }
    if ((folder in known) && name ~ /^lockstep\/[^\/]+\//) {
      split(name, parts, "/")
      if (!((folder, parts[2]) in allowed)) breach(folder "/ may not include " name)
      there = room_of(substr(name, length("lockstep/") + 1))
      if (parts[2] == folder && (room in known_room) && there != "" && !(room in free_room) && !(there in free_room)) {
        split(there, parts, "/")
        if (!((room, parts[2]) in allowed_room)) breach(room " may not include " name)
      }
    }
  }
  # The namespace of another folder may be opened for forward declarations alone.
  opened != "" && /^(class|struct) [A-Za-z]+;$/ { next }
  opened != "" && /^}/ { opened = "" }
  opened != "" { breach_of_namespace() }
  /^namespace lockstep/ && !/}/ {
    split($2, parts, "::")
    wanted = ""
    if (folder in known) wanted = (folder in in_root) ? "" : folder
    else if (title != "") wanted = namespace[title]
    else next
    if (wanted != "" ? parts[2] != wanted : (parts[2] in known)) {
      opened = FILENAME ":" FNR ": opens namespace " $2 ", expected lockstep" (wanted != "" ? "::" wanted : "")
    }
  }
  END {
    if (opened != "") breach_of_namespace()
    if (breaches) printf "check_dependencies.sh: %d breaches of the design\n", breaches
    exit breaches > 0
  }
' "${sources[@]}"
echo "check_dependencies.sh: ${#sources[@]} files in order"
