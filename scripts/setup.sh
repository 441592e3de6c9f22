#!/usr/bin/env bash
# Installs what Lockstep is built and run with from Debian's archive; nothing is fetched from anywhere else.
# With everything in place it asks dpkg once and ends. Needs root or sudo only when something is missing.
set -euo pipefail

usage() {
  cat <<'EOF'
Usage: scripts/setup.sh [--tests] [--lint] [--slurm] [--containers] [--cross] [--check]
  (nothing)     compiler, MPI and the libraries: enough to build, train and run benchmarks
  --tests       also what the tests compare with: PyTorch, torchvision, h5py, NumPy, clang-format, ShellCheck,
                JSON schemas, Protocol Buffers, gfortran, with which the Fortran modules are built, and a browser
                for the pages of lockstep report and watch, and Doxygen, which makes the API reference;
                for root, who alone can run tests/cluster, also an ssh server, iproute2, nftables and faketime
  --lint        also clang-tidy, for scripts/tidy.sh
  --slurm       also Slurm and MUNGE, for the test that starts ranks with srun
  --containers  also buildah and debootstrap, for the test that builds container images
  --cross       also the cross compiler with which scripts/check_aarch64.sh compiles for AArch64
  --check       only say what is missing; exit 1 if anything is
EOF
}

packages=(
  g++ cmake ninja-build ccache pkg-config git ca-certificates
  libopenmpi-dev openmpi-bin libhwloc-dev openssh-client
  libopenblas-openmp-dev libdnnl-dev libhdf5-dev libxxhash-dev zlib1g-dev libminizip-dev libjpeg62-turbo-dev libpng-dev libarchive-dev libssl-dev curl
  libspdlog-dev libfmt-dev libcli11-dev nlohmann-json3-dev
  libgtest-dev libbenchmark-dev
  ocl-icd-opencl-dev # unused, but the CMake files of Debian's oneDNN, built with OpenCL, look for it
)
check_only=false
for argument in "$@"; do
  case $argument in
    --tests)
      packages+=(python3 python3-yaml python3-numpy python3-h5py python3-torch python3-torchvision clang-format shellcheck gfortran
        python3-jsonschema protobuf-compiler python3-protobuf chromium doxygen)
      if ((EUID == 0)); then packages+=(openssh-server iproute2 nftables faketime); fi
      ;;
    --lint) packages+=(clang-tidy) ;;
    --slurm) packages+=(slurm-wlm munge libpmix-dev) ;;
    --containers) packages+=(buildah debootstrap) ;;
    --cross) packages+=(g++-aarch64-linux-gnu) ;;
    --check) check_only=true ;;
    -h | --help) usage && exit 0 ;;
    *) echo "setup.sh: unknown argument '$argument'" >&2 && usage >&2 && exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup.sh: this is not a Debian system; install the equivalents of: ${packages[*]}" >&2
  exit 1
fi

# dpkg-query prints nothing for a package it has never heard of, so compare with what was asked for.
installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${packages[@]}" 2>/dev/null | sed -n 's/^installed //p' || true)
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

# Root needs no sudo; sudo may ask for a password only where somebody can type it.
as_root=()
if ((EUID != 0)); then
  if command -v sudo >/dev/null && { [[ -t 0 ]] || sudo -n true 2>/dev/null; }; then
    as_root=(sudo)
  else
    echo "setup.sh: packages are missing and neither root nor sudo is at hand; have this run once as root:" >&2
    echo "  apt-get update && apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi
echo "setup.sh: installing ${missing[*]}"
apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
"${apt[@]}" update
"${apt[@]}" install -y --no-install-recommends "${missing[@]}"
