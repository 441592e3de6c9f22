/* The one function of Lockstep for C that knows MPI's own types. It is inline, so the library's ABI does not depend on
 * how an MPI library defines MPI_Comm. */
#ifndef LOCKSTEP_C_MPI_H
#define LOCKSTEP_C_MPI_H

#include <lockstep_c.h>
/* The C++ bindings that some mpi.h bring were removed from MPI 3, and need a library of their own. */
#if defined(__cplusplus) && !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if defined(__cplusplus) && !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

static inline int lockstep_trainer_create_mpi(lockstep_model* model, MPI_Comm comm,
                                              const lockstep_trainer_options* options, lockstep_trainer** trainer) {
  return lockstep_trainer_create(model, (int64_t)MPI_Comm_c2f(comm), options, trainer);
}

#endif
