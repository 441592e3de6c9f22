# Finds HDF5's C library as the target PkgConfig::HDF5, here and in the installed package: by pkg-config where the library has a file
# for it (Debian: hdf5-serial; builds by CMake: hdf5), else as FindHDF5 does (Red Hat, EasyBuild: built by autotools).
# LOCKSTEP_REQUIRED is that of lockstepFindBlas.cmake.
pkg_search_module(HDF5 QUIET IMPORTED_TARGET hdf5-serial hdf5)
if(NOT TARGET PkgConfig::HDF5)
  find_package(HDF5 ${LOCKSTEP_REQUIRED} COMPONENTS C)
  if(NOT HDF5_FOUND)
    return()
  endif()
  add_library(PkgConfig::HDF5 INTERFACE IMPORTED)
  set_target_properties(PkgConfig::HDF5 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${HDF5_C_INCLUDE_DIRS}"
    INTERFACE_LINK_LIBRARIES "${HDF5_C_LIBRARIES}")
endif()
