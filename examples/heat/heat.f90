! examples/heat/heat.cpp in Fortran: a solver that trains a surrogate of its most expensive part while it computes, and
! uses it. docs/in_situ.md explains the program.
!
!   mpirun -n 4 heat_fortran --steps 200 --learners 2 --budget 0.01 --csv heat.csv --state heat --resume
program heat
  use heat_surrogate
  implicit none
  real(dp), parameter :: heat_of_fuel = 1.5_dp, activation = 4, factor = 200, dt = 2e-3_dp
  integer, parameter :: small_steps = 2000
  type(MPI_Comm) :: learning
  real(dp), allocatable :: t(:, :), y(:, :), old(:, :)
  real(dp) :: account(7), x, z, sums(2), cell_seconds = 0, training = 0, longest = 0
  real(dp) :: limit  ! how far apart the two networks may be in a cell that the surrogate computes
  integer :: rank, ranks, first, last, ny, i, j, step, begin, networks, unit, late = 0
  character(256) :: name
  logical :: learned  ! this rank, in this step

  call MPI_Init_thread(MPI_THREAD_FUNNELED, i)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call read_options()
  call MPI_Comm_split(MPI_COMM_WORLD, merge(0, MPI_UNDEFINED, rank < learners), rank, learning)
  if (rank < learners) call make_surrogate(learning)
  first = cells * rank / ranks
  last = cells * (rank + 1) / ranks
  ny = last - first
  allocate (t(cells, 0:ny + 1), y(cells, 0:ny + 1), old(cells, 0:ny + 1))
  t = 1
  y = 1
  do j = 1, ny
    do i = 1, cells
      x = (i - 0.5_dp) / cells - 0.5_dp
      z = (first + j - 0.5_dp) / cells - 0.5_dp
      t(i, j) = t(i, j) + 1.5_dp * exp(-60 * (x * x + z * z))
    end do
  end do
  begin = 0
  limit = tolerance
  if (resume) call go_on()
  if (rank == 0 .and. csv /= '') then
    open (newunit=unit, file=csv, position=merge('append', 'rewind', begin > 0), action='write')
    if (begin == 0) write (unit, '(a)') &
      'step,solver_cells,surrogate_cells,estimate,error,saved_s,training_s,solver_s,training_added_s'
  end if
  do step = begin, steps - 1
    account = 0
    call burn_all()
    call conduct()
    call report()
    if (state /= '' .and. mod(step + 1, save_every) == 0) call save_all()
    if (step == kill_at .and. rank == 0) call kill_this_process()
  end do
  if (rank == 0 .and. budget < 1e9_dp .and. begin < steps) print '(a, f6.4, a, f6.4, a, i0, a, i0, a, es8.1)', &
    'training made a step longer by ', training / (steps - begin), ' s on the mean, by ', longest, ' at most; ', late, ' of ', &
    steps - begin, ' steps by more than the budget of', budget
  sums = [sum(t(:, 1:ny)), sum(y(:, 1:ny))]
  call MPI_Allreduce(MPI_IN_PLACE, sums, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) print '(a, es20.12, a, es20.12)', 'heat ', sums(1), ' fuel ', sums(2)
  call free_surrogate()
  if (rank < learners) call MPI_Comm_free(learning)
  call MPI_Finalize()

contains

  ! Fuel burnt in one step, as a share of the fuel that was there: the expensive part.
  real(dp) function burn(temperature, fuel)
    real(dp), intent(in) :: temperature, fuel
    real(dp) :: hot, left, burnt
    integer :: n
    hot = temperature
    left = fuel
    do n = 1, small_steps
      burnt = dt / small_steps * factor * left * exp(-activation / hot)
      left = left - burnt
      hot = hot + heat_of_fuel * burnt
    end do
    burn = 0
    if (fuel > 0) burn = 1 - left / fuel
  end function

  ! Burns the fuel of all cells of this rank, by the surrogate where its two networks agree, else by the solver.
  subroutine burn_all()
    real(dp), allocatable, target :: inputs(:, :), share(:), apart(:), known_inputs(:, :), known(:), burnt(:, :)
    real(dp) :: exact, from
    integer :: n, c, row, column, known_cells
    logical :: trusted, audited
    n = cells * ny
    allocate (inputs(inputs_of_cell, n), share(n), apart(n), known_inputs(inputs_of_cell, n), known(n))
    inputs(1, :) = reshape(t(:, 1:ny), [n]) - 2      ! about -1 to 1
    inputs(2, :) = 2 * reshape(y(:, 1:ny), [n]) - 1
    share = 0
    apart = 1e9_dp
    from = MPI_Wtime()
    if (is_ready()) then
      if (.not. predict(inputs, share, apart)) apart = 1e9_dp
    end if
    account(4) = MPI_Wtime() - from
    from = MPI_Wtime()
    known_cells = 0
    do c = 1, n
      trusted = apart(c) < limit
      audited = mod(c - 1 + step, audit) == 0
      if (trusted) account(2) = account(2) + 1
      if (trusted) account(7) = max(account(7), apart(c))
      if (trusted .and. .not. audited) cycle
      row = (c - 1) / cells + 1
      column = c - (row - 1) * cells
      exact = burn(t(column, row), y(column, row))
      if (trusted) account(6) = max(account(6), abs(share(c) - exact))
      if (.not. trusted) account(1) = account(1) + 1
      share(c) = exact
      known_cells = known_cells + 1
      known_inputs(:, known_cells) = inputs(:, c)
      known(known_cells) = exact
    end do
    account(3) = MPI_Wtime() - from
    ! Networks that agree may both be wrong: the audits say how much agreement is needed for an error below the tolerance.
    ! A limit of 0, as of a run whose tolerance was 0, would stay 0.
    if (account(6) > tolerance) then
      limit = limit / 2
    else
      limit = min(max(1.05_dp * limit, tolerance / 100), tolerance)
    end if
    burnt = reshape(share, [cells, ny]) * y(:, 1:ny)
    y(:, 1:ny) = y(:, 1:ny) - burnt
    t(:, 1:ny) = t(:, 1:ny) + heat_of_fuel * burnt
    learned = learns
    from = MPI_Wtime()
    call train(known_inputs(:, 1:known_cells), known(1:known_cells))
    account(5) = MPI_Wtime() - from
  end subroutine

  ! One explicit step of the heat, with walls of temperature 1.
  subroutine conduct()
    integer :: below, above, row
    real(dp) :: wall(0:cells + 1)
    below = merge(rank - 1, MPI_PROC_NULL, rank > 0)
    above = merge(rank + 1, MPI_PROC_NULL, rank + 1 < ranks)
    call MPI_Sendrecv(t(:, ny), cells, MPI_DOUBLE_PRECISION, above, 1, t(:, 0), cells, MPI_DOUBLE_PRECISION, below, 1, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Sendrecv(t(:, 1), cells, MPI_DOUBLE_PRECISION, below, 2, t(:, ny + 1), cells, MPI_DOUBLE_PRECISION, above, 2, &
                      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    old = t
    wall = 1
    do row = 1, ny
      wall(1:cells) = old(:, row)
      t(:, row) = old(:, row) + 0.2_dp * (wall(0:cells - 1) + wall(2:cells + 1) + old(:, row - 1) + old(:, row + 1) - &
                                          4 * old(:, row))
    end do
  end subroutine

  subroutine report()
    real(dp) :: total(5), largest(3), added, saved
    total = account(1:5)
    ! Of the learner that came last, as the others have also waited for it: training has made the step longer by so much.
    largest = [account(6:7), merge(-account(5), -1e9_dp, learned)]
    call MPI_Allreduce(MPI_IN_PLACE, total, 5, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, largest, 3, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    if (total(1) > 0) cell_seconds = total(3) / (total(1) + total(2) / audit)
    added = merge(-largest(3), 0.0_dp, largest(3) > -1e9_dp)
    training = training + added
    longest = max(longest, added)
    if (added > budget) late = late + 1
    saved = (total(1) + total(2)) * cell_seconds - total(3) - total(4)
    if (rank == 0 .and. csv /= '') then
      write (unit, '(i0, 2(",", i0), 2(",", es10.3), 4(",", es13.6))') step, nint(total(1:2)), largest(2), largest(1), saved, &
        total(5), total(3), added
      flush (unit)
    end if
  end subroutine

  ! The solver's own restart file, one per rank.
  function restart_file(base) result(path)
    character(*), intent(in) :: base
    character(:), allocatable :: path
    character(12) :: number
    write (number, '(i0)') rank
    path = trim(base) // '.' // trim(number)
  end function

  ! Saves solver and surrogate together; ranks that do not learn then predict with the saved networks.
  subroutine save_all()
    integer :: whole(2), teaching, u, problem
    write (name, '(2a, i0)') trim(state), '-', mod(step / save_every, 2)  ! two in turn
    teaching = merge(1, 0, learns)
    whole = 1
    if (learns) whole(2) = merge(1, 0, save_networks(name))
    open (newunit=u, file=restart_file(name), form='unformatted', action='write', iostat=problem)
    if (problem == 0) write (u, iostat=problem) cells, ny, ranks
    if (problem == 0) write (u, iostat=problem) step, limit, t, y
    if (problem == 0) close (u, iostat=problem)
    if (problem /= 0) whole(1) = 0
    call MPI_Allreduce(MPI_IN_PLACE, teaching, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD)
    call MPI_Allreduce(MPI_IN_PLACE, whole, 2, MPI_INTEGER, MPI_MIN, MPI_COMM_WORLD)
    if (teaching == 0) whole(2) = 0
    if (whole(2) == 1 .and. .not. learns) call load_networks(name)
    if (rank /= 0) return
    problem = merge(0, 1, whole(1) == 1 .and. (whole(2) == 1 .or. teaching == 0))
    ! A kill leaves the name of the state before, or this one, and no part of it.
    if (problem == 0) open (newunit=u, file=trim(state) // '.new', action='write', status='replace', iostat=problem)
    if (problem == 0) write (u, '(a, /, i0)', iostat=problem) trim(name), whole(2)
    if (problem == 0) close (u, iostat=problem)
    if (problem == 0) problem = merge(0, 1, renamed(trim(state) // '.new', trim(state) // '.newest'))
    if (problem /= 0) write (error_unit, '(a, i0, 3a)') 'heat: the state of step ', step, ' could not be saved as ', trim(name), &
      '; --resume goes on from the one before'
  end subroutine

  logical function renamed(from, to)  ! also where the new name has a file
    use, intrinsic :: iso_c_binding, only: c_char, c_int, c_null_char
    character(*), intent(in) :: from, to
    interface
      integer(c_int) function c_rename(from, to) bind(c, name="rename")
        import :: c_char, c_int
        character(kind=c_char), intent(in) :: from(*), to(*)
      end function
    end interface
    renamed = c_rename(from // c_null_char, to // c_null_char) == 0
  end function

  subroutine give_up()  ! ends all ranks, after a message
    use, intrinsic :: iso_c_binding, only: c_int
    interface
      integer(c_int) function c_usleep(microseconds) bind(c, name="usleep")
        import :: c_int
        integer(c_int), value :: microseconds
      end function
    end interface
    integer(c_int) :: status
    flush (error_unit)
    status = c_usleep(200000_c_int)  ! MPICH's launcher loses what it has not passed on
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  subroutine go_on()
    integer :: u, problem, sizes(3)
    character(:), allocatable :: path
    open (newunit=u, file=trim(state) // '.newest', status='old', action='read', iostat=problem)
    if (problem /= 0) then
      if (rank == 0) write (error_unit, '(3a)') 'heat: there is no ', trim(state), '.newest: this run begins at its first step'
      return
    end if
    read (u, '(a)', iostat=problem) name
    if (problem == 0) read (u, *, iostat=problem) networks
    close (u)
    if (problem /= 0) then
      write (error_unit, '(3a)') 'heat: ', trim(state), '.newest: cannot be read, expected the name of a state, then 0 or 1'
      call give_up()
    end if
    path = restart_file(name)
    open (newunit=u, file=path, form='unformatted', status='old', action='read', iostat=problem)
    if (problem == 0) read (u, iostat=problem) sizes
    if (problem == 0) then
      if (any(sizes /= [cells, ny, ranks])) then  ! a field of nonsense
        write (error_unit, '(3a, 2(i0, a, i0, a, i0, a))') 'heat: ', path, ': it has ', sizes(1), ' x ', sizes(2), &
          ' cells on one of ', sizes(3), ' ranks, expected ', cells, ' x ', ny, ' cells on one of ', ranks, &
          ' ranks; --resume needs the --cells and the number of ranks of the run that saved it'
        call give_up()
      end if
      read (u, iostat=problem) begin, limit, t, y
    end if
    if (problem /= 0) then
      write (error_unit, '(3a)') 'heat: ', path, ': cannot be read whole, expected the state that this rank saved'
      call give_up()
    end if
    close (u)
    if (networks == 1) call load_networks(name)
    begin = begin + 1
  end subroutine

  subroutine kill_this_process()  ! as a node that fails, for tests
    use, intrinsic :: iso_c_binding, only: c_int
    interface
      integer(c_int) function c_raise(signal) bind(c, name="raise")
        import :: c_int
        integer(c_int), value :: signal
      end function
    end interface
    if (c_raise(9_c_int) /= 0) stop 1
  end subroutine

  subroutine explain(key, text)  ! after --help, an option that does not exist, or one whose value is no number
    character(*), intent(in) :: key
    character(*), intent(in), optional :: text
    integer :: status, u, code
    status = merge(0, 2, key == '--help' .or. key == '-h')
    u = merge(output_unit, error_unit, status == 0)
    if (rank == 0) then
      if (present(text)) then
        write (u, '(4a)') 'heat: ', trim(key), ' expects a number, and gets ', trim(text)
      else if (status /= 0) then
        write (u, '(2a)') 'heat: unknown option ', trim(key)
      end if
      write (u, '(a)') 'Usage: mpirun -n RANKS heat_fortran [OPTION VALUE]... [--resume]', &
        '  --cells N       cells along each side of the square', &
        '  --steps N       time steps', &
        '  --learners N    ranks that train the surrogate', &
        '  --updates N     training steps after each time step, at most', &
        '  --budget S      seconds of training after each time step, at most', &
        '  --tolerance X   error of the surrogate above which the solver computes', &
        '  --csv FILE      one line for each time step', &
        '  --state FILE    where the training is saved, every --save-every N time steps, and --resume starts from', &
        '  --kill-at N     this time step ends rank 0 by SIGKILL, for tests'
    end if
    call MPI_Finalize(code)
    if (status /= 0) stop 2
    stop
  end subroutine

  subroutine read_options()
    character(256) :: key, text
    integer :: n, problem
    n = 1
    problem = 0
    do while (n <= command_argument_count())
      call get_command_argument(n, key)
      call get_command_argument(n + 1, text)
      n = n + 2
      select case (key)
      case ('--resume')
        resume = .true.
        n = n - 1
      case ('--cells')
        read (text, *, iostat=problem) cells
      case ('--steps')
        read (text, *, iostat=problem) steps
      case ('--learners')
        read (text, *, iostat=problem) learners
      case ('--updates')
        read (text, *, iostat=problem) updates
      case ('--save-every')
        read (text, *, iostat=problem) save_every
        save_every = max(1, save_every)
      case ('--kill-at')
        read (text, *, iostat=problem) kill_at
      case ('--budget')
        read (text, *, iostat=problem) budget
      case ('--tolerance')
        read (text, *, iostat=problem) tolerance
      case ('--csv')
        csv = text
      case ('--state')
        state = text
      case default
        call explain(key)
      end select
      if (problem /= 0) call explain(key, text)
    end do
  end subroutine
end program
