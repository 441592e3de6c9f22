#!/usr/bin/env bash
# `lockstep pack`, as a user calls it: test_pack.sh LOCKSTEP
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
tool=$1
records=$scratch/records

run "$tool" pack --dataset digits --output "$records" --file-size 1 --shuffle --seed 3
expect_status 0
expect_line 'train\.index: 12000 records$' 1
expect_line 'eval\.index: 2000 records$' 1
[[ -e $records/train-00009.records && ! -e $records/train-00010.records ]] || die "expected 10 files: 1331 records of 788 bytes pass 1 MiB"
run "$tool" pack --verify "$records/train.index"
expect_status 0
expect_line ': 12000 records, 9456000 bytes, all checksums right: ' 1
run "$tool" pack --verify "$records/train.index" --json
expect_status 0
expect_line '^\{"index":"[^"]*/train\.index","records":12000,"bytes":9456000,"verified":true,"layout":"[^"]*"\}$' 1
run "$tool" pack --dataset digits --output "$scratch/again" --split eval --json
[[ $output == "{\"index\":\"$scratch/again/eval.index\",\"records\":2000}" ]] || die "expected one line of JSON"

printf x | dd of="$records/train-00002.records" bs=1 seek=5000 conv=notrunc status=none
run "$tool" pack --verify "$records/train.index"
expect_status 1
expect_line '^lockstep: \[records\] .*/train-00002\.records: record 6 at offset 4760: damaged: XXH3-64 ' 1
truncate -s -1 "$records/train-00003.records"
run "$tool" pack --verify "$records/train.index"
expect_status 1
expect_line '/train-00003\.records: [0-9]+ bytes, .*train\.index says [0-9]+; the file is truncated' 1

run "$tool" pack --dataset digits --output "$records"
expect_status 1
expect_line 'train\.index exists, expected a new set' 1
run "$tool" pack --output "$records"
expect_status 2
expect_line 'data-dir is missing' 1
mkdir -p "$scratch/images/ant"
run "$tool" pack --data-dir "$scratch/images" --output "$scratch/other"
expect_status 1
expect_line 'no folder train' 1
run "$tool" pack --dataset imagenet --output "$scratch/other"
expect_status 1
expect_line "'imagenet'" 1
run "$tool" pack --dataset digits
expect_status 2
expect_line 'output is missing' 1
run "$tool" pack --dataset digits --output "$scratch/other" --file-size 0
expect_status 2
