#include "bindings/c/failure.h"
#include "bindings/c/training.h"
#include "lockstep/comm/environment.h"
#include "lockstep/comm/mpi_interop.h"

namespace lockstep::bindings {
namespace {

// For a process that uses no MPI itself. It is never destroyed: when a process ends, nobody knows whether a library
// that is still loaded uses MPI.
void start_mpi() {
  static const comm::Environment* const environment = new comm::Environment(comm::ThreadLevel::Funneled);
  static_cast<void>(environment);
}

}  // namespace

comm::Communicator communicator_of(std::int64_t fortran) {
  if (fortran == LOCKSTEP_COMM_ALONE) {
    if (!comm::Environment::active()) start_mpi();
    return comm::duplicate_of(MPI_COMM_SELF);
  }
  if (!comm::Environment::active()) {
    throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                     "[trainer] MPI is not initialised, or finalised; expected a call of MPI_Init before, or "
                     "LOCKSTEP_COMM_ALONE as communicator");
  }
  const auto number = static_cast<MPI_Fint>(fortran);
  const MPI_Comm handle = number == fortran ? MPI_Comm_f2c(number) : MPI_COMM_NULL;
  if (number == fortran && number == MPI_Comm_c2f(MPI_COMM_NULL)) {
    throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                     "[trainer] the communicator is MPI_COMM_NULL, as of a rank that MPI_Comm_split left out; expected "
                     "one that has this rank");
  }
  if (handle == MPI_COMM_NULL || handle == MPI_Comm{}) {
    throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                     formatted("[trainer] {} is no communicator, expected the result of MPI_Comm_c2f(), or a "
                               "communicator of Fortran",
                               fortran));
  }
  return comm::duplicate_of(handle);
}

}  // namespace lockstep::bindings
