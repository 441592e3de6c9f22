#!/usr/bin/env bash
# Makes the API reference in HTML, with Doxygen: the public headers, and the pages of docs/. Exits 1 if Doxygen warns,
# 77 without Doxygen.
set -euo pipefail

if [[ ${1:-} == -* || $# -gt 1 ]]; then
  [[ ${1:-} == -h || ${1:-} == --help ]] || exec >&2
  echo "Usage: scripts/reference.sh [OUTPUT]     writes OUTPUT/html/index.html; OUTPUT is build/reference unless given"
  [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
  exit 2
fi
if ! command -v doxygen >/dev/null; then
  echo "reference.sh: doxygen is not installed; scripts/setup.sh --tests installs it" >&2
  exit 77
fi
output=$(realpath -m "${1:-$(dirname "$0")/../build/reference}")
cd "$(dirname "$0")/.."
mkdir -p "$output"

# The headers that cmake --install lays down: the public ones, and those that they include.
declare -A known=()
mapfile -t open < <(sed -n 's|^  \(lockstep/[^ )]*\.h\).*|framework/\1|p' cmake/public_headers.cmake; ls models/zoo/*.h data/datasets/*.h)
while ((${#open[@]} > 0)); do
  for header in "${open[@]}"; do known[$header]=1; done
  mapfile -t included < <(sed -n 's|^#include "\(lockstep/[^"]*\)".*|framework/\1|p' "${open[@]}" | sort -u)
  open=()
  for header in "${included[@]}"; do
    [[ -n ${known[$header]:-} ]] || open+=("$header")
  done
done
for header in bindings/c/include/*.h; do known[$header]=1; done
mapfile -t headers < <(printf '%s\n' "${!known[@]}" | sort)

# Doxygen splits values at spaces, so none of these paths has one.
doxygen - <<END
$(cat docs/Doxyfile)
OUTPUT_DIRECTORY = "$output"
INPUT = README.md CONTRIBUTING.md docs ${headers[*]} bindings/fortran
FILE_PATTERNS = *.md *.f90
FILTER_PATTERNS = "*.h=awk -f scripts/reference_headers.awk" "*.md=awk -f scripts/reference_pages.awk" "*.f90=awk -f scripts/reference_fortran.awk"
END
echo "reference.sh: ${#headers[@]} headers: $output/html/index.html"
