// The BLAS of this process: OpenBLAS, MKL, BLIS, FlexiBLAS or another library that has the Fortran interface. Which it
// is, is found at run time, as an administrator may exchange the library that a program was linked with.
#pragma once

#include <string>

namespace lockstep::host {

struct BlasFacts {
  // With the name of its kernels where the library tells it: "OpenBLAS 0.3.21 SkylakeX", "FlexiBLAS NETLIB"; of a
  // library that is not known the file: "libblas.so.3". Kernels with different names sum in different orders.
  std::string name;
  int own_pool = 0;  // threads of OpenBLAS's own pool, including the caller's; 0: it uses OpenMP's threads, or none
};
// Returns what the BLAS of this process says of itself.
BlasFacts blas_facts();

// Sets the number of threads that a BLAS call may use. A library that is not known keeps its own setting.
void set_blas_threads(int count);

}  // namespace lockstep::host
