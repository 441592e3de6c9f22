#!/usr/bin/env bash
# Runs one rank with this node's own settings: mpirun -n 16 --hostfile hosts scripts/train.sh ./train_resnet ...
# Each node may have its own copy, with its own train.env beside it; beside a copy that nodes share, NAME.env is read by
# the host of that name (uname -n) alone. It works under mpirun, under srun and alone, and
# replaces itself by the program, so signals and exit status are the program's. Settings, all optional, from the
# environment or from these files (shell assignments; LOCKSTEP_NODE_ENV names another file, or a folder with them):
#   OMP_NUM_THREADS     threads per rank; unset: the cores this rank may use, shared with the node's other ranks
#   LOCKSTEP_INTERFACE  networks between hosts: eth0, 10.1.0.7, 10.1.0.0/16, a list; unset: MPI's own choice
#   LOCKSTEP_INTERFACE_POLICY  all (each rank uses the whole list), rank (local rank i prefers its i-th entry)
#   LOCKSTEP_BIND       none (the launcher's binding stays), cores (a share of the cores each), numa (a NUMA node each)
#   LOCKSTEP_MALLOC     tcmalloc, jemalloc or a library's path to preload; unset: the C library's
#   LOCKSTEP_VERBOSE    1: a line per rank saying what was set
# One wrapper per node may start the node's ranks, all in one job (options of `lockstep launch` may follow the number):
#   mpirun -H a:1,b:1 --bind-to none --map-by slot scripts/train.sh --ranks-per-node 8 ./train_resnet ...
# docs/launch.md says more, and which settings have to be given to mpirun itself.
set -euo pipefail

host=$(uname -n)
fail() { # STATUS MESSAGE
  echo "train.sh: $host: $2" >&2
  exit "$1"
}

if (($# == 0)) || [[ $1 == -h || $1 == --help ]]; then
  sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
  exit $(($# == 0 ? 2 : 0))
fi

# --- one wrapper per node: it becomes the node's launcher, which calls it again for each rank ---------------------------
if [[ $1 == --ranks-per-node ]]; then
  own_folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  lockstep=${LOCKSTEP_TOOL-}
  for candidate in "$own_folder/../../bin/lockstep" "$own_folder/../build/release/bin/lockstep"; do
    if [[ -z $lockstep && -x $candidate ]]; then lockstep=$candidate; fi
  done
  if [[ -z $lockstep ]]; then
    lockstep=$(type -P lockstep) || fail 127 "--ranks-per-node needs the program lockstep: in PATH, or named by LOCKSTEP_TOOL"
  fi
  exec "$lockstep" launch --wrapper "$own_folder/$(basename "${BASH_SOURCE[0]}")" "$@"
fi

# --- what this node says -------------------------------------------------------------------------------------------
node_env=${LOCKSTEP_NODE_ENV-}
if [[ -n $node_env && ! -r $node_env ]]; then
  fail 2 "LOCKSTEP_NODE_ENV names '$node_env', which cannot be read on this host"
fi
if [[ -z $node_env ]]; then
  node_env=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
fi
if [[ -d $node_env ]]; then # for all hosts, then for this one, by its full name or its first part
  node_files=("$node_env/train.env" "$node_env/${host%%.*}.env")
  if [[ $host == *.* ]]; then node_files+=("$node_env/$host.env"); fi
else
  node_files=("$node_env")
fi
for node_file in "${node_files[@]}"; do
  [[ -r $node_file ]] || continue
  set -a # plain assignments reach the program
  # shellcheck disable=SC1090  # known only on the node
  source "$node_file"
  set +a
done

# --- which rank this is --------------------------------------------------------------------------------------------
# Open MPI, then MPICH and Intel MPI, then srun. Slurm's variables are also set in a batch script, where no step runs.
tasks_on_this_slurm_node() { # "2(x3),1" and node 3 of the step -> 1
  local part count times node=${SLURM_NODEID:-0}
  for part in ${SLURM_STEP_TASKS_PER_NODE//,/ }; do
    count=${part%%(*}
    times=1
    if [[ $part == *'(x'*')' ]]; then times=${part##*(x} && times=${times%)}; fi
    if ((node < times)); then echo "$count" && return; fi
    node=$((node - times))
  done
  echo 1
}
rank=0 ranks=1 local_rank=0 local_ranks=1
if [[ -n ${OMPI_COMM_WORLD_SIZE-} ]]; then
  rank=$OMPI_COMM_WORLD_RANK ranks=$OMPI_COMM_WORLD_SIZE
  local_rank=$OMPI_COMM_WORLD_LOCAL_RANK local_ranks=$OMPI_COMM_WORLD_LOCAL_SIZE
elif [[ -n ${PMI_SIZE-} && -n ${MPI_LOCALNRANKS-} ]]; then
  rank=${PMI_RANK:-0} ranks=$PMI_SIZE
  local_rank=${MPI_LOCALRANKID:-0} local_ranks=$MPI_LOCALNRANKS
elif [[ -n ${SLURM_STEP_TASKS_PER_NODE-} ]]; then
  rank=${SLURM_PROCID:-0} ranks=${SLURM_STEP_NUM_TASKS:-${SLURM_NTASKS:-1}}
  local_rank=${SLURM_LOCALID:-0} local_ranks=$(tasks_on_this_slurm_node)
fi

# --- the program, before anything slow: a rank that cannot start must say where ---------------------------------------
program=$1
shift
if [[ $program == */* ]]; then
  [[ -e $program ]] || fail 127 "rank $rank: no program '$program' (working directory $PWD); is the build on this host?"
  [[ -f $program && -x $program ]] || fail 126 "rank $rank: '$program' is not an executable file"
else
  name=$program
  program=$(type -P "$name") || fail 127 "rank $rank: no program '$name' in PATH; write ./$name for one beside you"
fi
program_dir=$(dirname "$(realpath "$program")")
for directory in "$program_dir/../lib" "$program_dir/lib" "$program_dir"; do
  if compgen -G "$directory/*.so*" >/dev/null; then
    LD_LIBRARY_PATH=$(realpath "$directory")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
  fi
done
lost=$(ldd "$program" 2>/dev/null | awk '/not found/ && !seen[$1]++ {printf "%s ", $1}' || true)
[[ -z $lost ]] || fail 127 "rank $rank: '$program' needs libraries that this host lacks: ${lost% } (scripts/setup.sh installs them)"

# --- cores and threads ---------------------------------------------------------------------------------------------
allowed_cpus() { awk '/^Cpus_allowed_list/ {print $2}' "/proc/$1/status"; }
expand_list() { # 0-2,5 -> one number a line
  local part
  for part in ${1//,/ }; do seq "${part%-*}" "${part#*-}"; done
}
physical_cores() { # of the CPUs given one a line, the first hardware thread of each core
  local cpu siblings seen=,
  while read -r cpu; do
    siblings=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null || echo "$cpu")
    if [[ $seen == *",$siblings;"* ]]; then continue; fi
    seen+="$siblings;,"
    echo "$cpu"
  done
}
cpu_quota() { # whole CPUs that the container's time limit allows, nothing if unlimited
  local quota=max period=100000
  if [[ -r /sys/fs/cgroup/cpu.max ]]; then
    read -r quota period </sys/fs/cgroup/cpu.max
  elif [[ -r /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]]; then
    quota=$(</sys/fs/cgroup/cpu/cpu.cfs_quota_us)
    period=$(</sys/fs/cgroup/cpu/cpu.cfs_period_us)
  fi
  if [[ $quota =~ ^[0-9]+$ ]]; then echo $((quota < period ? 1 : quota / period)); fi
}

# The launcher's own CPUs are the node's share of this job; the rank's may be fewer, when the launcher binds.
mapfile -t node_cores < <(expand_list "$(allowed_cpus "$PPID")" | physical_cores)
mapfile -t own_cores < <(expand_list "$(allowed_cpus self)" | physical_cores)
usable=${#node_cores[@]}
quota=$(cpu_quota)
if [[ -n $quota ]] && ((quota < usable)); then usable=$quota; fi
share=$((usable / local_ranks > 0 ? usable / local_ranks : 1))

launch=()
bind=${LOCKSTEP_BIND:-none}
case $bind in
  none) ;;
  cores)
    ((local_ranks <= ${#node_cores[@]})) ||
      fail 2 "LOCKSTEP_BIND=cores: $local_ranks ranks on this host, but only ${#node_cores[@]} cores; use none"
    # Rank i of n takes cores [i*c/n, (i+1)*c/n): contiguous, so a share lies within one socket where it can.
    first=$((local_rank * ${#node_cores[@]} / local_ranks))
    count=$(((local_rank + 1) * ${#node_cores[@]} / local_ranks - first))
    own_cores=("${node_cores[@]:first:count}")
    launch=(taskset -c "$(IFS=, && echo "${own_cores[*]}")")
    ;;
  numa)
    command -v numactl >/dev/null || fail 2 "LOCKSTEP_BIND=numa needs numactl (apt-get install numactl)"
    domains=()
    for directory in /sys/devices/system/node/node[0-9]*; do # one may have memory alone
      if [[ -r $directory/cpulist && -n $(<"$directory/cpulist") ]]; then domains+=("${directory##*/node}"); fi
    done
    ((${#domains[@]} > 0)) || fail 2 "LOCKSTEP_BIND=numa: no NUMA domain with cores in /sys/devices/system/node; use cores or none"
    domain=${domains[local_rank * ${#domains[@]} / local_ranks]}
    mapfile -t own_cores < <(expand_list "$(<"/sys/devices/system/node/node$domain/cpulist")" | physical_cores)
    # Preferred and not bound memory: a rank that needs more than its domain has becomes slower, it does not die.
    launch=(numactl "--cpunodebind=$domain" "--preferred=$domain")
    ;;
  *) fail 2 "LOCKSTEP_BIND is '$bind', expected none, cores or numa" ;;
esac

threads=$((share < ${#own_cores[@]} ? share : ${#own_cores[@]}))
if ((threads < share && local_rank == 0)) && [[ -n ${OMPI_MCA_orte_bound_at_launch-} && -z ${OMP_NUM_THREADS-} ]]; then
  echo "train.sh: $host: each rank is bound to $threads of the $share cores that it could have;" \
    "give mpirun --bind-to none, or set LOCKSTEP_BIND=cores" >&2
fi
if [[ -z ${OMP_NUM_THREADS-} ]]; then export OMP_NUM_THREADS=$threads; fi
# OpenMP's own pinning puts the main thread on one core, and the loader and communication threads it starts inherit
# that core. The binding above holds whole ranks instead; who asked for places gets them.
if [[ -z ${OMP_PLACES-} && -z ${OMP_PROC_BIND-} ]]; then export OMP_PROC_BIND=false; fi
# With more runnable threads than cores, a thread that spins at a barrier keeps off the one it waits for.
if ((${OMP_NUM_THREADS%%,*} * local_ranks > usable)); then
  export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive} OMPI_MCA_mpi_yield_when_idle=${OMPI_MCA_mpi_yield_when_idle:-1}
fi

# --- the network between hosts -------------------------------------------------------------------------------------
# Programs of Lockstep read LOCKSTEP_INTERFACE by themselves. For any other program the `lockstep` command says here what
# it means on this node; it lies beside the program, in an installation, or in PATH.
if [[ -n ${LOCKSTEP_INTERFACE-} ]]; then
  own_dir=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
  for tool in "$program_dir/lockstep" "$own_dir/../../bin/lockstep" "$own_dir/../build/release/bin/lockstep" \
    "$(type -P lockstep || true)"; do
    [[ -x $tool ]] || continue
    found=$("$tool" hosts --rank-settings 2>&1) || fail 2 "rank $rank: ${found#lockstep: }"
    while IFS= read -r line; do export "${line?}"; done <<<"$found"
    unset OMPI_MCA_btl_tcp_if_exclude # Open MPI refuses to have both
    break
  done
fi

# --- memory allocator ----------------------------------------------------------------------------------------------
allocator=${LOCKSTEP_MALLOC-}
if [[ -n $allocator ]]; then
  case $allocator in
    tcmalloc) names='libtcmalloc_minimal.so.4 libtcmalloc.so.4' package=libtcmalloc-minimal4 ;;
    jemalloc) names='libjemalloc.so.2' package=libjemalloc2 ;;
    /*) names='' package='' ;;
    *) fail 2 "LOCKSTEP_MALLOC is '$allocator', expected tcmalloc, jemalloc or an absolute path" ;;
  esac
  library=$allocator
  if [[ -n $names ]]; then
    library=$(PATH=$PATH:/sbin:/usr/sbin ldconfig -p |
      awk -v names="$names" 'BEGIN {n = split(names, wanted, " ")} !($1 in at) {at[$1] = $NF} # later ones are of other architectures
                             END {for (i = 1; i <= n; i++) if (wanted[i] in at) {print at[wanted[i]]; exit}}')
    [[ -n $library ]] || fail 2 "LOCKSTEP_MALLOC=$allocator: not on this host (apt-get install $package)"
  fi
  [[ -r $library ]] || fail 2 "LOCKSTEP_MALLOC: no library '$library' on this host"
  export LD_PRELOAD=$library${LD_PRELOAD:+:$LD_PRELOAD}
fi

if [[ ${LOCKSTEP_VERBOSE-} == 1 ]]; then
  echo "train.sh: $host: rank $rank of $ranks, local $local_rank of $local_ranks: $OMP_NUM_THREADS threads," \
    "cores ${own_cores[*]}, interface ${OMPI_MCA_btl_tcp_if_include:-any}, malloc ${allocator:-libc}" >&2
fi
# From here on the program is the rank.
exec "${launch[@]}" "$program" "$@"
