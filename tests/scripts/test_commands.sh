#!/usr/bin/env bash
# setup.sh, test.sh, quickstart.sh and the source checks, with stand-ins for what they start:
# test_commands.sh SOURCE_DIR CASE
# shellcheck disable=SC2016  # stand-ins expand what they are given when they run
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/expect.sh"
cd "$1"
unset LOCKSTEP_TEST_DATA LOCKSTEP_PRESET

all_installed='for name in "$@"; do [[ $name == -* || $name == *Status* ]] || echo "installed $name"; done'
copy_tree() { # the scripts in a tree of their own, where they may make directories
  mkdir -p "$scratch/tree"
  cp -r scripts "$scratch/tree/"
  cd "$scratch/tree"
}

case_setup() {
  stub dpkg-query "$all_installed"
  stub apt-get 'echo "apt-get called: $*"'
  stub sudo 'exit 1'
  export PATH=$scratch/bin:$PATH
  run scripts/setup.sh --tests --lint --slurm
  expect_status 0
  expect_line 'nothing to install' 1
  expect_no_line 'apt-get called'
  run scripts/setup.sh --everything
  expect_status 2

  stub dpkg-query "$all_installed | grep -v -e ninja -e libdnnl"
  run scripts/setup.sh --check
  expect_status 1
  expect_line 'missing: ninja-build libdnnl-dev$' 1
  expect_no_line 'apt-get called'
  # Somebody who may not install is told the line to have run.
  as_nobody=()
  if ((EUID == 0)); then
    chmod -R a+rX "$scratch"
    cp scripts/setup.sh "$scratch/setup.sh"
    as_nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  else
    cp scripts/setup.sh "$scratch/setup.sh"
  fi
  run "${as_nobody[@]}" "$scratch/setup.sh"
  expect_status 1
  expect_line 'apt-get install -y --no-install-recommends ninja-build libdnnl-dev$' 1
  expect_no_line 'apt-get called'
  if ((EUID == 0)); then
    run scripts/setup.sh
    expect_status 0
    expect_line 'apt-get called: .*update$' 1
    expect_line 'apt-get called: .*install -y --no-install-recommends ninja-build libdnnl-dev$' 1
  fi
}

case_setup_dnf() { # RHEL 9: no dpkg, and rpm knows packages also by what they provide
  local tool
  mkdir -p "$scratch/bin"
  for tool in bash env grep sed cat uname; do ln -s "$(command -v "$tool")" "$scratch/bin/$tool"; done
  stub dnf 'echo "dnf called: $*"'
  stub rpm 'for name in "$@"; do :; done; [[ $name != fmt-devel && $name != *minizip* ]]'
  run env PATH="$scratch/bin" scripts/setup.sh --check
  expect_status 1
  expect_line 'missing: pkgconfig.minizip. fmt-devel$' 1
  expect_no_line 'dnf called'
  run env PATH="$scratch/bin" scripts/setup.sh --tests
  expect_status 2
  expect_line 'are for Debian' 1
  if ((EUID == 0)); then
    run env PATH="$scratch/bin" scripts/setup.sh
    expect_status 0
    expect_line 'dnf called: install -y dnf-plugins-core epel-release$' 1
    expect_line 'dnf called: install -y .*pkgconfig.minizip. fmt-devel$' 1
    expect_line 'DLOCKSTEP_WITH_ONEDNN=OFF' 1
  fi
  # RHEL itself has no epel-release to install, and another name for CRB.
  printf 'NAME="Red Hat Enterprise Linux"\nID="rhel"\nID_LIKE="fedora"\n' >"$scratch/os-release"
  stub subscription-manager 'echo "subscription-manager called: $*"'
  if ((EUID == 0)); then
    run env PATH="$scratch/bin" LOCKSTEP_OS_RELEASE="$scratch/os-release" scripts/setup.sh
    expect_status 0
    expect_line "subscription-manager called: repos --enable codeready-builder-for-rhel-9-$(uname -m)-rpms$" 1
    expect_line 'dnf called: install -y .*pkgconfig.minizip. fmt-devel$' 1
    expect_no_line 'epel-release|config-manager'
  fi
  stub rpm 'for name in "$@"; do :; done; [[ $name != fmt-devel && $name != epel-release ]]'
  run env PATH="$scratch/bin" LOCKSTEP_OS_RELEASE="$scratch/os-release" scripts/setup.sh
  expect_status 1
  expect_line "install EPEL's release package for RHEL 9" 1
  expect_no_line '(dnf|subscription-manager) called'
  stub rpm 'exit 0'
  run env PATH="$scratch/bin" scripts/setup.sh
  expect_status 0
  expect_line 'nothing to install' 1
}

case_tiers() {
  stub dpkg-query "$all_installed"
  stub cmake 'exit 0'
  stub ctest 'echo "ctest called: $*"; exit ${CTEST_STATUS:-0}'
  export PATH=$scratch/bin:$PATH
  copy_tree
  run scripts/test.sh
  expect_status 0
  expect_line 'ctest called: --test-dir build/release .*-LE \^long\$$' 1
  run scripts/test.sh quick -R core
  expect_line 'ctest called: .*-L \^quick\$ -R core$' 1
  run scripts/test.sh long
  expect_line 'ctest called: .*-L \^long\$$' 1
  run scripts/test.sh -R core # no tier given
  expect_line 'ctest called: .*-LE \^long\$ -R core$' 1
  run env LOCKSTEP_PRESET=asan scripts/test.sh
  expect_line 'ctest called: --test-dir build/asan ' 1
  run env CTEST_STATUS=8 scripts/test.sh
  expect_status 8
  [[ ${output##*$'\n'} == 'ctest called'* ]] || die "something is printed after ctest"
  run scripts/test.sh fast
  expect_status 2
  run env LOCKSTEP_TEST_DATA="$scratch/absent" scripts/test.sh
  expect_status 2
  expect_line "LOCKSTEP_TEST_DATA is '.*absent', expected a directory"
}

case_quickstart() {
  stub dpkg-query "$all_installed"
  stub cmake 'exit 0'
  # Trains to $ACCURACY: the last evaluation counts, and neither the first one nor a training step.
  stub mpirun '[[ $1 != --version ]] || { echo "mpirun (Open MPI) 4.1.4" && exit 0; }
while (($# > 1)); do [[ $1 != --output ]] || output=$2; shift; done
{ echo "{\"accuracy\":0.1,\"epoch\":1,\"split\":\"eval\",\"step\":10}"
  echo "{\"accuracy\":$ACCURACY,\"epoch\":3,\"split\":\"eval\",\"step\":30}"
  echo "{\"accuracy\":0.2,\"epoch\":3,\"split\":\"train\",\"step\":30}"; } >"$output/metrics.jsonl"'
  export PATH=$scratch/bin:$PATH
  copy_tree
  run env ACCURACY=0.985 scripts/quickstart.sh
  expect_status 0
  expect_line 'test accuracy 98.50%, at least 97% expected: reached$' 1
  touch runs/quickstart/left-over
  run env ACCURACY=0.9699 scripts/quickstart.sh # again, and not good enough
  expect_status failure
  expect_line 'test accuracy 96.99%, at least 97% expected: MISSED$' 1
  [[ ! -e runs/quickstart/left-over ]] || die "the earlier run's directory was not replaced"
  rm runs/quickstart/.quickstart
  run env ACCURACY=0.99 scripts/quickstart.sh # a directory of somebody else's
  expect_status 1
  expect_line 'was not made by this script'
  [[ -e runs/quickstart/metrics.jsonl ]] || die "a directory that the script had not made was removed"
}

case_dependencies() {
  run scripts/check_dependencies.sh
  expect_status 0
}

case_dependencies_fail() { # every rule must be able to fail
  local place include bad=$scratch/bad good=$scratch/good breaches=()
  # A sample and the one line that it has to bring. All are checked in one run: each has a file of its own.
  sample() { # FILE TEXT EXPECTED
    local file=${1%.*}${#breaches[@]}.${1##*.}
    mkdir -p "$bad/$(dirname "$file")"
    printf '%b' "$2" >"$bad/$file"
    breaches+=("^$file:$3")
  }
  while read -r place include; do
    sample "$place" "// a sample\\n#include $include\\n" '[12]: '
  done <<'EOF'
framework/lockstep/core/a.h "lockstep/graph/node.h"
framework/lockstep/graph/a.h "lockstep/ops/op.h"
framework/lockstep/ops/a.cpp "lockstep/kernels/registry.h"
framework/lockstep/kernels/a.cpp "lockstep/plan/plan.h"
framework/lockstep/nn/a.h "lockstep/plan/plan.h"
framework/lockstep/comm/a.h "lockstep/parallel/tree.h"
framework/lockstep/optim/a.h <lockstep/comm/communicator.h>
framework/lockstep/parallel/a.cpp "lockstep/data/sampler.h"
framework/lockstep/data/a.cpp "lockstep/parallel/gradient_engine.h"
framework/lockstep/metrics/a.cpp "lockstep/nn/module.h"
framework/lockstep/losses/a.cpp "lockstep/nn/module.h"
framework/lockstep/checkpoint/a.cpp "lockstep/nn/module.h"
framework/lockstep/checkpoint/a.cpp <hdf5.h>
framework/lockstep/infer/a.cpp "lockstep/train/run/session.h"
framework/lockstep/io/a.cpp "lockstep/checkpoint/file.h"
framework/lockstep/train/run/a.cpp "models/zoo/resnet.h"
framework/lockstep/train/a.cpp "lockstep/core/tensor.h"
framework/lockstep/train/cellar/a.cpp "lockstep/core/tensor.h"
framework/lockstep/train/monitor/a.cpp "lockstep/train/report/log.h"
framework/lockstep/train/report/a.cpp "lockstep/train/step/trainer.h"
framework/lockstep/train/step/a.h "lockstep/train/callbacks/callback.h"
framework/lockstep/train/step/a.h "lockstep/train/options/options.h"
framework/lockstep/train/guard/a.h "lockstep/train/step/evaluator.h"
framework/lockstep/train/callbacks/a.cpp "lockstep/train/run/session.h"
framework/lockstep/kernels/native/a.h "lockstep/kernels/generic/fourier.h"
framework/lockstep/kernels/common/a.h "lockstep/kernels/native/tables.h"
framework/lockstep/parallel/tree/a.h "lockstep/parallel/exchange/transport.h"
framework/lockstep/parallel/exchange/a.h "lockstep/parallel/reduce/bucket_reducer.h"
framework/lockstep/extra/a.cpp "lockstep/core/tensor.h"
framework/lockstep/core/a.cpp "tensor.h"
framework/lockstep/data/b.cpp "../core/tensor.h"
framework/lockstep/parallel/b.h <mpi.h>
framework/lockstep/train/run/b.h <hdf5.h>
framework/lockstep/data/idx.cpp <hdf5_hl.h>
framework/lockstep/kernels/generic/a.cpp <dnnl.hpp>
framework/lockstep/kernels/b.cpp <oneapi/dnnl/dnnl.hpp>
models/train_a.cpp <mpi.h>
models/zoo/a.h "tools/tool.h"
models/zoo/a.h "data/datasets/digits.h"
framework/lockstep/train/run/a.cpp "data/datasets/digits.h"
data/datasets/a.cpp "models/zoo/resnet.h"
data/datasets/a.cpp "lockstep/train/run/session.h"
data/generate/a.cpp "lockstep/parallel/gradient_engine.h"
data/tool/a.cpp "lockstep/plan/plan.h"
models/zoo/a.cpp "lockstep/train/run/session.h"
tools/launcher/a.cpp "lockstep/train/run/session.h"
tools/watch/a.cpp "lockstep/plan/plan.h"
EOF
  local namespace
  while read -r place namespace; do
    sample "$place" "namespace $namespace {\\n" "1: opens namespace $namespace, expected lockstep"
  done <<'EOF'
framework/lockstep/comm/a.h lockstep
framework/lockstep/comm/a.h lockstep::parallel
framework/lockstep/graph/a.h lockstep::plan
models/zoo/a.h lockstep
models/recsys/a.h lockstep::models
data/datasets/a.h lockstep::data
data/tool/a.cpp lockstep
tools/a.h lockstep::train
tools/launcher/a.h lockstep::tools
bindings/c/a.h lockstep
EOF
  sample framework/lockstep/graph/a.h 'namespace lockstep::plan {\nclass Plan;\nclass Other {};\n}\n' \
    '1: opens namespace lockstep::plan, expected lockstep'
  run scripts/check_dependencies.sh "$bad"
  expect_status 1
  local line
  for line in "${breaches[@]}"; do expect_line "$line" 1; done
  expect_line '^[^:]*:[0-9]+: ' "${#breaches[@]}" # and nothing else
  # What the table allows passes, forward declarations too.
  mkdir -p "$good/framework/lockstep/graph"
  printf 'namespace lockstep::plan {\nclass Plan;\nstruct Step;\n}\n' >"$good/framework/lockstep/graph/a.h"
  while read -r place include; do
    mkdir -p "$good/$(dirname "$place")"
    printf '#include %s\n' "$include" >"$good/$place"
  done <<'EOF'
framework/lockstep/comm/good.cpp <mpi.h>
framework/lockstep/io/good.cpp <hdf5.h>
framework/lockstep/kernels/onednn/good.cpp <dnnl.hpp>
framework/lockstep/kernels/good.cpp "lockstep/ops/op.h"
framework/lockstep/kernels/registry_good.cpp "lockstep/kernels/onednn/pooling.h"
framework/lockstep/kernels/generic/good.h "lockstep/kernels/native/tables.h"
framework/lockstep/kernels/common/good.h "lockstep/kernels/kernel.h"
framework/lockstep/parallel/good.cpp "lockstep/comm/communicator.h"
framework/lockstep/train/run/good.cpp "lockstep/parallel/engine.h"
framework/lockstep/train/callbacks/good.cpp "lockstep/train/step/trainer.h"
framework/lockstep/parallel/good.h "lockstep/parallel/reduce/bucket_reducer.h"
models/good.cpp "lockstep/train/run/session.h"
models/train_good.cpp "data/datasets/catalogue.h"
data/datasets/good.cpp "lockstep/data/dataset.h"
tools/good.cpp "lockstep/train/run/session.h"
tools/launcher/good.cpp "lockstep/launch/hosts.h"
EOF
  run scripts/check_dependencies.sh "$good"
  expect_status 0
}

fresh_tree() { # $scratch/tree is what $scratch/whole is, by links: a row may remove a file or put another in its place, not write into it
  rm -rf "$scratch/tree"
  cp -rl "$scratch/whole" "$scratch/tree"
}

case_contributing() { # the table of CONTRIBUTING.md, and that each of its checks can fail
  command -v python3 >/dev/null || { echo "SKIP: there is no python3" && exit 77; }
  run tests/scripts/check_contributing.py .
  expect_status 0
  local file command line
  mkdir -p "$scratch/whole/tests"
  cp -r CONTRIBUTING.md docs framework models data "$scratch/whole/"
  cp -r tests/ops tests/optim tests/system tests/cluster tests/chaos tests/parity "$scratch/whole/tests/"
  while IFS='|' read -r file command line; do
    fresh_tree
    (cd "$scratch/tree" && bash -c "$command" -- "$file")
    run tests/scripts/check_contributing.py "$scratch/tree"
    expect_status 1
    expect_line "$line"
  done <<'EOF'
models/zoo/registry.cpp|rm "$1"|^CONTRIBUTING.md: model: there is no models/zoo/registry.cpp
models/zoo/registry.cpp|sed -i /vgg/d "$1"|^models/zoo/vgg.h: neither models/zoo/registry.cpp nor field_model.cpp has a line for it$
models/zoo/vgg.cpp|rm "$1"|^models/zoo: a registry includes vgg.h, and there is no vgg.h with a .cpp$
data/datasets/catalogue.cpp|sed -i "s/npy_entry(),//" "$1"|^data/datasets/npy.h: npy_entry\(\) is not in data/datasets/catalogue.cpp$
data/datasets/mnist.h|sed -i /mnist_entry/d "$1"|^data/datasets/catalogue.cpp: no header declares mnist_entry
docs/data.md|sed -i "/^. .npy. ./d" "$1"|^docs/data.md: no row for the data set npy$
framework/lockstep/ops/softmax.h|sed -i s/softmax_gradient/softmax_derivative/ "$1"|^framework/lockstep/ops/softmax.h: no generic kernel has a row for softmax_derivative$
framework/lockstep/ops/derivatives.cpp|sed -i /matmul/d "$1"|^framework/lockstep/ops/linear.h: ops/derivatives.cpp has no row for matmul$
framework/lockstep/ops/pointwise.cpp|sed -i '/"gelu"/d' "$1"|^ops/pointwise.cpp: no function of Values applies gelu$
docs/commands.md|sed -i "/^. 75 /d" "$1"|^docs/commands.md: there is no row '. 75
tests/optim/test_rules.cpp|sed -i "s/adam(/adm(/g" tests/optim/*.cpp|^tests/optim: no test of the rule adam$
tests/system/CMakeLists.txt|sed -i "/(fields NotFinite /d" "$1"|^tests/system/CMakeLists.txt: no line for the class NotFinite of test_fields.py$
tests/parity/CMakeLists.txt|sed -i "s/ ViTTiny / /" "$1"|^tests/parity/CMakeLists.txt: no test has the class ViTTiny of rows_models.py$
tests/parity/rows_fields.py|sed -i "s/class FieldModels/class Fields/" "$1"|^tests/parity/CMakeLists.txt: no rows_\*.py has a class FieldModels with tests$
tests/system/test_fields.py|sed -i "s/class NotFinite/class Infinite/" "$1"|^tests/system/CMakeLists.txt: test_fields.py has no class NotFinite with tests$
EOF
}

case_recipes() { # packages' recipes agree with CMakeLists.txt, and each of the checks can fail
  command -v python3 >/dev/null || { echo "SKIP: there is no python3" && exit 77; }
  run tests/scripts/check_recipes.py .
  expect_status 0
  local file command line
  mkdir -p "$scratch/whole"
  find CMakeLists.txt cmake packaging scripts/setup.sh framework data models tools examples tests bench -type f \
    '(' -name CMakeLists.txt -o -name '*.cmake' -o -path 'packaging/*' -o -path scripts/setup.sh -o -path 'models/train_*.cpp' ')' \
    -exec cp --parents -t "$scratch/whole" {} +
  while IFS='|' read -r file command line; do
    fresh_tree
    (cd "$scratch/tree" && bash -c "$command" -- "$file")
    run tests/scripts/check_recipes.py "$scratch/tree"
    expect_status 1
    expect_line "$line"
  done <<'EOF'
CMakeLists.txt|sed -i s/LOCKSTEP_WITH_ONEDNN/LOCKSTEP_ONEDNN/ "$1"|^packaging/spack/.*: the option LOCKSTEP_WITH_ONEDNN is not declared$
CMakeLists.txt|sed -i "s/VERSION 0.1.0/VERSION 0.2.0/" "$1"|^packaging/easybuild/.*: version 0.1.0, and CMakeLists.txt has 0.2.0$
CMakeLists.txt|sed -i "s/VERSION 3.25/VERSION 3.30/" "$1"|^packaging/easybuild/.*: CMake 3.29.3, expected 3.30 or newer$
CMakeLists.txt|sed -i "\$a find_package(Boost)" "$1"|^CMake looks for Boost
CMakeLists.txt|sed -i "/find_package(OpenSSL/d" "$1"|^packaging/spack/.*: openssl is named, and CMake does not look for it$
CMakeLists.txt|sed -i "\$a include(FetchContent)" "$1"|^CMakeLists.txt: FetchContent: nothing is fetched
packaging/spack/packages/lockstep/package.py|sed -i /hwloc/d "$1"|^packaging/spack/.*: hwloc is missing
packaging/spack/packages/lockstep/package.py|sed -i s/onednn@2.6:3/onednn@2.6:4/ "$1"|^packaging/spack/.*: onednn@2.6:4, expected @2.6:3
packaging/easybuild/lockstep-0.1.0-foss-2024a.eb|sed -i /xxHash/d "$1"|^packaging/easybuild/.*: xxHash is missing
scripts/setup.sh|sed -i s/python3$// "$1"|^scripts/setup.sh: python3 is missing in the list for Debian
scripts/setup.sh|sed -i s/hdf5-devel// "$1"|^scripts/setup.sh: hdf5-devel is missing in the list for RHEL
EOF
}

case_check_debian() { # --remove deletes a chroot that the script has made, and no other folder
  ((EUID == 0)) || { echo "SKIP: needs root" && exit 77; }
  stub debootstrap 'exit 1'
  mkdir "$scratch/mine"
  touch "$scratch/mine/file"
  run env PATH="$scratch/bin:$PATH" scripts/check_debian.sh trixie --root "$scratch/mine" --remove
  expect_status 1
  expect_line 'mine has no file .ready, so it is no chroot that this script finished; nothing was removed' 1
  [[ -e $scratch/mine/file ]] || die "a folder of the user's was removed"
  touch "$scratch/mine/.ready"
  run env PATH="$scratch/bin:$PATH" scripts/check_debian.sh trixie --root "$scratch/mine" --remove
  expect_status 0
  [[ ! -e $scratch/mine ]] || die "the chroot is still there"
}

case_slurm_requests() { # a request to stop has the job queued again; scancel, which sends TERM, ends it also after other requests
  local row signal job
  stub srun 'trap "exit 75" USR2; trap : USR1; touch ready; for ((i = 0; i < 600; i++)); do sleep 0.1; done'
  stub scontrol 'echo "scontrol called: $*"'
  stub squeue 'exit 1'
  for row in USR2:1 TERM:0 'USR1 TERM:0'; do
    rm -f "$scratch/ready"
    env PATH="$scratch/bin:$PATH" SLURM_JOB_ID=7 SLURM_SUBMIT_DIR="$scratch" bash scripts/slurm.sbatch >"$scratch/log" 2>&1 &
    job=$!
    until [[ -e $scratch/ready ]]; do
      kill -0 "$job" || { run cat "$scratch/log" && die "slurm.sbatch ended by itself"; }
      sleep 0.05
    done
    for signal in ${row%:*}; do kill -"$signal" "$job"; done
    status=0
    wait "$job" || status=$?
    expect_status 75
    output=$row$'\n'$(<"$scratch/log")
    expect_line 'scontrol called: requeue 7$' "${row#*:}"
    expect_line 'slurm.sbatch: cancelled; stopped with a checkpoint' $((1 - ${row#*:}))
  done
}

case_shellcheck() {
  command -v shellcheck >/dev/null || { echo "SKIP: shellcheck is not installed" && exit 77; }
  local file files=()
  while IFS= read -r -d '' file; do
    if [[ $(head -c 64 "$file" | tr -d '\0') =~ ^'#!'.*(bash|/sh) ]]; then files+=("$file"); fi
  done < <(find scripts containers tests data tools .ci -type f '(' -name '*.sh' -o -name '*.sbatch' -o ! -name '*.*' ')' -print0 2>/dev/null)
  ((${#files[@]} > 5)) || die "found only ${#files[@]} scripts"
  run shellcheck -x -P SCRIPTDIR "${files[@]}"
  expect_status 0
}

"case_$2"
