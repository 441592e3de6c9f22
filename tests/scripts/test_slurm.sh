#!/usr/bin/env bash
# The commands of docs/launch.md in a Slurm cluster of this one machine: test_slurm.sh SOURCE_DIR HELLO
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
if [[ ${3-} != inside ]]; then
  exec timeout 1000 "$here/one_node_slurm.sh" "$here/test_slurm.sh" "$1" "$2" inside
fi
source "$here/expect.sh"
cd "$1"
hello=$2
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
if (($(nproc --all) < 2)); then echo "SKIP: needs two CPUs" && exit 77; fi

run srun --mpi=list
if ! grep -q pmix <<<"$output"; then echo "SKIP: this Slurm has no PMIx plugin" && exit 77; fi

expect_two_ranks() {
  expect_status 0
  expect_line '^hello rank=0 size=2 local_rank=0 local_size=2 ' 1
  expect_line '^hello rank=1 size=2 local_rank=1 local_size=2 ' 1
}

run srun -n 2 --mpi=pmix "$hello"
expect_two_ranks
run env LOCKSTEP_VERBOSE=1 srun -n 2 --mpi=pmix scripts/train.sh "$hello"
expect_two_ranks
expect_line 'rank [01] of 2, local [01] of 2: 1 threads' 2
run srun -n 2 --mpi=pmi2 "$hello" # what docs/launch.md says of another plugin
expect_status failure
expect_line "not built with SLURM's PMI support"
run salloc -n 2 mpirun scripts/train.sh "$hello"
expect_two_ranks
run salloc -n 2 "$hello" # no launcher: one rank, also inside an allocation
expect_status 0
expect_line '^hello rank=0 size=1 ' 1

for launcher in srun mpirun; do
  rm -f "$scratch/job.log" # slurm.sbatch appends, for jobs that are requeued
  run env LOCKSTEP_LAUNCHER=$launcher LOCKSTEP_PROGRAM="$hello" sbatch --wait -N 1 --ntasks-per-node=2 \
    --output="$scratch/job.log" scripts/slurm.sbatch
  expect_status 0
  output=$(<"$scratch/job.log")
  expect_two_ranks
done
# The job's status is the program's. (slurm.sbatch gives it --output first, which hello reads as status 0.)
run env LOCKSTEP_PROGRAM=./no_such_program sbatch --wait -N 1 --ntasks-per-node=2 --output="$scratch/job.log" scripts/slurm.sbatch
expect_status failure
output=$(<"$scratch/job.log")
expect_line "rank [01]: no program './no_such_program'"
