# `cpack -G TGZ` in the build folder makes a tree that runs from any folder, `cpack -G DEB` a package for the Debian that it was built on
# (docs/install.md). Both hold what `cmake --install` lays down, without debug information.
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME lockstep)
set(CPACK_PACKAGE_VENDOR "The Lockstep authors")
set(CPACK_PACKAGE_CONTACT "The Lockstep authors <lockstep@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_FILE_NAME ${CPACK_PACKAGE_NAME}-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
# Shared libraries are found by dpkg-shlibdeps; programs that are started by name are not.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "openmpi-bin, openssh-client")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "curl")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "Programs that train neural networks on many CPU nodes over MPI, the library that they are made of,
its headers, and the commands that start, watch and examine jobs.")
include(CPack)
