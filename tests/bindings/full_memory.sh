#!/bin/sh
# full_memory.sh RUN_SH PROGRAM: runs the program on two ranks in a mount namespace with a /dev/shm of its own.
# shellcheck disable=SC2016  # the inner shell expands its arguments
set -eu
if ! unshare --mount true 2>/dev/null; then
  echo "the system gives no mount namespace, which root can make"
  exit 77
fi
if ! "$2" probe; then
  echo "the system does not say whether it has memory (MADV_POPULATE_WRITE: Linux before 5.14, and QEMU)"
  exit 77
fi
exec unshare --mount sh -c 'mount -t tmpfs -o size=128m tmpfs /dev/shm && exec "$0" 2 "$1"' "$1" "$2"
