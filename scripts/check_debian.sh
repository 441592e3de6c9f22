#!/usr/bin/env bash
# Builds and tests this checkout on another release of Debian, in a chroot made by debootstrap: its compiler, Open MPI, oneDNN and
# HDF5. Needs root and the package debootstrap; status 77 without them.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: scripts/check_debian.sh RELEASE [--root DIR] [-- COMMAND...]
  RELEASE     bookworm, trixie, ...
  --root DIR  where the chroot is, or is made (/var/tmp/lockstep-RELEASE); it is kept, with its build, for the next call
  --remove    delete the chroot instead
  COMMAND     what runs at the root of the project there (scripts/test.sh quick)
Examples: scripts/check_debian.sh trixie
          scripts/check_debian.sh trixie -- scripts/test.sh full -R kernels
EOF
}

arguments=("$@")
release=${1-}
case $release in
  '' | -h | --help) usage && [[ -n $release ]] && exit 0 || exit 2 ;;
  -*) echo "check_debian.sh: the first argument is '$release', expected a release of Debian" >&2 && usage >&2 && exit 2 ;;
esac
shift
root=/var/tmp/lockstep-$release
remove=false
command=(scripts/test.sh quick)
while (($# > 0)); do
  case $1 in
    --root) root=${2:?check_debian.sh: --root needs a directory} && shift 2 ;;
    --remove) remove=true && shift ;;
    --) shift && command=("$@") && break ;;
    *) echo "check_debian.sh: unknown argument '$1'" >&2 && usage >&2 && exit 2 ;;
  esac
done
if ((EUID != 0)) || ! command -v debootstrap >/dev/null; then
  echo "check_debian.sh: skipped: it needs root and debootstrap (scripts/setup.sh --containers installs it)"
  exit 77
fi
if ! unshare --mount true 2>/dev/null; then
  echo "check_debian.sh: skipped: this machine grants no mount namespace, which the chroot needs"
  exit 77
fi
# What is mounted for the chroot is seen by this script and its children alone, and goes with them, however they end.
# The variable has the namespace outside, so that one which is set by accident leads to no other end.
namespace=$(readlink /proc/self/ns/mnt)
if [[ ${LOCKSTEP_NAMESPACE_OUTSIDE-$namespace} == "$namespace" || $LOCKSTEP_NAMESPACE_OUTSIDE != mnt:* ]]; then
  exec env "LOCKSTEP_NAMESPACE_OUTSIDE=$namespace" unshare --mount --propagation private "$(realpath -- "${BASH_SOURCE[0]}")" "${arguments[@]}"
fi
root=$(realpath -m -- "$root") # before the cd: it may be relative
cd "$(dirname "${BASH_SOURCE[0]}")/.."

exec {lock}>"$root.lock"
flock --nonblock "$lock" || { echo "check_debian.sh: $root is in use by another call, expected one at a time" >&2 && exit 1; }
if $remove; then
  [[ -e $root ]] || { echo "check_debian.sh: there is no $root, so nothing is removed" && exit 0; }
  if [[ ! -e $root/.ready ]]; then
    echo "check_debian.sh: $root has no file .ready, so it is no chroot that this script finished; nothing was removed. Expected another --root, or delete the folder yourself" >&2
    exit 1
  fi
  if grep -q " $root/" /proc/mounts; then echo "check_debian.sh: something is still mounted below $root" >&2 && exit 1; fi
  rm -rf --one-file-system -- "$root" "$root.lock"
  exit 0
fi

if [[ ! -e $root/.ready ]]; then
  # The archive that this machine installs from.
  mirror=$({ cat /etc/apt/sources.list.d/*.sources /etc/apt/sources.list 2>/dev/null || true; } |
    sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([^ ]+).*/\3/p' | sed -n 1p)
  debootstrap --variant=minbase "$release" "$root" ${mirror:+"$mirror"} >"$root.log" 2>&1 ||
    { echo "check_debian.sh: debootstrap failed; its last lines, of $root.log:" >&2 && tail -5 "$root.log" >&2 && exit 1; }
  cp /etc/apt/apt.conf.d/* "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
  cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
  touch "$root/.ready"
fi
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t sysfs sys "$root/sys"
mount --rbind /dev "$root/dev"

# The files that git knows, as they are here; times stay, so that a second call builds only what has changed.
mkdir -p "$root/lockstep"
known() { git ls-files -z --cached --others --exclude-standard; }
known | tar --null --ignore-failed-read -cf - -T - | tar -xf - -C "$root/lockstep"
# CMake would compile a source that is no longer here.
(cd "$root/lockstep" && find . -path ./build -prune -o ! -type d -printf "%P\0") | LC_ALL=C sort -z |
  LC_ALL=C comm -z -23 - <(while IFS= read -r -d '' file; do if [[ -e $file || -L $file ]]; then printf '%s\0' "$file"; fi; done < <(known) | LC_ALL=C sort -z) |
  (cd "$root/lockstep" && xargs -0r rm -f --)

run=(env -u LOCKSTEP_NAMESPACE_OUTSIDE HOME=/root DEBIAN_FRONTEND=noninteractive OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1)
# Not chroot: namespaces that tests make there would leave it again.
cd "$root"
pivot_root . .
umount -l .
cd /lockstep
# shellcheck disable=SC2016 # the inner shell expands these
"${run[@]}" bash -c 'scripts/setup.sh --tests >/tmp/setup.log 2>&1 || { tail -20 /tmp/setup.log; exit 1; }
  for package in g++ openmpi-bin libdnnl-dev libhdf5-dev; do
    printf "%s %s  " "$package" "$(dpkg-query -W -f "\${Version}" "$package")"
  done && echo'
exec "${run[@]}" "${command[@]}"
