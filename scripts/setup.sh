#!/usr/bin/env bash
# Installs what Lockstep is built and run with from the archive of Debian, or of RHEL 9 and its kin with EPEL and CRB; nothing is fetched
# from anywhere else. With everything in place it asks dpkg or rpm once and ends. Needs root or sudo only when something is missing.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: scripts/setup.sh [--tests] [--lint] [--slurm] [--containers] [--cross] [--platforms] [--check]
  (nothing)     compiler, MPI and the libraries: enough to build, train and run benchmarks
  --tests       also what the tests compare with: PyTorch, torchvision, h5py, NumPy, ONNX, clang-format,
                ShellCheck, JSON schemas, Protocol Buffers, gfortran, with which the Fortran modules are built, a browser
                for the pages of lockstep report and watch, zsh and fish, which read the completions, Graphviz for the
                pictures of lockstep inspect --svg, Doxygen, which makes the API reference, and man, which reads the pages;
                for root, who alone can run tests/cluster, also an ssh server, iproute2, nftables and faketime
  --lint        also clang-tidy, for scripts/tidy.sh
  --slurm       also Slurm and MUNGE, for the test that starts ranks with srun
  --containers  also buildah and debootstrap, for the test that builds container images
  --cross       also the cross compiler and the emulator with which scripts/check_aarch64.sh tests for AArch64
  --platforms   also clang and MPICH, for scripts/platforms.py; Open MPI stays the default
  --check       only say what is missing; exit 1 if anything is
On RHEL 9, Rocky, Alma and CentOS Stream 9 the script installs for building, training and benchmarks alone; docs/install.md tells the rest.
EOF
}

packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates python3
  libopenmpi-dev openmpi-bin libhwloc-dev openssh-client
  libopenblas-openmp-dev libdnnl-dev libhdf5-dev libxxhash-dev zlib1g-dev libminizip-dev libjpeg62-turbo-dev libpng-dev libarchive-dev libssl-dev curl
  libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libgtest-dev
)
check_only=false
more=false # than Debian's names are known for
for argument in "$@"; do
  case $argument in
    --tests | --lint | --slurm | --containers | --cross | --platforms) more=true ;;&
    --tests)
      packages+=(python3-yaml python3-numpy python3-h5py python3-torch python3-torchvision python3-onnx clang-format
        shellcheck zsh fish gfortran python3-jsonschema protobuf-compiler python3-protobuf chromium graphviz doxygen man-db)
      if ((EUID == 0)); then packages+=(openssh-server iproute2 nftables faketime); fi
      ;;
    --lint) packages+=(clang-tidy) ;;
    --slurm) packages+=(slurm-wlm munge libpmix-dev) ;;
    --containers) packages+=(buildah debootstrap) ;;
    --cross) packages+=(g++-aarch64-linux-gnu qemu-user-static) ;;
    --platforms) packages+=(clang mpich libmpich-dev) ;;
    --check) check_only=true ;;
    -h | --help) usage && exit 0 ;;
    *) echo "setup.sh: unknown argument '$argument'" >&2 && usage >&2 && exit 2 ;;
  esac
done

manager=apt
if command -v dpkg-query >/dev/null && command -v apt-get >/dev/null; then
  # dpkg-query prints nothing for a package it has never heard of, so compare with what was asked for.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
elif command -v rpm >/dev/null && command -v dnf >/dev/null; then
  manager=dnf
  if $more; then
    echo "setup.sh: --tests, --lint, --slurm, --containers, --cross and --platforms are for Debian; without them this script installs what builds and trains" >&2
    exit 2
  fi
  # Words with brackets are what a package provides, whatever its name in a release is. gcc is 11 there, and 12 is needed. oneDNN is not in
  # these archives.
  packages=(
    gcc-toolset-13 cmake ninja-build ccache pkgconf-pkg-config git ca-certificates python3
    openmpi-devel openmpi hwloc-devel openssh-clients
    openblas-devel hdf5-devel xxhash-devel zlib-devel 'pkgconfig(minizip)' libjpeg-turbo-devel libpng-devel libarchive-devel openssl-devel curl
    spdlog-devel fmt-devel 'cmake(CLI11)' 'cmake(nlohmann_json)'
    gtest-devel
  )
  # rpm answers a line for each word, in another language perhaps, and the status of all of them together.
  installed=$(for package in "${packages[@]}"; do
    if rpm -q --quiet --whatprovides "$package" 2>/dev/null; then echo "$package"; fi
  done)
else
  echo "setup.sh: this is neither a Debian system nor one with dnf; install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  grep -qxF -- "$package" <<<"$installed" || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  echo "setup.sh: nothing to install"
  exit 0
fi
if $check_only; then
  echo "setup.sh: missing: ${missing[*]}"
  exit 1
fi

# RHEL itself has neither epel-release nor the name crb. EPEL's package is Fedora's, and this script fetches from archives that the
# system knows already.
if [[ $manager == dnf ]]; then
  more_archives=('dnf install -y dnf-plugins-core epel-release' 'dnf config-manager --set-enabled crb')
  # Tests name another file.
  if grep -qE '^ID="?rhel"?$' "${LOCKSTEP_OS_RELEASE:-/etc/os-release}" 2>/dev/null; then
    if ! rpm -q --quiet epel-release 2>/dev/null; then
      echo "setup.sh: EPEL, which has some of the missing packages, is not known to this system; install EPEL's release package for RHEL 9, as EPEL's own guide says, then run this script again" >&2
      exit 1
    fi
    more_archives=("subscription-manager repos --enable codeready-builder-for-rhel-9-$(uname -m)-rpms")
  fi
fi

# Root needs no sudo; sudo may ask for a password only where somebody can type it.
as_root=()
if ((EUID != 0)); then
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    echo "setup.sh: packages are missing and neither root nor sudo is at hand; have this run once as root:" >&2
    if [[ $manager == apt ]]; then
      echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    else
      echo "  $(printf '%s && ' "${more_archives[@]}")dnf install -y ${missing[*]@Q}" >&2
    fi
    exit 1
  fi
fi
echo "setup.sh: installing ${missing[*]}"
if [[ $manager == dnf ]]; then
  for line in "${more_archives[@]}"; do
    # shellcheck disable=SC2086 # a command and its words
    "${as_root[@]}" $line
  done
  "${as_root[@]}" dnf install -y --setopt=install_weak_deps=False "${missing[@]}"
  echo "setup.sh: before CMake: source /opt/rh/gcc-toolset-13/enable; module load mpi/openmpi-x86_64; and -DLOCKSTEP_WITH_ONEDNN=OFF"
  exit 0
fi
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}"
