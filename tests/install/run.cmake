# BUILD: the tree to install from; SOURCE: the checkout; WORK: a folder for the installation and its user.
cmake_minimum_required(VERSION 3.25)
set(prefix ${WORK}/prefix)
set(documentation ${prefix}/share/doc/lockstep)
file(REMOVE_RECURSE ${prefix} ${WORK}/consumer ${WORK}/run)
set(flags "")
if(SANITIZE)
  set(flags -fsanitize=${SANITIZE})
endif()

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "status ${status}: ${ARGN}\n${output}")
  endif()
endfunction()

# An installation works from any folder: it is laid down in one, moved, and all that follows knows the second one alone.
file(REMOVE_RECURSE ${WORK}/first)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${prefix})
file(GLOB_RECURSE names_a_folder ${prefix}/lib*/cmake/*.cmake)
foreach(file ${names_a_folder})
  file(READ ${file} text)
  string(FIND "${text}" "${WORK}" found)
  if(NOT found EQUAL -1)
    message(FATAL_ERROR "${file} names the folder of the installation, ${WORK}")
  endif()
endforeach()
foreach(file share/lockstep/train.sh share/lockstep/run_cluster.sh share/lockstep/setup_ssh.sh
    share/bash-completion/completions/lockstep share/zsh/site-functions/_lockstep share/fish/vendor_completions.d/lockstep.fish
    share/man/man1/lockstep.1 share/man/man1/lockstep-run.1 share/man/man1/train_resnet.1 share/lockstep/slurm.sbatch share/lockstep/containers/start share/lockstep/hostfiles/localhost share/lockstep/recipes/resnet50_cifar10.toml
    share/doc/lockstep/README.md
    share/doc/lockstep/docs/guide.md share/doc/lockstep/examples/CMakeLists.txt share/doc/lockstep/examples/surrogate.cpp)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "${file} is not installed")
  endif()
endforeach()
if(EXISTS ${SOURCE}/LICENSE AND NOT EXISTS ${documentation}/LICENSE)
  message(FATAL_ERROR "LICENSE is not installed")
endif()
# Links of the documentation lead to what is installed; the tests alone are not.
file(GLOB pages ${documentation}/*.md ${documentation}/docs/*.md)
foreach(page ${pages})
  cmake_path(GET page PARENT_PATH folder)
  file(STRINGS ${page} lines REGEX "\\]\\([A-Za-z./]+[)#]")
  string(REGEX MATCHALL "\\]\\([A-Za-z0-9_./-]+" links "${lines}")
  string(REPLACE "](" "" links "${links}")  # a bracket alone would hold the list together
  foreach(target ${links})
    if(NOT target MATCHES "^\\.\\./tests/" AND NOT EXISTS ${folder}/${target})
      message(FATAL_ERROR "${page}: ${target} is not installed")
    endif()
  endforeach()
endforeach()

# As docs/guide.md tells: the examples by themselves, and a project that knows Lockstep as a package alone.
run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/consumer -B ${WORK}/consumer -G ${GENERATOR} -D CMAKE_BUILD_TYPE=${CONFIG}
  -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER}
  -D CMAKE_CXX_FLAGS=${flags} -D EXAMPLES=${documentation}/examples)
run(${CMAKE_COMMAND} --build ${WORK}/consumer --target custom_op infer headers)
run(${WORK}/consumer/examples/custom_op)
run(${prefix}/bin/lockstep-data check digits)
# The installed program trains, started as train.sh starts a rank, and the user's program reads what it left.
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
run(${prefix}/share/lockstep/train.sh ${prefix}/bin/train_mnist --model mlp --max-steps 20 --eval-every 0 --quiet --output ${WORK}/run)
run(${WORK}/consumer/examples/infer ${WORK}/run)
# What is wrong ends a user's program with one line, and no stack.
execute_process(COMMAND ${WORK}/consumer/examples/infer ${WORK}/absent RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 1 OR NOT output STREQUAL "infer: [infer] no whole checkpoint in ${WORK}/absent/checkpoints\n")
  message(FATAL_ERROR "infer of an absent run: status ${status}, ${output}")
endif()

# The C library and the Fortran modules, from a tree that was moved, by projects without C++: by package and by pkg-config.
if(EXISTS ${prefix}/include/lockstep_c.h)
  set(moved ${WORK}/moved)
  file(REMOVE_RECURSE ${moved} ${WORK}/c_consumer)
  file(RENAME ${prefix} ${moved})
  run(${CMAKE_COMMAND} -S ${CMAKE_CURRENT_LIST_DIR}/c_consumer -B ${WORK}/c_consumer -G ${GENERATOR} -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_PREFIX_PATH=${moved} -D CMAKE_C_FLAGS=${flags} -D CMAKE_Fortran_FLAGS=${flags} -D SOURCES=${SOURCE}/tests/bindings)
  run(${CMAKE_COMMAND} --build ${WORK}/c_consumer)
  run(${WORK}/c_consumer/c_consumer ${WORK})
  if(EXISTS ${WORK}/c_consumer/fortran_consumer)
    run(${WORK}/c_consumer/fortran_consumer ${WORK})
  endif()
  file(GLOB_RECURSE file ${moved}/*/lockstep_c.pc)
  cmake_path(GET file PARENT_PATH folder)
  # With MPI's compilers and what pkg-config says, as docs/in_situ.md compiles the heat example, which has `use mpi_f08`.
  set(examples ${moved}/share/doc/lockstep/examples)
  set(ENV{OMP_NUM_THREADS} 1)
  foreach(module lockstep_c lockstep_fortran)
    if(NOT EXISTS ${folder}/${module}.pc)
      continue()  # without a Fortran compiler
    endif()
    if(module STREQUAL lockstep_c)
      set(compile ${MPICC} -std=c99 -O2 ${SOURCE}/tests/bindings/consumer.c)
      set(arguments ${WORK})
    else()
      set(compile ${MPIFORT} -O2 -J${WORK} ${examples}/heat/surrogate.f90 ${examples}/heat/heat.f90)
      set(arguments --cells 8 --steps 3)
    endif()
    execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} pkg-config --cflags --libs ${module}
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(NOT status EQUAL 0 OR NOT output MATCHES "-I.*-l${module}")
      message(FATAL_ERROR "pkg-config ${module}: status ${status}, ${output}")
    endif()
    separate_arguments(words UNIX_COMMAND "${output} ${flags}")
    cmake_path(GET folder PARENT_PATH libraries)
    run(${compile} ${words} -lm -Wl,-rpath,${libraries} -o ${WORK}/by_${module})
    run(${WORK}/by_${module} ${arguments})
  endforeach()
endif()
