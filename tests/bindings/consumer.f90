! A program in Fortran that trains, evaluates, predicts, differentiates, saves and resumes: module lockstep with the
! integers of `use mpi`. consumer_fortran FOLDER; under mpirun on any number of ranks.
module callbacks
  use, intrinsic :: iso_c_binding
  use lockstep
  implicit none
  integer :: calls = 0
contains
  integer(c_int) function count_calls(step, user) bind(c)
    type(lockstep_result), intent(in) :: step
    type(c_ptr), value :: user
    if (step%updates > 0 .and. .not. c_associated(user)) calls = calls + 1
    count_calls = 0
  end function
end module

program consumer_fortran
  use, intrinsic :: iso_c_binding
  use mpi
  use lockstep
  use callbacks
  implicit none
  integer, parameter :: n = 32
  character(*), parameter :: network = '{"input": [2, 4], "output": [1, 4], "type": "f64", "metrics": ["rmse"], "layers": [' // &
    '{"type": "Conv1d", "in": 2, "out": 8, "kernel": 3, "padding": 1, "padding_mode": "circular"}, {"type": "Tanh"}, ' // &
    '{"type": "Conv1d", "in": 8, "out": 1, "kernel": 1}]}'
  real(c_double), target :: u(4, 2, n), v(4, 1, n), first(4, 1, n), second(4, 1, n), g(4, 2, n)
  real(c_double), target :: wide(8, 2, 2 * n), turned(n, 2, 4)
  real(c_float), target :: single(4, 2, n), single_result(4, n)
  type(lockstep_model) :: model, loaded
  type(lockstep_trainer) :: trainer, other
  type(lockstep_trainer_options) :: options
  type(lockstep_result) :: result
  character(512) :: folder, path
  real(c_double) :: rmse, before
  integer :: code, rank, ranks, provided, ierror, i, failures = 0, all

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, folder)
  write (path, '(2a, i0, a)') trim(folder), '/fortran-', ranks, '.h5'

  call lockstep_model_create('{"input": [2]}', model, code)
  call expect(code == LOCKSTEP_ERROR_ARGUMENT .and. index(lockstep_last_error(), 'output') > 0, 'a wrong description')
  call expect(lockstep_error_name(LOCKSTEP_ERROR_FILE) == 'LOCKSTEP_ERROR_FILE', 'the name of a code')
  call lockstep_model_create(network, model, code)
  call expect(code == LOCKSTEP_OK, 'a model')
  options%batch = n * ranks
  options%optimizer = '{"name": "adam", "beta1": 0.8}'
  options%memory = 50
  options%seed = 4
  call lockstep_trainer_create(model, MPI_COMM_WORLD, options, trainer, code)
  call expect(code == LOCKSTEP_OK, 'a trainer')
  call lockstep_trainer_on_step(trainer, count_calls, c_null_ptr, code)
  do i = 1, 40
    call fill(i)
    call lockstep_trainer_step(trainer, lockstep_array_of(u), lockstep_array_of(v), 1e-2_c_double, code, result)
    call expect(code == LOCKSTEP_OK .and. result%samples == n * ranks .and. result%updates == i, 'a step')
  end do
  call expect(calls == 40, 'the callback')
  call lockstep_trainer_remember(trainer, lockstep_array_of(u), lockstep_array_of(v), code)
  call lockstep_trainer_replay(trainer, 8, 3, 1e9_c_double, 1e-2_c_double, code, result)
  call expect(code == LOCKSTEP_OK .and. result%steps == 3, 'a replay')
  call lockstep_trainer_evaluate(trainer, lockstep_array_of(u), lockstep_array_of(v), code, result)
  before = result%loss
  call lockstep_trainer_metric(trainer, 'rmse', rmse, code)
  call expect(code == LOCKSTEP_OK .and. abs(rmse ** 2 - before) < 1e-12_c_double .and. before < 0.05_c_double, 'an evaluation')

  ! A dense array, a section of a wider one, an array with the samples first in memory, and single precision agree.
  call lockstep_trainer_predict(trainer, lockstep_array_of(u), lockstep_array_of(first), code)
  wide = 0
  wide(1:7:2, :, 2 * n:2:-2) = u
  call lockstep_trainer_predict(trainer, lockstep_array_of(wide(1:7:2, :, 2 * n:2:-2)), lockstep_array_of(second), code)
  call expect(code == LOCKSTEP_OK .and. all_equal(first, second), 'a section')
  single = real(u, c_float)
  call lockstep_trainer_predict(trainer, lockstep_array_of(single), lockstep_array_of(single_result), code)
  call expect(code == LOCKSTEP_OK .and. maxval(abs(single_result - first(:, 1, :))) < 1e-5_c_double, 'single precision')
  turned = reshape(u, [n, 2, 4], order=[3, 2, 1])
  call lockstep_trainer_predict(trainer, lockstep_array_of(turned), lockstep_array_of(second), code)
  call expect(code == LOCKSTEP_ERROR_ARGUMENT .and. index(lockstep_last_error(), 'samples are last') > 0, 'samples first')
  result%loss = -7
  call lockstep_trainer_step(trainer, lockstep_array_of(turned), lockstep_array_of(v), 1e-2_c_double, code, result)
  call expect(code == LOCKSTEP_ERROR_ARGUMENT .and. abs(result%loss + 7) <= 0, 'the result after an error')

  ! Gradients by the input against differences along one direction.
  call lockstep_trainer_gradient(trainer, lockstep_array_of(u), lockstep_array_of(g), code=code)
  u(2, 1, :) = u(2, 1, :) + 1e-5_c_double
  call lockstep_trainer_predict(trainer, lockstep_array_of(u), lockstep_array_of(second), code)
  u(2, 1, :) = u(2, 1, :) - 2e-5_c_double
  call lockstep_trainer_predict(trainer, lockstep_array_of(u), lockstep_array_of(first), code)
  call expect(maxval(abs(sum(sum(second - first, 1), 1) / 2e-5_c_double - g(2, 1, :))) < 1e-7_c_double, 'gradients')

  call lockstep_trainer_save(trainer, path, code)
  call expect(code == LOCKSTEP_OK, 'saving')
  call lockstep_trainer_create(model, MPI_COMM_WORLD, options, other, code)
  call lockstep_trainer_resume(other, path, code)
  call expect(code == LOCKSTEP_OK, 'resuming')
  call fill(40)
  call lockstep_trainer_evaluate(other, lockstep_array_of(u), lockstep_array_of(v), code, result)
  call expect(abs(result%loss - before) <= 0, 'the same bits')
  call lockstep_model_load(path, loaded, code)
  call lockstep_model_predict(loaded, lockstep_array_of(u), lockstep_array_of(first), code)
  call lockstep_trainer_predict(other, lockstep_array_of(u), lockstep_array_of(second), code)
  call expect(all_equal(first, second), 'a loaded model')
  call lockstep_trainer_save(trainer, '/nonexistent/state.h5', code)
  call expect(code == LOCKSTEP_ERROR_FILE, 'a file that cannot be written')
  call lockstep_trainer_step(trainer, rate=1e-2_c_double, code=code, result=result)  ! no rank has samples
  call expect(code == LOCKSTEP_OK .and. result%steps == 0, 'a step without samples')

  call lockstep_trainer_free(other)
  call lockstep_trainer_free(trainer)
  call lockstep_model_free(loaded)
  call lockstep_model_free(model)
  call MPI_Allreduce(failures, all, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
  call MPI_Finalize(ierror)
  if (all > 0) stop 1
  if (rank == 0) print '(a)', 'consumer: all holds'

contains

  subroutine expect(holds, what)
    logical, intent(in) :: holds
    character(*), intent(in) :: what
    if (holds) return
    print '(a, i0, 4a)', 'rank ', rank, ': ', what, ' does not hold; last error: ', lockstep_last_error()
    failures = failures + 1
  end subroutine

  logical function all_equal(a, b)
    real(c_double), intent(in) :: a(:, :, :), b(:, :, :)
    all_equal = maxval(abs(a - b)) <= 0
  end function

  subroutine fill(number)
    integer, intent(in) :: number
    integer :: x, s
    do s = 1, n
      do x = 1, 4
        u(x, 1, s) = sin(1.0_c_double * (x + 3 * s + 11 * (number * ranks + rank)))
        u(x, 2, s) = cos(2.0_c_double * (x + 5 * s + 7 * (number * ranks + rank)))
      end do
      v(:, 1, s) = 0.5_c_double * u(:, 1, s) - 0.25_c_double * u(:, 2, s)
    end do
  end subroutine
end program
