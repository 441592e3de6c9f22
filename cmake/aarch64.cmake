# Toolchain for AArch64 on a Debian machine of another processor: scripts/check_aarch64.sh, which sets LOCKSTEP_AARCH64_ROOT to the
# folder with AArch64's libraries and lets programs run under emulation.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_Fortran_COMPILER NOTFOUND)  # else CMake takes this machine's
set(CMAKE_SYSROOT $ENV{LOCKSTEP_AARCH64_ROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
# mpicc cannot be asked, as it is a program of the other processor.
set(mpi ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/openmpi)
set(MPI_C_HEADER_DIR ${mpi}/include CACHE PATH "folder of mpi.h")
set(MPI_C_LIB_NAMES mpi CACHE STRING "libraries of MPI")
set(MPI_mpi_LIBRARY ${mpi}/lib/libmpi.so CACHE FILEPATH "MPI's library")
