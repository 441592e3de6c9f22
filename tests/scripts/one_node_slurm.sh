#!/usr/bin/env bash
# Runs a command inside a Slurm cluster of this one machine, without systemd and without touching /etc:
#   one_node_slurm.sh COMMAND...      COMMAND finds srun, sbatch and salloc ready
# Its own MUNGE key and socket, configuration, state and ports lie in a temporary directory; the three daemons it starts
# are stopped by process id at the end. Exit 77 where Slurm or MUNGE is not installed.
set -euo pipefail

PATH=$PATH:/usr/sbin:/sbin
for tool in munged slurmctld slurmd srun sinfo; do
  if ! command -v "$tool" >/dev/null; then
    echo "SKIP: $tool is not installed (scripts/setup.sh --slurm installs it)"
    exit 77
  fi
done

dir=$(mktemp -d)
pids=()
# shellcheck disable=SC2317  # called by the trap
cleanup() {
  local i
  # slurmd first, munged last: each needs the ones before it in the list to stop cleanly.
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do
    kill "${pids[i]}" 2>/dev/null || true
    wait "${pids[i]}" 2>/dev/null || true
  done
  rm -rf "$dir"
}
trap cleanup EXIT
chmod 755 "$dir" # munged wants every parent of its socket readable and not writable by others
mkdir -p "$dir"/{state,spool,log,run}
head -c 128 /dev/urandom >"$dir/munge.key"
chmod 600 "$dir/munge.key"

host=$(uname -n)
user=$(id -un)
port=$((20000 + $$ % 6000 * 2)) # below those that the kernel gives to clients
cpus=$(nproc --all)
cat >"$dir/slurm.conf" <<EOF
ClusterName=lockstep
SlurmctldHost=${host%%.*}(127.0.0.1)
SlurmUser=$user
SlurmdUser=$user
SlurmctldPort=$port
SlurmdPort=$((port + 1))
AuthType=auth/munge
AuthInfo=socket=$dir/run/munge.socket
CredType=cred/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/affinity
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool
SlurmctldPidFile=$dir/run/slurmctld.pid
SlurmdPidFile=$dir/run/slurmd.pid
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdLogFile=$dir/log/slurmd.log
MpiDefault=none
NodeName=${host%%.*} NodeAddr=127.0.0.1 CPUs=$cpus State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4
EOF
# Nothing here uses cgroups, but slurmd loads a plugin all the same, and version 1's asks least of the machine.
echo "CgroupPlugin=cgroup/v1" >"$dir/cgroup.conf"
echo "PMIxCliTmpDirBase=$dir/run" >"$dir/mpi.conf"
export SLURM_CONF=$dir/slurm.conf

munged --foreground --force --key-file="$dir/munge.key" --socket="$dir/run/munge.socket" --pid-file="$dir/run/munged.pid" \
  --log-file="$dir/log/munged.log" --seed-file="$dir/state/munge.seed" &>"$dir/log/munged.out" &
pids+=($!)
for _ in {1..600}; do
  if [[ -S $dir/run/munge.socket ]]; then break; fi
  sleep 0.05
done
slurmctld -D &>"$dir/log/slurmctld.out" &
pids+=($!)
slurmd -D &>"$dir/log/slurmd.out" &
pids+=($!)
for _ in {1..600}; do
  if [[ $(sinfo -h -o %T 2>/dev/null) == idle ]]; then break; fi
  sleep 0.2
done
if [[ $(sinfo -h -o %T 2>/dev/null) != idle ]]; then
  echo "one_node_slurm.sh: the node did not become idle" >&2
  tail -n 20 "$dir"/log/* >&2
  exit 1
fi
status=0
"$@" || status=$?
exit "$status"
