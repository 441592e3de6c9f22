#!/usr/bin/env bash
# The ways to start ranks, each with a real program: test_launch.sh SOURCE_DIR HELLO CASE
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
cd "$1"
hello=$2
train=scripts/train.sh
hello_line='^hello rank=[0-9]+ size=%s local_rank=[0-9]+ local_size=%s '
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
# What the caller has set must not decide what is seen here.
for name in $(compgen -e | grep -E '^(OMP_|LOCKSTEP_|OMPI_MCA_)' || true); do unset "$name"; done
# A settings file of this checkout is no part of the test.
: >"$scratch/node.env"
export LOCKSTEP_NODE_ENV=$scratch/node.env

# mpirun for a number of ranks that float over the cores of this host.
open_mpi=false
if mpirun --version | grep -q 'Open MPI'; then open_mpi=true; fi
ranks() { # NUMBER
  if $open_mpi; then echo mpirun --bind-to none --oversubscribe -n "$1"; else echo mpirun -n "$1"; fi
}
need_open_mpi() {
  $open_mpi || { echo "SKIP: what is tried here is a matter of Open MPI's mpirun, and PATH has another" && exit 77; }
}
# The same with what Open MPI 4 alone prints.
need_open_mpi_4() {
  need_open_mpi
  [[ $(mpirun --version) =~ \ 4\. ]] || { echo "SKIP: Open MPI 4 alone prints its map this way" && exit 77; }
}

expect_ranks() { # NUMBER, all on this host, each rank once
  local rank
  expect_status 0
  # shellcheck disable=SC2059  # the format is the constant above
  expect_line "$(printf "$hello_line" "$1" "$1")" "$1"
  for ((rank = 0; rank < $1; ++rank)); do expect_line "^hello rank=$rank " 1; done
}

case_mpirun() {
  # shellcheck disable=SC2046  # words
  run $(ranks 2) "$train" "$hello"
  expect_ranks 2
}

case_host_option() {
  if ! $open_mpi; then
    run mpirun -hosts localhost:2 -n 2 "$train" "$hello"
    expect_ranks 2
    return
  fi
  run mpirun -H localhost:2 "$train" "$hello"
  expect_ranks 2
}

case_hostfile() {
  need_open_mpi
  run mpirun --hostfile hostfiles/localhost -n 2 "$train" "$hello"
  expect_ranks 2
  run mpirun --hostfile hostfiles/localhost -n 3 "$train" "$hello" # the file says two
  expect_status failure
  expect_line 'not enough slots available'
}

case_two_by_eight() { # placement only: the hosts of the example need not exist
  need_open_mpi_4
  run mpirun --hostfile hostfiles/two-by-eight -n 16 --display-map --do-not-launch true
  expect_line 'Data for node: node1.*Num procs: 8' 1
  expect_line 'Data for node: node2.*Num procs: 8' 1
  expect_line 'Process rank: ' 16
  run mpirun --hostfile hostfiles/two-by-eight -n 17 --display-map --do-not-launch true
  expect_line 'not enough slots available'
}

case_containers() { # placement, and what ssh makes of the configuration
  need_open_mpi_4
  run mpirun --hostfile hostfiles/containers -n 4 --display-map --do-not-launch true
  expect_line 'Data for node: worker-[01].*Num procs: 2' 2
  run ssh -G -F hostfiles/containers.ssh_config worker-1
  expect_status 0
  expect_line '^port 2222$' 1
  expect_line '^batchmode yes$' 1
}

case_oversubscribed() {
  local ranks=$(($(nproc) + 3))
  # shellcheck disable=SC2046
  run env LOCKSTEP_VERBOSE=1 $(ranks "$ranks") "$train" "$hello"
  expect_ranks "$ranks"
  expect_line ' threads=1 ' "$ranks"
}

case_alone() {
  run "$train" "$hello"
  expect_ranks 1
  run "$hello"
  expect_ranks 1
  run "$train" "$hello" 7 # the status is the program's
  expect_status 7
}

case_as_root() {
  need_open_mpi
  ((EUID == 0)) || { echo "SKIP: not root" && exit 77; }
  run env -u OMPI_ALLOW_RUN_AS_ROOT -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM mpirun -H localhost:2 "$train" "$hello"
  expect_status failure
  expect_line 'allow-run-as-root'
  run env -u OMPI_ALLOW_RUN_AS_ROOT -u OMPI_ALLOW_RUN_AS_ROOT_CONFIRM \
    mpirun --allow-run-as-root -H localhost:2 "$train" "$hello"
  expect_ranks 2
}

case_threads() {
  local cores
  run "$train" "$hello"
  cores=$(sed -n 's/.* threads=\([0-9]*\) .*/\1/p' <<<"$output")
  ((cores >= 1)) || die "one rank alone got no threads"
  # shellcheck disable=SC2046
  run $(ranks 2) "$train" "$hello"
  expect_line " threads=$((cores / 2 > 0 ? cores / 2 : 1)) " 2
  expect_line ' proc_bind=false ' 2
  run env OMP_NUM_THREADS=3 OMP_PROC_BIND=close "$train" "$hello" # what is set stays
  expect_line ' threads=3 proc_bind=close ' 1
  # A launcher that was itself given one core has one to share out.
  # shellcheck disable=SC2046
  run taskset -c "$(taskset -cp $$ | sed 's/.*: \([0-9]*\).*/\1/')" $(ranks 2) "$train" "$hello"
  expect_line ' threads=1 ' 2
}

case_binding() {
  local cores
  run env LOCKSTEP_BIND=cores LOCKSTEP_VERBOSE=1 "$train" "$hello"
  expect_ranks 1
  cores=$(sed -n 's/.*threads, cores \([0-9 ]*\), .*/\1/p' <<<"$output" | wc -w)
  # shellcheck disable=SC2046
  run env LOCKSTEP_BIND=cores LOCKSTEP_VERBOSE=1 $(ranks 2) "$train" "$hello"
  if ((cores >= 2)); then
    expect_ranks 2
    # No core is in both ranks' lists.
    output=$(sed -n 's/.*threads, cores \([0-9 ]*\), .*/\1/p' <<<"$output" | tr ' ' '\n' | sort | uniq -d)
    [[ -z $output ]] || die "cores given to both ranks"
  else
    expect_line 'LOCKSTEP_BIND=cores: 2 ranks on this host'
  fi
  run env LOCKSTEP_BIND=elbow "$train" "$hello"
  expect_status 2
  expect_line "LOCKSTEP_BIND is 'elbow', expected none, cores or numa"
}

case_node_settings() {
  printf '%s\n' '# this node' 'OMP_NUM_THREADS=5' 'LOCKSTEP_INTERFACE=lo' >"$scratch/node.env"
  # shellcheck disable=SC2046
  run $(ranks 2) "$train" "$hello"
  expect_ranks 2
  expect_line ' threads=5 .* interface=lo ' 2
  # The wrapper beside which a train.env lies takes that one.
  cp "$train" "$scratch/train.sh"
  echo 'OMP_NUM_THREADS=6' >"$scratch/train.env"
  run env -u LOCKSTEP_NODE_ENV "$scratch/train.sh" "$hello"
  expect_line ' threads=6 ' 1
  # A folder has a file for all and one for each host, which is read after it.
  mkdir "$scratch/nodes"
  echo 'OMP_NUM_THREADS=7 OMP_PROC_BIND=close' >"$scratch/nodes/train.env"
  echo 'OMP_NUM_THREADS=8' >"$scratch/nodes/$(uname -n).env"
  echo 'OMP_NUM_THREADS=9' >"$scratch/nodes/another-host.env"
  run env LOCKSTEP_NODE_ENV="$scratch/nodes" "$train" "$hello"
  expect_line ' threads=8 proc_bind=close ' 1
  run env LOCKSTEP_NODE_ENV="$scratch/absent.env" "$train" "$hello"
  expect_status 2
  expect_line "^train.sh: $(uname -n): LOCKSTEP_NODE_ENV names '.*absent.env'"
}

case_interface() {
  run env LOCKSTEP_INTERFACE=nosuch0 "$train" "$hello"
  expect_status 2
  expect_line "^train.sh: $(uname -n): rank 0: .*$(uname -n): LOCKSTEP_INTERFACE has 'nosuch0', .*; this host has .*lo 127.0.0.1/8"
  # As rank 3 of 4, two of them here, would see it.
  run env LOCKSTEP_INTERFACE=lo OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
    OMPI_COMM_WORLD_LOCAL_RANK=1 "$train" "$hello"
  expect_status 2
  expect_line "'lo', which reaches no other host"
  # An address and a network mean the interface that has them.
  run env LOCKSTEP_INTERFACE=127.0.0.1 "$train" "$hello"
  expect_line ' interface=127.0.0.0/8 ' 1
  run env LOCKSTEP_INTERFACE=127.0.0.0/16,lo "$train" "$hello"
  expect_line ' interface=127.0.0.0/16 ' 1
}

case_missing_program() {
  # shellcheck disable=SC2046
  run $(ranks 2) "$train" ./no_such_program
  expect_status 127
  expect_line "^train.sh: $(uname -n): rank [01]: no program './no_such_program'"
  run "$train" no_such_program
  expect_status 127
  expect_line "no program 'no_such_program' in PATH"
  run "$train" ./CMakeLists.txt
  expect_status 126
  expect_line "not an executable file"
  run "$train"
  expect_status 2
}

case_libraries() { # a library that lies beside the binary is found, one that does not is named
  mkdir -p "$scratch/app/bin" "$scratch/app/lib"
  echo 'int answer() { return 42; }' >"$scratch/a.cpp"
  echo 'int answer(); int main() { return answer(); }' >"$scratch/m.cpp"
  "${CXX:-c++}" -shared -fPIC -o "$scratch/app/lib/libanswer.so" "$scratch/a.cpp"
  "${CXX:-c++}" -o "$scratch/app/bin/ask" "$scratch/m.cpp" -L"$scratch/app/lib" -lanswer
  run "$train" "$scratch/app/bin/ask"
  expect_status 42
  mv "$scratch/app/lib" "$scratch/app/elsewhere"
  run "$train" "$scratch/app/bin/ask"
  expect_status 127
  expect_line "^train.sh: $(uname -n): rank 0: .*needs libraries that this host lacks: libanswer.so "
}

case_allocator() {
  local libc
  run env LOCKSTEP_MALLOC=dlmalloc "$train" "$hello"
  expect_status 2
  expect_line "LOCKSTEP_MALLOC is 'dlmalloc', expected"
  # Any library serves to show that the one named is preloaded.
  libc=$(ldd /bin/sh | awk '/libc\.so/ {print $3}')
  run env LOCKSTEP_MALLOC="$libc" "$train" "$hello"
  expect_ranks 1
  expect_line " preload=$libc" 1
  # Of one name the system lists the library of this architecture first.
  stub ldconfig "printf '\\t%s => %s\\n' 'libtcmalloc_minimal.so.4 (libc6,x86-64)' $libc 'libtcmalloc_minimal.so.4 (libc6)' /lib/i386-linux-gnu/none.so"
  run env PATH="$scratch/bin:$PATH" LOCKSTEP_MALLOC=tcmalloc "$train" "$hello"
  expect_ranks 1
  expect_line " preload=$libc" 1
}

case_task_counts() { # local ranks as srun describes them: "2(x3),1" is two tasks on three nodes, one on the fourth
  local node
  for node in 0:2 2:2 3:1; do
    run env LOCKSTEP_VERBOSE=1 SLURM_STEP_TASKS_PER_NODE='2(x3),1' SLURM_STEP_NUM_TASKS=7 SLURM_PROCID=0 SLURM_LOCALID=0 \
      SLURM_NODEID="${node%:*}" "$train" true
    expect_status 0
    expect_line "rank 0 of 7, local 0 of ${node#*:}:" 1
  done
}

"case_$3"
