#!/usr/bin/env bash
# The `lockstep-data` command, as a user calls it: test_data_tool.sh LOCKSTEP_DATA CASE
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
tool=$1

case_commands() {
  run "$tool" --help
  expect_status 0
  for command in list fetch check convert generate; do
    expect_line "^  $command " 1
    run "$tool" "$command" --help
    expect_status 0
    run "$tool" --help
  done
  run "$tool" list
  expect_status 0
  for name in folder records digits synthetic mnist cifar10 cifar100 npy cifar10-python; do expect_line "^$name +"; done
  for wrong in "" "fetch" "check" "convert digits --to npy" "train digits" "list --all" "generate" "generate waves" "generate darcy --samples 4"; do
    # shellcheck disable=SC2086  # words of a command line
    run "$tool" $wrong
    expect_status 2
  done
  mkdir "$scratch/here"
  cd "$scratch/here"
  for empty in "fetch mnist --data-dir" "fetch mnist --data-dir x --mirror" "check digits --data-dir" "convert digits --to npy --output" "generate lorenz --samples 1 --output"; do
    # shellcheck disable=SC2086  # words of a command line
    run "$tool" $empty ""
    expect_status 2
    expect_line '(--data-dir|--mirror|--output): is empty, expected a path' 1
  done
  [[ -z $(ls -A .) ]] || die "a command that was refused made files"
  run "$tool" fetch imagenet --data-dir "$scratch/data"
  expect_status 1
  expect_line "^lockstep-data: \[fetch\] 'imagenet' cannot be fetched, expected one of mnist, " 1
  run "$tool" check imagenet
  expect_status 1
  expect_line "'imagenet', expected one of folder, records, digits, " 1
  run "$tool" check mnist
  expect_status 1
  expect_line "data-dir is missing" 1
}

case_json() { # what programs read is JSON, and nothing else is on standard output
  command -v python3 >/dev/null || { echo "SKIP: there is no python3" && exit 77; }
  local command
  for command in "list" "convert digits --to npy --output $scratch/npy --limit-train 100 --limit-eval 20" \
    "check npy --data-dir $scratch/npy" "generate lorenz --samples 3 --output $scratch/lorenz.h5"; do
    # shellcheck disable=SC2086  # words of a command line
    "$tool" $command --json </dev/null | python3 -c 'import json, sys
for line in sys.stdin: print(json.dumps(json.loads(line), sort_keys=True))' >>"$scratch/lines"
  done
  run cat "$scratch/lines"
  expect_line '"data_sets": \[\{"description": "[^"]*", "name": "folder"\}, .*"to_be_fetched": \[\{"bytes": [0-9]+, "data_set": "mnist", ' 1
  expect_line '^\{"evaluation": 20, "folder": "[^"]*/npy", "format": "npy", "training": 100\}$' 1
  expect_line '"classes": 10, "data_set": "npy", "evaluation": \{"cannot_be_read": \[\], "of_classes": \[.*\], "samples": 20\}, "image": \[1, 28, 28\], ' 1
  expect_line '^\{"arrays": \{.*\}, "equation": "lorenz", "file": "[^"]*/lorenz.h5", "samples": 3\}$' 1
}

case_convert() {
  run "$tool" convert digits --to npy --output "$scratch/npy" --limit-train 100 --limit-eval 20
  expect_status 0
  expect_line '^100 and 20 samples in ' 1
  run "$tool" check npy --data-dir "$scratch/npy"
  expect_status 0
  expect_line '^npy: images \(1, 28, 28\) \(channels, rows, columns\), 10 classes$' 1
  expect_line '^training: 100 samples, ' 1
  expect_line '^evaluation: 20 samples, ' 1
  run "$tool" convert npy --data-dir "$scratch/npy" --to idx --output "$scratch/idx"
  expect_status 0
  run "$tool" convert mnist --data-dir "$scratch/idx" --to npy --output "$scratch/again"
  expect_status 0
  for file in train_images train_labels eval_images eval_labels; do
    cmp "$scratch/npy/$file.npy" "$scratch/again/$file.npy" || die "$file.npy is not what it was"
  done
  run "$tool" convert digits --to npy --output "$scratch/npy" # its files are another run's
  expect_status 1
  expect_line 'exists and is not empty, expected a new folder' 1
  run "$tool" convert digits --to png --output "$scratch/png"
  expect_status 1
  expect_line "'png', expected one of npy, idx, cifar10" 1
  # Every data set of the list: also image files, decoded. This one has 2 x 2 pixels.
  local part
  for part in train val; do
    mkdir -p "$scratch/files/$part/one"
    base64 -d >"$scratch/files/$part/one/a.png" <<<'iVBORw0KGgoAAAANSUhEUgAAAAIAAAACCAIAAAD91JpzAAAAFklEQVR42mNgYGRiZmFl4OLm4eXjBwABjwBbnipxqwAAAABJRU5ErkJggg=='
  done
  run "$tool" convert folder --data-dir "$scratch/files" --to npy --output "$scratch/decoded"
  expect_status 0
  expect_line '^1 and 1 samples in ' 1
  [[ $(tail -c 12 "$scratch/decoded/train_images.npy" | od -An -tu1 | xargs) == '0 3 10 13 1 4 11 14 2 5 12 15' ]] ||
    die "train_images.npy does not have the pixels of a.png by channel"
  run "$tool" convert digits --image-size 14 --to npy --output "$scratch/cropped"
  expect_status 1
  expect_line 'image-size is 14, but digits has images \(1, 28, 28\) that are not decoded from files' 1
  truncate -s -1 "$scratch/npy/train_images.npy"
  run "$tool" check npy --data-dir "$scratch/npy"
  expect_status 1
  expect_line 'train_images.npy] truncated: ' 1
}

case_fetch() {
  mkdir "$scratch/mirror"
  echo "no data" >"$scratch/mirror/train-images-idx3-ubyte.gz"
  run "$tool" fetch mnist --data-dir "$scratch/data" --mirror "$scratch/mirror"
  expect_status 1
  expect_line 'train-images-idx3-ubyte.gz: not the expected file: ' 1
  [[ -z $(ls -A "$scratch/data/mnist") ]] || die "a file that is not the expected one was left there"
  run "$tool" fetch mnist --data-dir "$scratch/data" --mirror "$scratch/absent"
  expect_status 1
  expect_line 'cannot be copied' 1

  local real=${LOCKSTEP_TEST_DATA:-$scratch/none}/mnist
  [[ -e $real/train-images-idx3-ubyte.gz ]] || { echo "SKIP: no mnist/ with .gz files in LOCKSTEP_TEST_DATA" && exit 77; }
  run "$tool" fetch mnist --data-dir "$scratch/data" --mirror "$real"
  expect_status 0
  expect_line '^training: 60000 samples, 5421 to 6742 in a class$' 1
  expect_line 'mean 0.1307, deviation 0.3081; normalised by mean 0.1307, deviation 0.3081' 1
  run "$tool" fetch mnist --data-dir "$scratch/data" --mirror "$scratch/absent"
  expect_status 0
  expect_line ': is there$' 4
  echo >>"$scratch/data/mnist/t10k-labels-idx1-ubyte.gz"
  run "$tool" fetch mnist --data-dir "$scratch/data" --mirror "$real"
  expect_status 1
  expect_line 'remove it to fetch it again' 1
}

case_generate() {
  for name in darcy gaussian lennard-jones lorenz; do
    run "$tool" generate "$name" --help
    expect_status 0
    run "$tool" generate "$name" --samples 3 --seed 4 --output "$scratch/$name.h5"
    expect_status 0
    expect_line "^3 samples of $name in .*$name.h5: " 1
    run "$tool" generate "$name" --samples 3 --seed 4 --threads 2 --output "$scratch/$name-2.h5"
    expect_status 0
    cmp "$scratch/$name.h5" "$scratch/$name-2.h5" || die "the file depends on the number of threads"
  done
  run "$tool" generate darcy --samples 3 --output "$scratch/darcy.h5"
  expect_status 1
  expect_line 'exists, expected a new file' 1
  run "$tool" generate darcy --samples 3 --output "$scratch/none/darcy.h5"
  expect_status 1
  expect_line 'there is no folder ' 1
  run "$tool" generate darcy --samples 3 --refine 2 --output "$scratch/refined.h5"
  expect_status 1
  expect_line '\[darcy\] --refine is 2, expected 1, 3, ... 15' 1
  [[ ! -e $scratch/refined.h5 ]] || die "a command that was refused made a file"
}

"case_$2"
