# Finds a BLAS with the Fortran interface as the target lockstep::blas, here and in the installed package: the one that LOCKSTEP_BLAS
# names, as CMake's BLA_VENDOR does (Generic, FlexiBLAS, FLAME, Intel10_64lp, ...); without a name, OpenBLAS where pkg-config knows it,
# else what FindBLAS finds. Where there is none, LOCKSTEP_REQUIRED says whether that is an error: REQUIRED, or QUIET for no target.
if(TARGET lockstep::blas)
  return()  # a project may find the package several times
endif()
if(NOT LOCKSTEP_BLAS)
  pkg_check_modules(OPENBLAS QUIET IMPORTED_TARGET openblas)
endif()
if(TARGET PkgConfig::OPENBLAS)
  set(lockstep_blas PkgConfig::OPENBLAS)
else()
  if(LOCKSTEP_BLAS)
    set(BLA_VENDOR ${LOCKSTEP_BLAS})
  endif()
  set(BLA_SIZEOF_INTEGER 4)
  find_package(BLAS ${LOCKSTEP_REQUIRED})
  if(NOT BLAS_FOUND)
    return()
  endif()
  set(lockstep_blas ${BLAS_LINKER_FLAGS} ${BLAS_LIBRARIES})
endif()
add_library(lockstep::blas INTERFACE IMPORTED)
target_link_libraries(lockstep::blas INTERFACE ${lockstep_blas})
