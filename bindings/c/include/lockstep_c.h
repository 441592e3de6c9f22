/* Lockstep for C, and for every language that calls C: describe or load a model, train it on arrays of the calling
 * program, evaluate, predict, save, resume. Lockstep's C++ headers are lockstep/lockstep.h and others below lockstep/;
 * this header has a name of its own, lockstep_c.h, so that no order of -I options can take one for the other. C99.
 *
 * Errors are values. Every function that can fail returns LOCKSTEP_OK or one of the codes below, and
 * lockstep_last_error() has a sentence that says what happened, where, and what was expected. No C++ exception and no
 * exit() crosses this interface. After an error of one call the program, its MPI and the other handles are as before.
 *
 * Collective functions say so: all ranks of the trainer's communicator call them, in the same order. An argument that
 * is wrong on one rank alone gives an error on all of them, so no rank waits for another one.
 *
 * ABI: the library is liblockstep_c.so.1. Handles are opaque, structures begin with their size, fields are added at
 * their ends alone, and numbers of constants never change, so a program runs with a later library of the same number
 * without compilation. Initialise every structure with its *_INIT macro: what you do not set keeps its default.
 *
 * Threads: one thread at a time may use a handle and the handles made from it. lockstep_last_error() is the calling
 * thread's own. Lockstep computes with as many OpenMP threads as the process has set (OMP_NUM_THREADS). */
#ifndef LOCKSTEP_C_H
#define LOCKSTEP_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define LOCKSTEP_API __attribute__((visibility("default")))
#else
#define LOCKSTEP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* C, whose names and types C++ would write otherwise. NOLINTBEGIN(modernize-use-using,readability-identifier-naming) */

/* ---- errors, version, log ---- */

enum {
  LOCKSTEP_OK = 0,
  LOCKSTEP_ERROR_ARGUMENT = 1,   /* a null pointer, a shape, a type, a description: the call changed nothing */
  LOCKSTEP_ERROR_FILE = 2,       /* a file could not be read or written: full disk, damage, another model */
  LOCKSTEP_ERROR_MEMORY = 3,     /* memory, or shared memory of the node, is short */
  LOCKSTEP_ERROR_NOT_FINITE = 4, /* a loss or gradient is NaN or infinite; the weights are as before the step */
  LOCKSTEP_ERROR_PEER = 5,       /* another rank failed during the call; its own error has the cause */
  LOCKSTEP_ERROR_UNUSABLE = 6,   /* an earlier error has made this trainer unusable: free it, make another one */
  LOCKSTEP_ERROR_CALLBACK = 7,   /* a callback of the program failed */
  LOCKSTEP_ERROR_OTHER = 8       /* an error of training or of the library; the text has the details */
};

/* The ABI's number, 1; the library's version, "0.1.0"; "LOCKSTEP_ERROR_FILE" for 2. The texts live for ever. */
LOCKSTEP_API int lockstep_abi_version(void);
LOCKSTEP_API const char* lockstep_version(void);
LOCKSTEP_API const char* lockstep_error_name(int code);
/* The message of the last call of this thread that failed, in one line; "" before one. Valid until the thread's next
 * call that fails. Never null. */
LOCKSTEP_API const char* lockstep_last_error(void);

/* Levels of messages of the log. */
enum { LOCKSTEP_LOG_INFO = 2, LOCKSTEP_LOG_WARNING = 3, LOCKSTEP_LOG_ERROR = 4 };
/* Any thread of the library may call it, one at a time; it must not call the library. */
typedef void (*lockstep_log_function)(int level, const char* message, void* user);
/* Sends messages of `least` or a higher level to `log`, and none to stderr; null: warnings and errors to stderr again.
 */
LOCKSTEP_API int lockstep_set_log(lockstep_log_function log, int least, void* user);

/* ---- arrays ---- */

enum { LOCKSTEP_MAX_RANK = 8 };
/* Types of elements. Numbers are converted between f32 and f64 where the model has the other type; i32 is for classes.
 */
enum { LOCKSTEP_F32 = 1, LOCKSTEP_F64 = 2, LOCKSTEP_I32 = 3 };
/* How `extent` is to be read.
 * ROW_MAJOR: as a C array, x[samples][channels][ny][nx]: samples first, the last extent is contiguous.
 * COLUMN_MAJOR: as a Fortran array, x(nx, ny, channels, samples): the first extent is contiguous, samples last. Both
 *   examples are the same memory and the same samples of shape (channels, ny, nx): nothing is transposed.
 * STRIDED: samples first, and `stride` says how many elements (not bytes) lie between neighbours along each extent; it
 *   may be negative. `data` is the address of the element whose indices are all 0. */
enum { LOCKSTEP_ROW_MAJOR = 0, LOCKSTEP_COLUMN_MAJOR = 1, LOCKSTEP_STRIDED = 2 };

/* An array of the program, which owns the memory. Its elements are samples: an input array of n samples of shape
 * (2, 64, 64) is (n, 2, 64, 64). Extents of 1 may be added or left out, so n samples of shape (1) may be (n) too. No
 * function keeps an address after it has returned. A dense array of the model's type is read in place, without a copy
 * of the library; any other is read once, element by element. */
typedef struct lockstep_array {
  size_t size; /* sizeof(lockstep_array) */
  void* data;
  int32_t type;
  int32_t rank;
  int32_t order;
  int32_t reserved; /* 0 */
  int64_t extent[LOCKSTEP_MAX_RANK];
  int64_t stride[LOCKSTEP_MAX_RANK]; /* of LOCKSTEP_STRIDED alone */
} lockstep_array;
#define LOCKSTEP_ARRAY_INIT                                                          \
  {                                                                                  \
    sizeof(lockstep_array), NULL, LOCKSTEP_F64, 0, LOCKSTEP_ROW_MAJOR, 0, {0}, { 0 } \
  }

/* ---- models: no MPI ---- */

/* A model: a network, its weights, its loss. A trainer of a model has weights of its own. */
typedef struct lockstep_model lockstep_model;

/* Makes a model from its description, JSON text as in docs/c_and_fortran.md:
 *   {"input": [2], "output": [1], "loss": "mse",
 *    "layers": [{"type": "Linear", "in": 2, "out": 32}, {"type": "Tanh"}, {"type": "Linear", "in": 32, "out": 1}]}
 * `*model` is null after an error. */
LOCKSTEP_API int lockstep_model_create(const char* description, lockstep_model** model);
/* Makes a model, with its weights, from a file of lockstep_trainer_save() or lockstep_model_save(), or from a file of
 * ONNX (NAME.onnx) that has one input, one output and all their sizes but the number of samples; its type is f64 if
 * that of its input is. */
LOCKSTEP_API int lockstep_model_load(const char* path, lockstep_model** model);
/* Writes description and weights. The file is replaced as a whole: an error leaves the old one. A path that ends in
 * .onnx gets the network as ONNX, in f32 and for one sample, for other programs; NAME.c gets C99 source for programs
 * that only infer, with NAME.h, NAME.weights and NAME.onnx beside it (docs/in_situ.md), unless NAME.onnx is the file
 * from which the model was made. */
LOCKSTEP_API int lockstep_model_save(lockstep_model* model, const char* path);
/* Frees the model; its trainers stay usable. Null does nothing. */
LOCKSTEP_API void lockstep_model_free(lockstep_model* model);

/* The description as JSON in one line; valid as long as the model. Null for a null model. */
LOCKSTEP_API const char* lockstep_model_description(const lockstep_model* model);
/* The shape of one sample of the input and of the output: ranks, and up to LOCKSTEP_MAX_RANK extents. */
LOCKSTEP_API int lockstep_model_shapes(const lockstep_model* model, int32_t* input_rank, int64_t* input_extent,
                                       int32_t* output_rank, int64_t* output_extent);

/* Writes the predictions of all samples of `input` to the memory of `output`, of as many samples. */
LOCKSTEP_API int lockstep_model_predict(lockstep_model* model, const lockstep_array* input,
                                        const lockstep_array* output);
/* Writes the gradient of sum(direction * prediction) by the input to the memory of `gradient`, which has the shape of
 * `input`; `direction` has the shape of the output, null: ones. With one output per sample and no direction this is its
 * derivative by each input; in an adjoint solver the direction is the adjoint of the output. */
LOCKSTEP_API int lockstep_model_gradient(lockstep_model* model, const lockstep_array* input,
                                         const lockstep_array* direction, const lockstep_array* gradient);

/* ---- training ---- */

typedef struct lockstep_trainer lockstep_trainer;

/* A communicator of this process alone. MPI is initialised if the program has not done so, and never finalised. */
#define LOCKSTEP_COMM_ALONE INT64_MIN

typedef struct lockstep_trainer_options {
  size_t size;           /* sizeof(lockstep_trainer_options) */
  int64_t batch;         /* usual number of samples of a step over all ranks, for which memory is made; required */
  const char* optimizer; /* "adam", or JSON such as {"name": "sgd", "momentum": 0.9, "nesterov": true} */
  double weight_decay;
  double clip_norm;        /* largest norm of the gradient; 0: any */
  uint64_t seed;           /* of the initial weights, and of what is drawn from the memory of samples */
  int64_t memory;          /* samples that each rank remembers for lockstep_trainer_replay(); 0: none */
  int32_t skip_not_finite; /* 1: a step whose loss is not finite is skipped and counted, in place of an error */
  int32_t messages;        /* 1: gradients travel by messages, also within a node, and need no room in /dev/shm */
} lockstep_trainer_options;
#define LOCKSTEP_TRAINER_OPTIONS_INIT \
  { sizeof(lockstep_trainer_options), 0, "adam", 0.0, 0.0, 0, 0, 0, 0 }

/* What a call did, the same on all ranks but for `own_samples`. */
typedef struct lockstep_result {
  size_t size;         /* sizeof(lockstep_result) */
  double loss;         /* of the last step: the mean over the samples of all ranks; 0 without samples */
  double seconds;      /* time of the call on this rank */
  int64_t samples;     /* over all ranks and steps of the call */
  int64_t own_samples; /* of this rank */
  int64_t steps;       /* steps of this call: 0 or 1, more of lockstep_trainer_replay() */
  int64_t updates;     /* steps since the trainer's first, those that were skipped included */
  int64_t skipped;     /* of `updates` those that were skipped (skip_not_finite) */
  int32_t stop;        /* 1: the callback of some rank has asked for an end */
  int32_t reserved;
} lockstep_result;
#define LOCKSTEP_RESULT_INIT \
  { sizeof(lockstep_result), 0.0, 0.0, 0, 0, 0, 0, 0, 0, 0 }

/* Makes a trainer over a duplicate of `comm`, the MPI_Fint of a communicator (lockstep_c_mpi.h has the call with an
 * MPI_Comm), or over LOCKSTEP_COMM_ALONE. The caller has initialised MPI, MPI_THREAD_FUNNELED is enough, and may free
 * its communicator. All memory, that in /dev/shm included, is reserved here. Weights begin as those of a loaded model,
 * or else at random. Collective over `comm`. */
LOCKSTEP_API int lockstep_trainer_create(lockstep_model* model, int64_t comm, const lockstep_trainer_options* options,
                                         lockstep_trainer** trainer);
/* Frees the trainer. Collective, unless the trainer has become unusable. Null does nothing. */
LOCKSTEP_API void lockstep_trainer_free(lockstep_trainer* trainer);

/* Trains one step on the samples of all ranks; ranks may have different numbers of samples, and null arrays for none.
 * Collective, with the same rate on all ranks. `result` may be null. */
LOCKSTEP_API int lockstep_trainer_step(lockstep_trainer* trainer, const lockstep_array* input,
                                       const lockstep_array* target, double learning_rate, lockstep_result* result);
/* Computes loss and metrics over the samples of all ranks. Collective; arrays as for lockstep_trainer_step(). */
LOCKSTEP_API int lockstep_trainer_evaluate(lockstep_trainer* trainer, const lockstep_array* input,
                                           const lockstep_array* target, lockstep_result* result);
/* A metric of the last step, replay or evaluation by its name, as the model's description lists it. */
LOCKSTEP_API int lockstep_trainer_metric(const lockstep_trainer* trainer, const char* name, double* value);

/* As lockstep_model_predict() and lockstep_model_gradient(), with the trainer's weights; by this rank alone. */
LOCKSTEP_API int lockstep_trainer_predict(lockstep_trainer* trainer, const lockstep_array* input,
                                          const lockstep_array* output);
LOCKSTEP_API int lockstep_trainer_gradient(lockstep_trainer* trainer, const lockstep_array* input,
                                           const lockstep_array* direction, const lockstep_array* gradient);

/* Copies samples into this rank's memory of `options.memory` samples. When it is full, a new sample takes a random
 * place or is not kept, such that every sample so far is there with the same chance: early states are not forgotten.
 * A sample that is NaN or infinite is refused (LOCKSTEP_ERROR_NOT_FINITE), with all of the call. By this rank alone. */
LOCKSTEP_API int lockstep_trainer_remember(lockstep_trainer* trainer, const lockstep_array* input,
                                           const lockstep_array* target);
/* Trains up to `steps` steps, each on `samples` samples drawn from each rank's memory, and ends before a step that
 * would probably pass `seconds` since the last rank has called, by the slowest rank's clock (infinity: no limit). Where
 * there was time for none, the result has 0 `steps` and no loss. With a limit of time the number of steps is the same
 * on all ranks, but differs from run to run. A replay also ends after a step whose callback asks for it, on any rank.
 * After an error the steps before it stay, and the result is not written. Collective, with the same values on all
 * ranks. */
LOCKSTEP_API int lockstep_trainer_replay(lockstep_trainer* trainer, int64_t samples, int64_t steps, double seconds,
                                         double learning_rate, lockstep_result* result);

/* Called on every rank after each step. A result other than 0 asks for an end: the `stop` of that step's result is set
 * on this rank, and of the next step's on all ranks; a replay ends there, with `stop` set on all ranks. What a call has
 * told is forgotten by the next one. A callback must not call the library; one that throws a C++ exception makes the
 * call return LOCKSTEP_ERROR_CALLBACK, after the step: lockstep_trainer_step() on this rank, lockstep_trainer_replay()
 * on all ranks. */
typedef int (*lockstep_step_function)(const lockstep_result* result, void* user);
LOCKSTEP_API int lockstep_trainer_on_step(lockstep_trainer* trainer, lockstep_step_function function, void* user);

/* Writes the whole state: description, weights, optimizer, number of updates, and the memories of all ranks, from which
 * lockstep_trainer_resume() goes on with the same bits, and lockstep_model_load() predicts. The file is replaced as a
 * whole. Collective; rank 0 writes. */
LOCKSTEP_API int lockstep_trainer_save(lockstep_trainer* trainer, const char* path);
/* Continues from such a file, whose model and optimizer must be the trainer's. With another number of ranks, each rank
 * takes the memory of its number, if there is one. Collective; rank 0 reads. */
LOCKSTEP_API int lockstep_trainer_resume(lockstep_trainer* trainer, const char* path);

/* NOLINTEND(modernize-use-using,readability-identifier-naming) */

#ifdef __cplusplus
}
#endif
#endif
