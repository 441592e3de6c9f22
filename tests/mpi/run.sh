#!/bin/sh
# run.sh RANKS PROGRAM [ARGUMENTS]: runs an MPI test on this machine, with more ranks than cores if need be.
# LOCKSTEP_TEST_LIMIT (seconds, 570) ends what hangs in spite of the program's own watchdog.
set -eu
if [ $# -lt 2 ]; then
  echo "usage: $0 RANKS PROGRAM [ARGUMENTS]" >&2
  exit 2
fi
ranks=$1
shift

export OMP_NUM_THREADS="${OMP_NUM_THREADS:-1}" OPENBLAS_NUM_THREADS="${OPENBLAS_NUM_THREADS:-1}"
# MPI libraries leak by design at exit; the checks for wrong accesses stay on.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_leaks=0}"

set -- -n "$ranks" "$@"
version=$(mpirun --version 2>/dev/null || true)
case $version in *"Open MPI) 5."*) export OMPI_MCA_btl="${OMPI_MCA_btl:-^tcp}" ;; esac # on one machine 5.0 complains of its interfaces
if [ "${version#*Open MPI}" != "$version" ]; then
  # Ranks that wait give the core away, and nothing is looked for outside this machine.
  export OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
  # Of a rank that has ended, PMIx waits 2 s for mpirun to note its MPI_Finalize, which a machine full of work does not keep; ranks that
  # fail end with a status of their own.
  export OMPI_MCA_orte_allowed_exit_without_sync=1
  export OMPI_MCA_btl_base_warn_component_unused=0 OMPI_MCA_plm=isolated OMPI_MCA_orte_abort_print_stack=0
  set -- --oversubscribe "$@"
  if [ "$(id -u)" -eq 0 ]; then
    set -- --allow-run-as-root "$@"
  fi
fi
exec timeout --kill-after=10 "${LOCKSTEP_TEST_LIMIT:-570}" mpirun "$@" </dev/null
