! Module lockstep for programs that say `use mpi_f08`: the same, and lockstep_trainer_create() takes a type(MPI_Comm).
! It is a module of its own, so that module lockstep needs no module files of an MPI.
module lockstep_mpi_f08
  use, intrinsic :: iso_c_binding, only: c_int64_t
  use mpi_f08, only: MPI_Comm
  use lockstep
  implicit none
  private :: create_with_f08, c_int64_t, MPI_Comm

  interface lockstep_trainer_create
    module procedure create_with_f08
  end interface

contains

  subroutine create_with_f08(model, comm, options, trainer, code)
    type(lockstep_model), intent(in) :: model
    type(MPI_Comm), intent(in) :: comm
    type(lockstep_trainer_options), intent(in) :: options
    type(lockstep_trainer), intent(out) :: trainer
    integer, intent(out), optional :: code
    call lockstep_trainer_create(model, int(comm%MPI_VAL, c_int64_t), options, trainer, code)
  end subroutine
end module
