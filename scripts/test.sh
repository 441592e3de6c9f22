#!/usr/bin/env bash
# Installs, builds and runs the tests; the last output and the exit status are ctest's own.
# LOCKSTEP_TEST_DATA names a directory with real data sets; tests that need them skip without it.
# LOCKSTEP_PRESET picks another CMake preset (asan, ubsan, debug, generic).
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: scripts/test.sh [quick|full|long|all] [ctest arguments]
  quick  tests labelled quick (minutes)
  full   all that is not labelled long (the default); as root also on several hosts, tests/cluster
  long   tests labelled long
  all    every test
Examples: scripts/test.sh quick -R '^core'    scripts/test.sh full --rerun-failed
EOF
}

tier=full
case ${1-} in
  quick | full | long | all) tier=$1 && shift ;;
  -h | --help) usage && exit 0 ;;
  '' | -*) ;;
  *) echo "test.sh: unknown tier '$1'" >&2 && usage >&2 && exit 2 ;;
esac
case $tier in
  quick) selection=(-L '^quick$') ;;
  full) selection=(-LE '^long$') ;;
  long) selection=(-L '^long$') ;;
  all) selection=() ;;
esac

if [[ -n ${LOCKSTEP_TEST_DATA-} ]]; then
  if [[ ! -d $LOCKSTEP_TEST_DATA ]]; then
    echo "test.sh: LOCKSTEP_TEST_DATA is '$LOCKSTEP_TEST_DATA', expected a directory" >&2
    exit 2
  fi
  LOCKSTEP_TEST_DATA=$(realpath "$LOCKSTEP_TEST_DATA")
  export LOCKSTEP_TEST_DATA
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
preset=${LOCKSTEP_PRESET:-release}
groups=(--tests)
if [[ $tier == long || $tier == all ]]; then groups+=(--slurm --containers --cross --platforms); fi
scripts/setup.sh "${groups[@]}"
cmake --preset "$preset"
cmake --build --preset "$preset" -j "$(nproc)"

# Open MPI refuses to start as root unless it is told twice; CI containers are root.
if ((EUID == 0)); then export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1; fi
# Open MPI leaves memory behind when a program ends. Tests without MPI look for leaks all the same: their own setting wins.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=0}
# Six at a time, as most tests wait for most of their time; those that start ranks reserve two places (PROCESSORS). The
# longest begin first (COST).
exec ctest --test-dir "build/$preset" --output-on-failure --no-tests=error -j 6 "${selection[@]}" "$@"
