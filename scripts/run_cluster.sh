#!/usr/bin/env bash
# Trains in the background on this machine, or on the hosts of a hostfile or a rank table (JSON):
#   scripts/run_cluster.sh [options] PROGRAM DATA_DIR [HOSTFILE] [-- options of the program]
# It says what it will do, makes a new run folder, starts the job, and tells how to follow and how to stop it. DATA_DIR is
# the same path on all hosts; "-" for a data set that needs no files. Everything that the ranks print is in RUN/train.log.
#   -n, --ranks N        ranks; unset: the hostfile's slots, on this machine one per core (LOCKSTEP_RANKS)
#   -i, --interface LIST networks between hosts: eth0, 10.1.0.0/16; unset: the route to the hosts (LOCKSTEP_INTERFACE)
#   -o, --output RUN     the run folder, which must not exist; unset: runs/PROGRAM-DATE (LOCKSTEP_OUTPUT)
#   -r, --resume RUN     go on in this run folder, from its newest checkpoint
#   -p, --ssh-port PORT  of the hosts' ssh servers
#   --mpi-args "WORDS"   more words for mpirun
#   --dry-run            say what it would do, and do nothing
# Settings of scripts/train.sh (OMP_NUM_THREADS, LOCKSTEP_BIND, ...) reach all ranks. docs/launch.md says more.
set -euo pipefail

fail() { # STATUS MESSAGE
  echo "run_cluster.sh: $2" >&2
  exit "$1"
}

# --- in the background: the job's keeper, which outlives the terminal and hands signals on to mpirun -------------------------
if [[ ${1-} == --keep ]]; then
  run=$2 job='' asked=''
  shift 2
  tell() { [[ -z $job ]] || kill -"$1" "$job" 2>/dev/null || true; } # it may have ended
  trap 'tell USR1' USR1
  trap 'asked=true; tell USR2' USR2 TERM INT
  "$@" &
  job=$!
  if [[ -n $asked ]]; then tell USR2; fi # it came before there was a job
  while kill -0 "$job" 2>/dev/null; do wait "$job" || true; done # a trap ends wait too
  status=0
  wait "$job" || status=$?
  meaning=
  if ((status == 75)); then meaning=" (stopped with a checkpoint; to go on: the same command with --resume $run)"; fi
  echo "run_cluster.sh: ended with status $status$meaning"
  rm -f "$run/pid"
  exit "$status"
fi

# --- the command line ------------------------------------------------------------------------------------------------
ranks=${LOCKSTEP_RANKS-} interface=${LOCKSTEP_INTERFACE-} output=${LOCKSTEP_OUTPUT-}
resume='' ssh_port='' mpi_args='' dry_run=false
words=() program_options=()
while (($#)); do
  case $1 in
    -h | --help)
      sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "$0"
      exit 0
      ;;
    -n | --ranks | -i | --interface | -o | --output | -r | --resume | -p | --ssh-port | --mpi-args)
      (($# > 1)) || fail 2 "$1 needs a value"
      case $1 in
        -n | --ranks) ranks=$2 ;;
        -i | --interface) interface=$2 ;;
        -o | --output) output=$2 ;;
        -r | --resume) resume=$2 ;;
        -p | --ssh-port) ssh_port=$2 ;;
        --mpi-args) mpi_args=$2 ;;
      esac
      shift
      ;;
    --dry-run) dry_run=true ;;
    --)
      shift
      program_options=("$@")
      break
      ;;
    -?*) fail 2 "unknown option '$1'; options of the program come behind --" ;;
    *) words+=("$1") ;;
  esac
  shift
done
if ((${#words[@]} < 2 || ${#words[@]} > 3)); then
  fail 2 "expected PROGRAM DATA_DIR [HOSTFILE], got ${#words[@]} words: ${words[*]-} (see --help)"
fi
program=${words[0]} data=${words[1]} hostfile=${words[2]-}
[[ -z $ranks || $ranks =~ ^[1-9][0-9]*$ ]] || fail 2 "the number of ranks is '$ranks', expected 1 or more"
if [[ $program == */* ]]; then
  [[ -f $program && -x $program ]] || fail 2 "'$program' is not an executable file (working directory $PWD)"
else
  type -P "$program" >/dev/null || fail 2 "no program '$program' in PATH; write ./$program for one beside you"
fi
[[ $data == - || -d $data ]] || fail 2 "the data directory '$data' is not a folder here; '-' for a data set without files"
[[ -z $hostfile || -r $hostfile ]] || fail 2 "the hostfile '$hostfile' cannot be read"
mpirun=$(type -P mpirun) || fail 127 "no mpirun in PATH (apt-get install openmpi-bin, or scripts/setup.sh)"

# --- mpirun's words: for several hosts `lockstep hosts` checks the list, and knows network, mapping and keepalive ---------------
own_folder=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
find_lockstep() {
  local candidate
  for candidate in "${LOCKSTEP_TOOL-}" "$(dirname "$(realpath "$(type -P "$program")")")/lockstep" "$own_folder/../../bin/lockstep" \
    "$own_folder/../build/release/bin/lockstep" "$(type -P lockstep || true)"; do
    if [[ -n $candidate && -x $candidate ]]; then echo "$candidate" && return; fi
  done
  fail 127 "a hostfile is read by the program lockstep: have it in PATH, or name it by LOCKSTEP_TOOL"
}
job=("$mpirun")
if [[ -n $hostfile ]]; then
  lockstep=$(find_lockstep)
  asked=(hosts --file "$hostfile")
  if [[ -n $interface ]]; then asked+=(--interface "$interface"); fi
  if [[ -n $ssh_port ]]; then asked+=(--ssh-port "$ssh_port"); fi
  line=$("$lockstep" "${asked[@]}" --to mpirun -- PROGRAM) || fail 1 "$hostfile: see the line above"
  # The line is quoted for a shell; its first word is mpirun, its last PROGRAM.
  declare -a found=()
  eval "found=($line)"
  unset 'found[-1]'
  for ((i = 1; i < ${#found[@]}; ++i)); do
    if [[ ${found[i]} == -n ]]; then
      ranks=${ranks:-${found[i + 1]}}
      i=$((i + 1))
    else
      job+=("${found[i]}")
    fi
  done
else
  job+=(--map-by slot --bind-to none)
  if ((EUID == 0)); then job+=(--allow-run-as-root); fi
  if [[ -n $ranks ]] && ((ranks > $(nproc))); then job+=(--oversubscribe); fi
fi
if [[ -n $ranks ]]; then job+=(-n "$ranks"); fi
# mpirun itself hands on variables with OMPI_ in front alone.
if [[ -n $interface ]]; then export LOCKSTEP_INTERFACE=$interface; fi
for name in OMP_NUM_THREADS OMP_PLACES OMP_PROC_BIND LOCKSTEP_BIND LOCKSTEP_INTERFACE LOCKSTEP_INTERFACE_POLICY LOCKSTEP_MALLOC \
  LOCKSTEP_NODE_ENV LOCKSTEP_VERBOSE; do
  if [[ -n ${!name-} ]]; then job+=(-x "$name"); fi
done
if [[ -n $mpi_args ]]; then
  xargs printf '%s\0' <<<"$mpi_args" >/dev/null || fail 2 "--mpi-args cannot be split into words: $mpi_args"
  mapfile -d '' -t more < <(xargs printf '%s\0' <<<"$mpi_args")
  job+=("${more[@]}")
fi

# --- the run folder ----------------------------------------------------------------------------------------------------
if [[ -n $resume ]]; then
  run=$resume
  [[ -d $run ]] || fail 2 "there is no run folder '$run'"
  if [[ -e $run/pid ]] && kill -0 "$(<"$run/pid")" 2>/dev/null; then
    fail 2 "the run in '$run' has not ended: process $(<"$run/pid")"
  fi
  program_options+=(--resume auto)
else
  run=${output:-runs/$(basename "$program")-$(date +%Y%m%d-%H%M%S)}
  [[ ! -e $run ]] || fail 2 "'$run' exists; expected a new folder, or --resume $run to go on with that run"
fi
if [[ $run != /* ]]; then run=$PWD/$run; fi
job+=("$own_folder/train.sh" "$program")
if [[ $data != - ]]; then job+=(--data-dir "$data"); fi
job+=(--output "$run" "${program_options[@]}")

# --- say it, do it -------------------------------------------------------------------------------------------------------
echo "run_cluster.sh: ${ranks:-one}$([[ -n $ranks ]] && echo ' ranks' || echo ' rank per core') of $program on ${hostfile:+the hosts of }${hostfile:-this machine}"
echo "  data:    $([[ $data == - ]] && echo none || echo "$data")"
echo "  run:     $run$([[ -n $resume ]] && echo ', from its newest checkpoint' || echo ', new')"
printf '  command:' && printf ' %q' "${job[@]}" && echo
if $dry_run; then
  echo "run_cluster.sh: --dry-run: nothing was done"
  exit 0
fi
mkdir -p "$(dirname "$run")"
if [[ -z $resume ]]; then mkdir "$run" || fail 1 "the run folder could not be made"; fi
{ printf '%q ' "${job[@]}" && echo; } >>"$run/command"

setsid "$own_folder/$(basename "$(realpath "${BASH_SOURCE[0]}")")" --keep "$run" "${job[@]}" </dev/null >>"$run/train.log" 2>&1 &
keeper=$!
echo "$keeper" >"$run/pid"
echo "started, process $keeper"
echo "  follow:  tail -f $run/train.log"
echo "  stop:    kill $keeper          # writes a checkpoint; kill -USR1: writes one and goes on"
# A job that cannot start says so at once.
for _ in {1..20}; do
  kill -0 "$keeper" 2>/dev/null || break
  sleep 0.1
done
if ! kill -0 "$keeper" 2>/dev/null; then
  rm -f "$run/pid"
  status=0
  wait "$keeper" || status=$?
  echo "it has ended already, with status $status:" >&2
  tail -n 20 "$run/train.log" >&2
  exit "$status"
fi
