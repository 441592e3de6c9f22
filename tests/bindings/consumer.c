/* A program in C that trains, evaluates, predicts, differentiates, saves and resumes, and sees every error as a code.
 * consumer FOLDER; under mpirun on any number of ranks. Prints what does not hold, and ends with 1 then. C99. */
#include <lockstep_c_mpi.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "expect.h"

static int ranks;

static const char* const kNetwork =
    "{\"input\": [2], \"output\": [1], \"type\": \"f64\", \"metrics\": [\"rmse\", \"r2\"], \"layers\": ["
    "{\"type\": \"Linear\", \"in\": 2, \"out\": 16, \"name\": \"hidden\"}, {\"type\": \"Tanh\"},"
    "{\"type\": \"Linear\", \"in\": 16, \"out\": 1}]}";
enum { kSamples = 32 };

static lockstep_array array(void* data, int32_t type, int64_t samples, int64_t features) {
  lockstep_array a = LOCKSTEP_ARRAY_INIT;
  a.data = data;
  a.type = type;
  a.rank = 2;
  a.extent[0] = samples;
  a.extent[1] = features;
  return a;
}

static void fill(double* x, double* y, int seed) {
  for (int i = 0; i < kSamples; ++i) {
    x[2 * i] = sin(1.0 + i + 7 * seed);
    x[2 * i + 1] = cos(2.0 * i + 3 * seed);
    y[i] = 0.5 * x[2 * i] - 0.25 * x[2 * i + 1] * x[2 * i + 1];
  }
}

/* A trainer on all ranks, or none on any: what follows is collective. */
static lockstep_trainer* make(lockstep_model* model, int64_t memory) {
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  options.batch = (int64_t)kSamples * ranks;
  options.seed = 3;
  options.memory = memory;
  lockstep_trainer* trainer = NULL;
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_OK);
  const int made = trainer != NULL;
  int all = 0;
  MPI_Allreduce(&made, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (all) return trainer;
  lockstep_trainer_free(trainer);
  return NULL;
}

static void descriptions(void) {
  lockstep_model* model = (lockstep_model*)&failures;
  EXPECT(lockstep_model_create("{\"input\": [2]", &model) == LOCKSTEP_ERROR_ARGUMENT && model == NULL);
  EXPECT(lockstep_model_create("{\"input\": [2], \"output\": [1], \"layers\": [{\"type\": \"Lineer\"}]}", &model) ==
             LOCKSTEP_ERROR_ARGUMENT && SAYS("unknown type 'Lineer'") && SAYS("Linear"));
  EXPECT(lockstep_model_create("{\"input\": [2], \"output\": [1], \"layers\": [{\"type\": \"Linear\", \"in\": 2, \"out\": 1, "
                               "\"bais\": true}]}", &model) == LOCKSTEP_ERROR_ARGUMENT && SAYS("'bais'"));
  EXPECT(lockstep_model_create(NULL, &model) == LOCKSTEP_ERROR_ARGUMENT);
  EXPECT(lockstep_model_load("/nonexistent/file.h5", &model) == LOCKSTEP_ERROR_FILE && SAYS("/nonexistent"));
  EXPECT(lockstep_model_predict(NULL, NULL, NULL) == LOCKSTEP_ERROR_ARGUMENT);
  EXPECT(strcmp(lockstep_error_name(LOCKSTEP_ERROR_FILE), "LOCKSTEP_ERROR_FILE") == 0 && lockstep_abi_version() == 1);
  /* A model of the zoo by its name. */
  EXPECT(lockstep_model_create("{\"input\": [2], \"output\": [3], \"field_model\": {\"name\": \"mlp\", \"width\": 8}}", &model) ==
         LOCKSTEP_OK);
  lockstep_model_free(model);
}

/* f64 row-major, f64 column-major (as Fortran has it) and f32 with strides describe the same samples. */
static void layouts(lockstep_trainer* trainer) {
  double x[2 * kSamples], y[kSamples], by_rows[kSamples], by_columns[kSamples], by_strides[kSamples];
  float planes[2 * kSamples];
  fill(x, y, 0);
  lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), out = array(by_rows, LOCKSTEP_F64, kSamples, 1);
  EXPECT(lockstep_trainer_predict(trainer, &in, &out) == LOCKSTEP_OK);
  lockstep_array fortran = array(x, LOCKSTEP_F64, 2, kSamples);
  fortran.order = LOCKSTEP_COLUMN_MAJOR;
  out = array(by_columns, LOCKSTEP_F64, kSamples, 1);
  EXPECT(lockstep_trainer_predict(trainer, &fortran, &out) == LOCKSTEP_OK);
  for (int i = 0; i < kSamples; ++i) planes[i] = (float)x[2 * i], planes[kSamples + i] = (float)x[2 * i + 1];
  lockstep_array strided = array(planes, LOCKSTEP_F32, kSamples, 2);
  strided.order = LOCKSTEP_STRIDED;
  strided.stride[0] = 1;
  strided.stride[1] = kSamples;
  out = array(by_strides, LOCKSTEP_F64, kSamples, 1);
  EXPECT(lockstep_trainer_predict(trainer, &strided, &out) == LOCKSTEP_OK);
  for (int i = 0; i < kSamples; ++i) {
    EXPECT(by_rows[i] == by_columns[i]);
    EXPECT(fabs(by_rows[i] - by_strides[i]) < 1e-5);
  }
  in.extent[1] = 3;
  EXPECT(lockstep_trainer_predict(trainer, &in, &out) == LOCKSTEP_ERROR_ARGUMENT && SAYS("'input'") && SAYS("(2)"));
}

static void gradients(lockstep_trainer* trainer) {
  double x[2 * kSamples], y[kSamples], g[2 * kSamples], above[kSamples], below[kSamples];
  fill(x, y, 1);
  lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), out = array(g, LOCKSTEP_F64, kSamples, 2);
  EXPECT(lockstep_trainer_gradient(trainer, &in, NULL, &out) == LOCKSTEP_OK);
  lockstep_array up = array(above, LOCKSTEP_F64, kSamples, 1), down = array(below, LOCKSTEP_F64, kSamples, 1);
  const double h = 1e-5;
  for (int d = 0; d < 2; ++d) {
    for (int i = 0; i < kSamples; ++i) x[2 * i + d] += h;
    EXPECT(lockstep_trainer_predict(trainer, &in, &up) == LOCKSTEP_OK);
    for (int i = 0; i < kSamples; ++i) x[2 * i + d] -= 2 * h;
    EXPECT(lockstep_trainer_predict(trainer, &in, &down) == LOCKSTEP_OK);
    for (int i = 0; i < kSamples; ++i) x[2 * i + d] += h;
    for (int i = 0; i < kSamples; ++i) EXPECT(fabs((above[i] - below[i]) / (2 * h) - g[2 * i + d]) < 1e-7);
  }
}

/* What fails is a code on all ranks, and the next call works. */
static void errors(lockstep_trainer* trainer, const char* folder) {
  double x[2 * kSamples], y[kSamples];
  char path[4096];
  fill(x, y, rank);
  lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), out = array(y, LOCKSTEP_F64, kSamples, 1);
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  const int last = rank == ranks - 1;
  if (last) in.extent[1] = 3; /* on one rank alone */
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, &result) == LOCKSTEP_ERROR_ARGUMENT && SAYS("'input'"));
  in.extent[1] = 2;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, NAN, &result) == LOCKSTEP_ERROR_ARGUMENT);
  if (last) y[0] = NAN;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, &result) == LOCKSTEP_ERROR_NOT_FINITE);
  EXPECT(lockstep_trainer_evaluate(trainer, &in, &out, &result) == LOCKSTEP_ERROR_NOT_FINITE);
  y[0] = 0;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, &result) == LOCKSTEP_OK && isfinite(result.loss));
  /* A disk without room, as a limit of the size of files makes one. */
  struct rlimit before, small;
  getrlimit(RLIMIT_FSIZE, &before);
  small = before;
  small.rlim_cur = 64;
  signal(SIGXFSZ, SIG_IGN);
  snprintf(path, sizeof(path), "%s/full-%d.h5", folder, ranks);
  setrlimit(RLIMIT_FSIZE, &small);
  const int full = lockstep_trainer_save(trainer, path);
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT(full == LOCKSTEP_ERROR_FILE && SAYS("full-"));
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, &result) == LOCKSTEP_OK);
  double value = 0;
  EXPECT(lockstep_trainer_metric(trainer, "rmse", &value) == LOCKSTEP_OK && value > 0);
  EXPECT(lockstep_trainer_metric(trainer, "nothing", &value) == LOCKSTEP_ERROR_ARGUMENT && SAYS("rmse"));
}

static int asks_for_an_end(const lockstep_result* result, void* user) {
  ++*(int*)user;
  return result->updates >= 0 && rank == 0;
}

/* Some steps with replay; a ragged batch: rank 0 alone has samples in every third step. */
static double train(lockstep_trainer* trainer, int begin, int end) {
  double x[2 * kSamples], y[kSamples];
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  for (int n = begin; n < end; ++n) {
    fill(x, y, n * ranks + rank);
    const lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), out = array(y, LOCKSTEP_F64, kSamples, 1);
    EXPECT(lockstep_trainer_remember(trainer, &in, &out) == LOCKSTEP_OK);
    const int mine = n % 3 != 0 || rank == 0;
    EXPECT(lockstep_trainer_step(trainer, mine ? &in : NULL, mine ? &out : NULL, 1e-2, &result) == LOCKSTEP_OK);
    EXPECT(result.samples == (n % 3 != 0 ? (int64_t)kSamples * ranks : kSamples));
    EXPECT(lockstep_trainer_replay(trainer, 16, 2, INFINITY, 1e-2, &result) == LOCKSTEP_OK && result.steps == 2);
  }
  fill(x, y, 1000 + rank);
  const lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), out = array(y, LOCKSTEP_F64, kSamples, 1);
  EXPECT(lockstep_trainer_evaluate(trainer, &in, &out, &result) == LOCKSTEP_OK);
  return result.loss;
}

static void saves(lockstep_model* model, const char* folder) {
  char path[4096];
  snprintf(path, sizeof(path), "%s/state-%d.h5", folder, ranks);
  lockstep_trainer* whole = make(model, 100);
  train(whole, 0, 20);
  EXPECT(lockstep_trainer_save(whole, path) == LOCKSTEP_OK);
  const double expected = train(whole, 20, 40);
  EXPECT(expected < 0.05); /* the values have a deviation of 0.4 */
  lockstep_trainer* second = make(model, 100);
  EXPECT(lockstep_trainer_resume(second, path) == LOCKSTEP_OK);
  EXPECT(train(second, 20, 40) == expected); /* bit for bit */
  EXPECT(lockstep_trainer_resume(second, "/nonexistent/state.h5") == LOCKSTEP_ERROR_FILE);
  EXPECT(lockstep_trainer_resume(second, path) == LOCKSTEP_OK);
  lockstep_model* loaded = NULL;
  EXPECT(lockstep_model_load(path, &loaded) == LOCKSTEP_OK);
  double x[2 * kSamples], y[kSamples], by_model[kSamples], by_trainer[kSamples];
  fill(x, y, 5);
  const lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), a = array(by_model, LOCKSTEP_F64, kSamples, 1),
                       b = array(by_trainer, LOCKSTEP_F64, kSamples, 1);
  EXPECT(lockstep_model_predict(loaded, &in, &a) == LOCKSTEP_OK && lockstep_trainer_predict(second, &in, &b) == LOCKSTEP_OK);
  EXPECT(memcmp(by_model, by_trainer, sizeof(by_model)) == 0);
  int calls = 0;
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  EXPECT(lockstep_trainer_on_step(second, asks_for_an_end, &calls) == LOCKSTEP_OK);
  /* Rank 0 asks for an end, which all ranks make; the next call knows nothing of it. */
  EXPECT(lockstep_trainer_replay(second, 16, 5, INFINITY, 1e-2, &result) == LOCKSTEP_OK);
  EXPECT(result.stop == 1 && result.steps == 1 && calls == 1);
  EXPECT(lockstep_trainer_on_step(second, NULL, NULL) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_replay(second, 16, 5, INFINITY, 1e-2, &result) == LOCKSTEP_OK);
  EXPECT(result.stop == 0 && result.steps == 5 && calls == 1);
  lockstep_model_free(loaded);
  lockstep_trainer_free(second);
  lockstep_trainer_free(whole);
}

/* An exception in the middle of a step (LOCKSTEP_FAULT) makes this trainer unusable, and no other. */
static void faults(lockstep_model* model) {
  double x[2 * kSamples], y[kSamples];
  fill(x, y, rank);
  const lockstep_array in = array(x, LOCKSTEP_F64, kSamples, 2), out = array(y, LOCKSTEP_F64, kSamples, 1);
  lockstep_trainer* trainer = make(model, 0);
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, NULL) == LOCKSTEP_OK);
  const int code = lockstep_trainer_step(trainer, &in, &out, 1e-2, NULL);
  EXPECT(code == (rank == 0 ? LOCKSTEP_ERROR_OTHER : LOCKSTEP_ERROR_PEER));
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, NULL) == LOCKSTEP_ERROR_UNUSABLE);
  lockstep_trainer_free(trainer);
  MPI_Barrier(MPI_COMM_WORLD); /* the program's own MPI is as before */
  trainer = make(model, 0);
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 1e-2, NULL) == LOCKSTEP_OK);
  lockstep_trainer_free(trainer);
}

int main(int argc, char** argv) {
  const char* folder = argc > 1 ? argv[1] : ".";
  lockstep_model* model = NULL;
  int provided = 0, all = 0;
  lockstep_trainer* none = NULL;
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  EXPECT(lockstep_model_create(kNetwork, &model) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_create(model, 0, &options, &none) == LOCKSTEP_ERROR_ARGUMENT && SAYS("MPI_Init"));
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (getenv("LOCKSTEP_FAULT") != NULL) {
    faults(model);
  } else {
    descriptions();
    EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &none) == LOCKSTEP_ERROR_ARGUMENT && SAYS("batch"));
    lockstep_trainer* trainer = make(model, 0);
    if (trainer != NULL) {
      layouts(trainer);
      gradients(trainer);
      errors(trainer, folder);
    }
    lockstep_trainer_free(trainer);
    saves(model, folder);
  }
  lockstep_model_free(model);
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  if (rank == 0) printf("%s\n", all == 0 ? "consumer: all holds" : "consumer: failures");
  return all != 0;
}
