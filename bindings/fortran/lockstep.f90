! Lockstep for Fortran: the module on lockstep_c.h (docs/c_and_fortran.md). Fortran 2008, no compiler's extension.
!
!   use lockstep
!   type(lockstep_model) :: model
!   type(lockstep_trainer) :: trainer
!   call lockstep_model_create(description, model, code)
!   call lockstep_trainer_create(model, comm, options, trainer, code)     ! comm: an integer, as of `use mpi`
!   call lockstep_trainer_step(trainer, lockstep_array_of(u), lockstep_array_of(v), rate, code, result)
!
! With `use mpi_f08`, say `use lockstep_mpi_f08` in place of `use lockstep`: comm is then a type(MPI_Comm) too.
!
! code is 0 (LOCKSTEP_OK) or one of the LOCKSTEP_ERROR_ constants; lockstep_last_error() has the text. Without code an
! error is written to stderr, and the routine returns as if it had been given: no routine ends the program.
!
! In an array the samples are LAST: n samples of shape (channels, ny, nx) are u(nx, ny, channels, n), in the order of
! memory that Fortran programs have; nothing is copied or transposed. Arrays need the TARGET attribute. Sections with
! strides are read in place.
module lockstep
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  private

  integer(c_int), parameter, public :: LOCKSTEP_OK = 0, LOCKSTEP_ERROR_ARGUMENT = 1, LOCKSTEP_ERROR_FILE = 2, &
    LOCKSTEP_ERROR_MEMORY = 3, LOCKSTEP_ERROR_NOT_FINITE = 4, LOCKSTEP_ERROR_PEER = 5, LOCKSTEP_ERROR_UNUSABLE = 6, &
    LOCKSTEP_ERROR_CALLBACK = 7, LOCKSTEP_ERROR_OTHER = 8
  integer, parameter, public :: LOCKSTEP_MAX_RANK = 8
  integer(c_int32_t), parameter :: LOCKSTEP_F32 = 1, LOCKSTEP_F64 = 2, LOCKSTEP_I32 = 3, LOCKSTEP_STRIDED = 2
  ! This process alone; MPI is initialised if the program has not done so.
  integer(c_int64_t), parameter, public :: LOCKSTEP_COMM_ALONE = -huge(0_c_int64_t) - 1_c_int64_t
  integer(c_int64_t), parameter :: NO_DISTANCE = huge(0_c_int64_t)

  ! The structures of lockstep_c.h. Components that are not set keep their defaults.
  type, bind(c), public :: lockstep_array
    integer(c_size_t) :: size = 0
    type(c_ptr) :: data = c_null_ptr
    integer(c_int32_t) :: type = LOCKSTEP_F64, rank = 0, order = LOCKSTEP_STRIDED, reserved = 0
    integer(c_int64_t) :: extent(LOCKSTEP_MAX_RANK) = 0, stride(LOCKSTEP_MAX_RANK) = 0
  end type

  type, bind(c) :: c_options
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: batch = 0
    type(c_ptr) :: optimizer = c_null_ptr
    real(c_double) :: weight_decay = 0, clip_norm = 0
    integer(c_int64_t) :: seed = 0, memory = 0
    integer(c_int32_t) :: skip_not_finite = 0, messages = 0
  end type

  type, bind(c), public :: lockstep_result
    integer(c_size_t) :: size = 0
    real(c_double) :: loss = 0, seconds = 0
    integer(c_int64_t) :: samples = 0, own_samples = 0, steps = 0, updates = 0, skipped = 0
    integer(c_int32_t) :: stop = 0, reserved = 0
  end type

  ! The options of a trainer; lockstep_c.h says what they mean.
  type, public :: lockstep_trainer_options
    integer(c_int64_t) :: batch = 0
    character(:), allocatable :: optimizer          ! "adam", if it is not allocated
    real(c_double) :: weight_decay = 0, clip_norm = 0
    integer(c_int64_t) :: seed = 0, memory = 0
    logical :: skip_not_finite = .false., messages = .false.
  end type

  ! Handles. A copy is the same object; free it once.
  type, public :: lockstep_model
    type(c_ptr) :: handle = c_null_ptr
  end type
  type, public :: lockstep_trainer
    type(c_ptr) :: handle = c_null_ptr
  end type

  abstract interface
    ! See lockstep_trainer_on_step() of lockstep_c.h; a result other than 0 asks for an end.
    integer(c_int) function lockstep_step_function(result, user) bind(c)
      import :: c_int, c_ptr, lockstep_result
      type(lockstep_result), intent(in) :: result
      type(c_ptr), value :: user
    end function
  end interface
  public :: lockstep_step_function

  interface lockstep_array_of
    module procedure &
      array_of_f32_1, array_of_f32_2, array_of_f32_3, array_of_f32_4, array_of_f32_5, &
      array_of_f64_1, array_of_f64_2, array_of_f64_3, array_of_f64_4, array_of_f64_5, &
      array_of_i32_1, array_of_i32_2, array_of_i32_3, array_of_i32_4, array_of_i32_5
  end interface
  interface lockstep_trainer_create
    module procedure create_with_default, create_with_int64
  end interface

  public :: lockstep_array_of, lockstep_last_error, lockstep_error_name, lockstep_version
  public :: lockstep_model_create, lockstep_model_load, lockstep_model_save, lockstep_model_free
  public :: lockstep_model_predict, lockstep_model_gradient
  public :: lockstep_trainer_create, lockstep_trainer_free, lockstep_trainer_step, lockstep_trainer_evaluate
  public :: lockstep_trainer_metric, lockstep_trainer_predict, lockstep_trainer_gradient, lockstep_trainer_remember
  public :: lockstep_trainer_replay, lockstep_trainer_on_step, lockstep_trainer_save, lockstep_trainer_resume

  interface
    type(c_ptr) function c_last_error() bind(c, name="lockstep_last_error")
      import :: c_ptr
    end function
    type(c_ptr) function c_error_name(code) bind(c, name="lockstep_error_name")
      import :: c_int, c_ptr
      integer(c_int), value :: code
    end function
    type(c_ptr) function c_version() bind(c, name="lockstep_version")
      import :: c_ptr
    end function
    integer(c_int) function c_model_create(text, model) bind(c, name="lockstep_model_create")
      import :: c_ptr, c_char, c_int
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), intent(out) :: model
    end function
    integer(c_int) function c_model_load(text, model) bind(c, name="lockstep_model_load")
      import :: c_ptr, c_char, c_int
      character(kind=c_char), intent(in) :: text(*)
      type(c_ptr), intent(out) :: model
    end function
    integer(c_int) function c_model_save(model, text) bind(c, name="lockstep_model_save")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: model
      character(kind=c_char), intent(in) :: text(*)
    end function
    subroutine c_model_free(model) bind(c, name="lockstep_model_free")
      import :: c_ptr
      type(c_ptr), value :: model
    end subroutine
    integer(c_int) function c_model_predict(model, input, output) bind(c, name="lockstep_model_predict")
      import :: c_ptr, lockstep_array, c_int
      type(c_ptr), value :: model
      type(lockstep_array), intent(in) :: input, output
    end function
    integer(c_int) function c_model_gradient(model, input, direction, gradient) bind(c, name="lockstep_model_gradient")
      import :: c_ptr, lockstep_array, c_int
      type(c_ptr), value :: model, direction
      type(lockstep_array), intent(in) :: input, gradient
    end function
    integer(c_int) function c_trainer_create(model, comm, options, trainer) bind(c, name="lockstep_trainer_create")
      import :: c_int64_t, c_ptr, c_options, c_int
      type(c_ptr), value :: model
      integer(c_int64_t), value :: comm
      type(c_options), intent(in) :: options
      type(c_ptr), intent(out) :: trainer
    end function
    subroutine c_trainer_free(trainer) bind(c, name="lockstep_trainer_free")
      import :: c_ptr
      type(c_ptr), value :: trainer
    end subroutine
    integer(c_int) function c_trainer_step(trainer, input, target, rate, result) bind(c, name="lockstep_trainer_step")
      import :: c_double, c_ptr, lockstep_result, c_int
      type(c_ptr), value :: trainer, input, target
      real(c_double), value :: rate
      type(lockstep_result), intent(inout) :: result
    end function
    integer(c_int) function c_trainer_evaluate(trainer, input, target, result) bind(c, name="lockstep_trainer_evaluate")
      import :: c_ptr, lockstep_result, c_int
      type(c_ptr), value :: trainer, input, target
      type(lockstep_result), intent(inout) :: result
    end function
    integer(c_int) function c_trainer_metric(trainer, text, number) bind(c, name="lockstep_trainer_metric")
      import :: c_double, c_ptr, c_char, c_int
      type(c_ptr), value :: trainer
      character(kind=c_char), intent(in) :: text(*)
      real(c_double), intent(inout) :: number
    end function
    integer(c_int) function c_trainer_predict(trainer, input, output) bind(c, name="lockstep_trainer_predict")
      import :: c_ptr, lockstep_array, c_int
      type(c_ptr), value :: trainer
      type(lockstep_array), intent(in) :: input, output
    end function
    integer(c_int) function c_trainer_gradient(trainer, input, direction, gradient) bind(c, name="lockstep_trainer_gradient")
      import :: c_ptr, lockstep_array, c_int
      type(c_ptr), value :: trainer, direction
      type(lockstep_array), intent(in) :: input, gradient
    end function
    integer(c_int) function c_trainer_remember(trainer, input, target) bind(c, name="lockstep_trainer_remember")
      import :: c_ptr, lockstep_array, c_int
      type(c_ptr), value :: trainer
      type(lockstep_array), intent(in) :: input, target
    end function
    integer(c_int) function c_trainer_replay(trainer, samples, steps, seconds, rate, result) &
      bind(c, name="lockstep_trainer_replay")
      import :: c_int64_t, c_double, c_ptr, lockstep_result, c_int
      type(c_ptr), value :: trainer
      integer(c_int64_t), value :: samples, steps
      real(c_double), value :: seconds, rate
      type(lockstep_result), intent(inout) :: result
    end function
    integer(c_int) function c_trainer_on_step(trainer, callback, user) bind(c, name="lockstep_trainer_on_step")
      import :: c_ptr, c_funptr, c_int
      type(c_ptr), value :: trainer, user
      type(c_funptr), value :: callback
    end function
    integer(c_int) function c_trainer_save(trainer, text) bind(c, name="lockstep_trainer_save")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: trainer
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_int) function c_trainer_resume(trainer, text) bind(c, name="lockstep_trainer_resume")
      import :: c_ptr, c_char, c_int
      type(c_ptr), value :: trainer
      character(kind=c_char), intent(in) :: text(*)
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

contains

  ! ---- texts and codes ----

  function text_of(address) result(text)
    type(c_ptr), intent(in) :: address
    character(:), allocatable :: text
    character(kind=c_char), pointer :: letters(:)
    integer :: i
    call c_f_pointer(address, letters, [c_strlen(address)])
    allocate (character(size(letters)) :: text)
    do i = 1, size(letters)
      text(i:i) = letters(i)
    end do
  end function

  ! The text that C reads: its letters, and a zero behind them.
  function c_text(text) result(letters)
    character(*), intent(in) :: text
    character(kind=c_char), allocatable :: letters(:)
    integer :: i
    allocate (letters(len_trim(text) + 1))
    do i = 1, len_trim(text)
      letters(i) = text(i:i)
    end do
    letters(size(letters)) = c_null_char
  end function

  function lockstep_last_error() result(text)
    character(:), allocatable :: text
    text = text_of(c_last_error())
  end function
  function lockstep_error_name(code) result(text)
    integer(c_int), intent(in) :: code
    character(:), allocatable :: text
    text = text_of(c_error_name(code))
  end function
  function lockstep_version() result(text)
    character(:), allocatable :: text
    text = text_of(c_version())
  end function

  subroutine hand_over(found, code)
    integer(c_int), intent(in) :: found
    integer, intent(out), optional :: code
    if (present(code)) then
      code = found
    else if (found /= LOCKSTEP_OK) then
      write (error_unit, '(4a)') lockstep_error_name(found), ': ', lockstep_last_error(), &
        ' (pass the argument code to handle it)'
    end if
  end subroutine

  type(lockstep_result) function new_result()
    new_result%size = c_sizeof(new_result)
  end function

  ! After an error the caller's result stays as it is.
  subroutine give_result(outcome, found, result)
    integer(c_int), intent(in) :: outcome
    type(lockstep_result), intent(in) :: found
    type(lockstep_result), intent(inout), optional :: result
    if (.not. present(result)) return
    if (outcome == LOCKSTEP_OK) result = found
  end subroutine

  ! ---- arrays ----

  ! Elements between two neighbours, from their addresses; NO_DISTANCE if they are no whole elements apart.
  integer(c_int64_t) function distance(first, second, bytes)
    type(c_ptr), intent(in) :: first, second
    integer, intent(in) :: bytes
    integer(c_intptr_t) :: apart
    apart = transfer(second, 0_c_intptr_t) - transfer(first, 0_c_intptr_t)
    distance = NO_DISTANCE
    if (mod(apart, int(bytes, c_intptr_t)) == 0) distance = apart / bytes
  end function

  ! A descriptor of an array of this shape. The C library wants the samples first, so the dimensions are reversed. An
  ! array that a descriptor cannot have gets a type that the library refuses, on all ranks together.
  type(lockstep_array) function described(address, kind_of_element, extents, strides)
    type(c_ptr), intent(in) :: address
    integer(c_int32_t), intent(in) :: kind_of_element
    integer(c_int64_t), intent(in) :: extents(:), strides(:)
    integer :: d, n
    n = size(extents)
    described%size = c_sizeof(described)
    described%data = address
    described%type = kind_of_element
    if (any(strides == NO_DISTANCE)) described%type = 0
    described%rank = int(n, c_int32_t)
    do d = 1, n
      described%extent(d) = extents(n + 1 - d)
      described%stride(d) = strides(n + 1 - d)
    end do
  end function

  type(lockstep_array) function array_of_f32_1(a) result(array)
    real(c_float), intent(in), target :: a(:)
    integer(c_int64_t) :: strides(1)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2)), 4)
    end if
    array = described(first, LOCKSTEP_F32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f32_2(a) result(array)
    real(c_float), intent(in), target :: a(:,:)
    integer(c_int64_t) :: strides(2)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2)), 4)
    end if
    array = described(first, LOCKSTEP_F32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f32_3(a) result(array)
    real(c_float), intent(in), target :: a(:,:,:)
    integer(c_int64_t) :: strides(3)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1)), 4)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2)), 4)
    end if
    array = described(first, LOCKSTEP_F32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f32_4(a) result(array)
    real(c_float), intent(in), target :: a(:,:,:,:)
    integer(c_int64_t) :: strides(4)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1,1)), 4)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2,1)), 4)
      if (size(a, 4, c_int64_t) > 1) strides(4) = distance(first, c_loc(a(1,1,1,2)), 4)
    end if
    array = described(first, LOCKSTEP_F32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f32_5(a) result(array)
    real(c_float), intent(in), target :: a(:,:,:,:,:)
    integer(c_int64_t) :: strides(5)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1,1,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1,1,1)), 4)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2,1,1)), 4)
      if (size(a, 4, c_int64_t) > 1) strides(4) = distance(first, c_loc(a(1,1,1,2,1)), 4)
      if (size(a, 5, c_int64_t) > 1) strides(5) = distance(first, c_loc(a(1,1,1,1,2)), 4)
    end if
    array = described(first, LOCKSTEP_F32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f64_1(a) result(array)
    real(c_double), intent(in), target :: a(:)
    integer(c_int64_t) :: strides(1)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2)), 8)
    end if
    array = described(first, LOCKSTEP_F64, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f64_2(a) result(array)
    real(c_double), intent(in), target :: a(:,:)
    integer(c_int64_t) :: strides(2)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1)), 8)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2)), 8)
    end if
    array = described(first, LOCKSTEP_F64, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f64_3(a) result(array)
    real(c_double), intent(in), target :: a(:,:,:)
    integer(c_int64_t) :: strides(3)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1)), 8)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1)), 8)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2)), 8)
    end if
    array = described(first, LOCKSTEP_F64, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f64_4(a) result(array)
    real(c_double), intent(in), target :: a(:,:,:,:)
    integer(c_int64_t) :: strides(4)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1,1)), 8)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1,1)), 8)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2,1)), 8)
      if (size(a, 4, c_int64_t) > 1) strides(4) = distance(first, c_loc(a(1,1,1,2)), 8)
    end if
    array = described(first, LOCKSTEP_F64, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_f64_5(a) result(array)
    real(c_double), intent(in), target :: a(:,:,:,:,:)
    integer(c_int64_t) :: strides(5)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1,1,1)), 8)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1,1,1)), 8)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2,1,1)), 8)
      if (size(a, 4, c_int64_t) > 1) strides(4) = distance(first, c_loc(a(1,1,1,2,1)), 8)
      if (size(a, 5, c_int64_t) > 1) strides(5) = distance(first, c_loc(a(1,1,1,1,2)), 8)
    end if
    array = described(first, LOCKSTEP_F64, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_i32_1(a) result(array)
    integer(c_int32_t), intent(in), target :: a(:)
    integer(c_int64_t) :: strides(1)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2)), 4)
    end if
    array = described(first, LOCKSTEP_I32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_i32_2(a) result(array)
    integer(c_int32_t), intent(in), target :: a(:,:)
    integer(c_int64_t) :: strides(2)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2)), 4)
    end if
    array = described(first, LOCKSTEP_I32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_i32_3(a) result(array)
    integer(c_int32_t), intent(in), target :: a(:,:,:)
    integer(c_int64_t) :: strides(3)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1)), 4)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2)), 4)
    end if
    array = described(first, LOCKSTEP_I32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_i32_4(a) result(array)
    integer(c_int32_t), intent(in), target :: a(:,:,:,:)
    integer(c_int64_t) :: strides(4)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1,1)), 4)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2,1)), 4)
      if (size(a, 4, c_int64_t) > 1) strides(4) = distance(first, c_loc(a(1,1,1,2)), 4)
    end if
    array = described(first, LOCKSTEP_I32, shape(a, c_int64_t), strides)
  end function

  type(lockstep_array) function array_of_i32_5(a) result(array)
    integer(c_int32_t), intent(in), target :: a(:,:,:,:,:)
    integer(c_int64_t) :: strides(5)
    type(c_ptr) :: first
    strides = 1
    first = c_null_ptr
    if (size(a, kind=c_int64_t) > 0) then
      first = c_loc(a(1,1,1,1,1))
      if (size(a, 1, c_int64_t) > 1) strides(1) = distance(first, c_loc(a(2,1,1,1,1)), 4)
      if (size(a, 2, c_int64_t) > 1) strides(2) = distance(first, c_loc(a(1,2,1,1,1)), 4)
      if (size(a, 3, c_int64_t) > 1) strides(3) = distance(first, c_loc(a(1,1,2,1,1)), 4)
      if (size(a, 4, c_int64_t) > 1) strides(4) = distance(first, c_loc(a(1,1,1,2,1)), 4)
      if (size(a, 5, c_int64_t) > 1) strides(5) = distance(first, c_loc(a(1,1,1,1,2)), 4)
    end if
    array = described(first, LOCKSTEP_I32, shape(a, c_int64_t), strides)
  end function

  ! ---- models ----

  subroutine lockstep_model_create(description, model, code)
    character(*), intent(in) :: description
    type(lockstep_model), intent(out) :: model
    integer, intent(out), optional :: code
    call hand_over(c_model_create(c_text(description), model%handle), code)
  end subroutine
  subroutine lockstep_model_load(path, model, code)
    character(*), intent(in) :: path
    type(lockstep_model), intent(out) :: model
    integer, intent(out), optional :: code
    call hand_over(c_model_load(c_text(path), model%handle), code)
  end subroutine
  subroutine lockstep_model_save(model, path, code)
    type(lockstep_model), intent(in) :: model
    character(*), intent(in) :: path
    integer, intent(out), optional :: code
    call hand_over(c_model_save(model%handle, c_text(path)), code)
  end subroutine
  subroutine lockstep_model_free(model)
    type(lockstep_model), intent(inout) :: model
    call c_model_free(model%handle)
    model%handle = c_null_ptr
  end subroutine
  ! `output` describes memory that is written.
  subroutine lockstep_model_predict(model, input, output, code)
    type(lockstep_model), intent(in) :: model
    type(lockstep_array), intent(in) :: input, output
    integer, intent(out), optional :: code
    call hand_over(c_model_predict(model%handle, input, output), code)
  end subroutine
  subroutine lockstep_model_gradient(model, input, gradient, direction, code)
    type(lockstep_model), intent(in) :: model
    type(lockstep_array), intent(in) :: input, gradient
    type(lockstep_array), intent(in), optional :: direction
    integer, intent(out), optional :: code
    type(lockstep_array), target :: along
    type(c_ptr) :: address
    address = c_null_ptr
    if (present(direction)) then
      along = direction
      address = c_loc(along)
    end if
    call hand_over(c_model_gradient(model%handle, input, address, gradient), code)
  end subroutine

  ! ---- training ----

  subroutine create_with_int64(model, comm, options, trainer, code)
    type(lockstep_model), intent(in) :: model
    integer(c_int64_t), intent(in) :: comm
    type(lockstep_trainer_options), intent(in) :: options
    type(lockstep_trainer), intent(out) :: trainer
    integer, intent(out), optional :: code
    type(c_options) :: c
    character(kind=c_char), allocatable, target :: optimizer(:)
    c%size = c_sizeof(c)
    c%batch = options%batch
    if (allocated(options%optimizer)) then
      optimizer = c_text(options%optimizer)
    else
      optimizer = c_text('adam')
    end if
    c%optimizer = c_loc(optimizer)
    c%weight_decay = options%weight_decay
    c%clip_norm = options%clip_norm
    c%seed = options%seed
    c%memory = options%memory
    if (options%skip_not_finite) c%skip_not_finite = 1
    if (options%messages) c%messages = 1
    call hand_over(c_trainer_create(model%handle, comm, c, trainer%handle), code)
  end subroutine
  subroutine create_with_default(model, comm, options, trainer, code)
    type(lockstep_model), intent(in) :: model
    integer(c_int), intent(in) :: comm
    type(lockstep_trainer_options), intent(in) :: options
    type(lockstep_trainer), intent(out) :: trainer
    integer, intent(out), optional :: code
    call create_with_int64(model, int(comm, c_int64_t), options, trainer, code)
  end subroutine
  subroutine lockstep_trainer_free(trainer)
    type(lockstep_trainer), intent(inout) :: trainer
    call c_trainer_free(trainer%handle)
    trainer%handle = c_null_ptr
  end subroutine

  ! A rank without samples leaves input and target out.
  subroutine lockstep_trainer_step(trainer, input, target, rate, code, result)
    type(lockstep_trainer), intent(in) :: trainer
    type(lockstep_array), intent(in), optional :: input, target
    real(c_double), intent(in) :: rate
    integer, intent(out), optional :: code
    type(lockstep_result), intent(inout), optional :: result
    type(lockstep_array), target :: arrays(2)
    type(c_ptr) :: addresses(2)
    type(lockstep_result) :: found
    integer(c_int) :: outcome
    call addresses_of(arrays, addresses, input, target)
    found = new_result()
    outcome = c_trainer_step(trainer%handle, addresses(1), addresses(2), rate, found)
    call give_result(outcome, found, result)
    call hand_over(outcome, code)
  end subroutine
  subroutine lockstep_trainer_evaluate(trainer, input, target, code, result)
    type(lockstep_trainer), intent(in) :: trainer
    type(lockstep_array), intent(in), optional :: input, target
    integer, intent(out), optional :: code
    type(lockstep_result), intent(inout), optional :: result
    type(lockstep_array), target :: arrays(2)
    type(c_ptr) :: addresses(2)
    type(lockstep_result) :: found
    integer(c_int) :: outcome
    call addresses_of(arrays, addresses, input, target)
    found = new_result()
    outcome = c_trainer_evaluate(trainer%handle, addresses(1), addresses(2), found)
    call give_result(outcome, found, result)
    call hand_over(outcome, code)
  end subroutine
  subroutine addresses_of(arrays, addresses, first, second)
    type(lockstep_array), intent(inout), target :: arrays(2)
    type(c_ptr), intent(out) :: addresses(2)
    type(lockstep_array), intent(in), optional :: first, second
    addresses = c_null_ptr
    if (present(first)) then
      arrays(1) = first
      addresses(1) = c_loc(arrays(1))
    end if
    if (present(second)) then
      arrays(2) = second
      addresses(2) = c_loc(arrays(2))
    end if
  end subroutine

  subroutine lockstep_trainer_metric(trainer, name, number, code)
    type(lockstep_trainer), intent(in) :: trainer
    character(*), intent(in) :: name
    real(c_double), intent(inout) :: number
    integer, intent(out), optional :: code
    call hand_over(c_trainer_metric(trainer%handle, c_text(name), number), code)
  end subroutine
  subroutine lockstep_trainer_predict(trainer, input, output, code)
    type(lockstep_trainer), intent(in) :: trainer
    type(lockstep_array), intent(in) :: input, output
    integer, intent(out), optional :: code
    call hand_over(c_trainer_predict(trainer%handle, input, output), code)
  end subroutine
  subroutine lockstep_trainer_gradient(trainer, input, gradient, direction, code)
    type(lockstep_trainer), intent(in) :: trainer
    type(lockstep_array), intent(in) :: input, gradient
    type(lockstep_array), intent(in), optional :: direction
    integer, intent(out), optional :: code
    type(lockstep_array), target :: along
    type(c_ptr) :: address
    address = c_null_ptr
    if (present(direction)) then
      along = direction
      address = c_loc(along)
    end if
    call hand_over(c_trainer_gradient(trainer%handle, input, address, gradient), code)
  end subroutine
  subroutine lockstep_trainer_remember(trainer, input, target, code)
    type(lockstep_trainer), intent(in) :: trainer
    type(lockstep_array), intent(in) :: input, target
    integer, intent(out), optional :: code
    call hand_over(c_trainer_remember(trainer%handle, input, target), code)
  end subroutine
  subroutine lockstep_trainer_replay(trainer, samples, steps, seconds, rate, code, result)
    type(lockstep_trainer), intent(in) :: trainer
    integer, intent(in) :: samples, steps
    real(c_double), intent(in) :: seconds, rate
    integer, intent(out), optional :: code
    type(lockstep_result), intent(inout), optional :: result
    type(lockstep_result) :: found
    integer(c_int) :: outcome
    found = new_result()
    outcome = c_trainer_replay(trainer%handle, int(samples, c_int64_t), int(steps, c_int64_t), seconds, rate, found)
    call give_result(outcome, found, result)
    call hand_over(outcome, code)
  end subroutine
  ! `callback` is bind(c), with the interface lockstep_step_function.
  subroutine lockstep_trainer_on_step(trainer, callback, user, code)
    type(lockstep_trainer), intent(in) :: trainer
    procedure(lockstep_step_function) :: callback
    type(c_ptr), intent(in), optional :: user
    integer, intent(out), optional :: code
    type(c_ptr) :: address
    address = c_null_ptr
    if (present(user)) address = user
    call hand_over(c_trainer_on_step(trainer%handle, c_funloc(callback), address), code)
  end subroutine
  subroutine lockstep_trainer_save(trainer, path, code)
    type(lockstep_trainer), intent(in) :: trainer
    character(*), intent(in) :: path
    integer, intent(out), optional :: code
    call hand_over(c_trainer_save(trainer%handle, c_text(path)), code)
  end subroutine
  subroutine lockstep_trainer_resume(trainer, path, code)
    type(lockstep_trainer), intent(in) :: trainer
    character(*), intent(in) :: path
    integer, intent(out), optional :: code
    call hand_over(c_trainer_resume(trainer%handle, c_text(path)), code)
  end subroutine
end module
