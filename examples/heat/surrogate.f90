! The surrogate of examples/heat/heat.f90: two networks that are trained and asked through module lockstep. An error of
! Lockstep is printed, and ends the use of the networks; the simulation goes on.
module heat_surrogate
  use, intrinsic :: iso_c_binding, only: c_int64_t
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit, real64
  use mpi_f08
  use lockstep_mpi_f08
  implicit none

  integer, parameter :: dp = real64
  integer :: cells = 48, steps = 120, learners = 1, updates = 40, save_every = 20, kill_at = -1
  integer, parameter :: batch = 64, audit = 37
  real(dp) :: budget = 1e9_dp, tolerance = 4e-3_dp
  real(dp), parameter :: rate = 5e-3_dp
  character(256) :: csv = '', state = ''
  logical :: resume = .false.

  ! Two networks of different first weights. Where they differ, neither has learned the state: the error's estimate.
  type(lockstep_trainer) :: trainers(2)
  type(lockstep_model) :: models(2)
  logical :: learns = .false., loaded = .false.
  integer(c_int64_t) :: done_updates = 0
  integer, parameter :: inputs_of_cell = 2  ! as the network has them
  character(*), parameter :: network = '{"input": [2], "output": [1], "type": "f64", "loss": "mse", "layers": [' // &
    '{"type": "Linear", "in": 2, "out": 24}, {"type": "Tanh"}, {"type": "Linear", "in": 24, "out": 24}, ' // &
    '{"type": "Tanh"}, {"type": "Linear", "in": 24, "out": 1}, {"type": "Scale", "factor": 0.1}]}'

contains

  ! Says what went wrong. The simulation goes on in any case.
  logical function good(code, what)
    integer, intent(in) :: code
    character(*), intent(in) :: what
    good = code == LOCKSTEP_OK
    if (.not. good) write (error_unit, '(7a)') 'heat: ', what, ': ', lockstep_error_name(code), ': ', &
      lockstep_last_error(), '; the solver goes on'
  end function

  subroutine make_surrogate(comm)
    type(MPI_Comm), intent(in) :: comm
    type(lockstep_model) :: model
    type(lockstep_trainer_options) :: options
    integer :: k, code, ranks
    call MPI_Comm_size(comm, ranks)
    learns = .true.
    options%batch = batch * ranks
    options%memory = 20000
    do k = 1, 2
      call lockstep_model_create(network, model, code)
      learns = good(code, 'a model')
      if (.not. learns) return
      options%seed = k
      call lockstep_trainer_create(model, comm, options, trainers(k), code)
      learns = good(code, 'a trainer')
      call lockstep_model_free(model)
      if (.not. learns) return
    end do
  end subroutine

  logical function is_ready()
    is_ready = loaded
    if (learns) is_ready = done_updates >= 50
  end function

  ! Remembers samples (T, Y) -> share burnt, and trains within the budget. A failure ends the training alone.
  subroutine train(inputs, targets)
    real(dp), intent(in), target :: inputs(:, :), targets(:)
    type(lockstep_result) :: result
    logical :: remembered
    integer :: k, code
    do k = 1, 2
      if (.not. learns) return
      call lockstep_trainer_remember(trainers(k), lockstep_array_of(inputs), lockstep_array_of(targets), code)
      remembered = good(code, 'remembering')
      call lockstep_trainer_replay(trainers(k), batch, updates, budget / 2, rate, code, result)
      learns = good(code, 'training')
      done_updates = result%updates
    end do
  end subroutine

  ! The mean of both networks, and how far they are apart.
  logical function predict(inputs, mean, apart)
    real(dp), intent(in), target :: inputs(:, :)
    real(dp), intent(inout), target :: mean(:), apart(:)
    type(lockstep_array) :: where_to
    real(dp) :: first
    integer :: k, i, code
    predict = .false.
    do k = 1, 2
      where_to = lockstep_array_of(mean)
      if (k == 2) where_to = lockstep_array_of(apart)
      if (learns) then
        call lockstep_trainer_predict(trainers(k), lockstep_array_of(inputs), where_to, code)
      else
        call lockstep_model_predict(models(k), lockstep_array_of(inputs), where_to, code)
      end if
      if (.not. good(code, 'predicting')) return
    end do
    do i = 1, size(mean)
      first = mean(i)
      mean(i) = min(max((first + apart(i)) / 2, 0.0_dp), 1.0_dp)
      apart(i) = abs(first - apart(i))
    end do
    predict = .true.
  end function

  function network_file(name, k) result(path)
    character(*), intent(in) :: name
    integer, intent(in) :: k
    character(:), allocatable :: path
    path = trim(name) // '-' // achar(iachar('0') + k) // '.h5'
  end function

  logical function save_networks(name)  ! collective over the learners
    character(*), intent(in) :: name
    integer :: k, code
    do k = 1, 2
      call lockstep_trainer_save(trainers(k), network_file(name, k), code)
      save_networks = good(code, 'saving')
      if (.not. save_networks) return
    end do
  end function

  ! A learner goes on where it was; another rank predicts with what the learners have saved.
  subroutine load_networks(name)
    character(*), intent(in) :: name
    type(lockstep_model) :: model
    type(lockstep_result) :: result
    integer :: k, code
    do k = 1, 2
      if (learns) then
        call lockstep_trainer_resume(trainers(k), network_file(name, k), code)
        learns = good(code, 'resuming')
        if (.not. learns) return
        call lockstep_trainer_replay(trainers(k), 1, 0, 0.0_dp, 0.0_dp, code, result)  ! no step: the number of updates
        done_updates = result%updates
      else
        call lockstep_model_load(network_file(name, k), model, code)
        if (.not. good(code, 'loading')) return
        call lockstep_model_free(models(k))
        models(k) = model
        if (k == 2) loaded = .true.
      end if
    end do
  end subroutine

  subroutine free_surrogate()
    integer :: k
    do k = 1, 2
      call lockstep_trainer_free(trainers(k))
      call lockstep_model_free(models(k))
    end do
  end subroutine
end module
