/* Options of trainers and descriptions, one by one, against values computed by hand: under mpirun on any
 * number of ranks. Prints what does not hold, and ends with 1 then. C99. */
#include <lockstep_c_mpi.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

static int ranks;

static lockstep_array array(void* data, int32_t type, int64_t samples) {
  lockstep_array a = LOCKSTEP_ARRAY_INIT;
  a.data = data;
  a.type = type;
  a.rank = 2;
  a.extent[0] = samples;
  a.extent[1] = 1;
  return a;
}

/* y = w x: one weight, so that a step can be computed by hand. */
static const char* const kLine =
    "{\"input\": [1], \"output\": [1], \"type\": \"f64\", \"layers\": ["
    "{\"type\": \"Linear\", \"in\": 1, \"out\": 1, \"bias\": false}]}";
enum { kSamples = 2 };

static lockstep_trainer* trainer_of(lockstep_model* model, lockstep_trainer_options options) {
  lockstep_trainer* trainer = NULL;
  options.batch = (int64_t)kSamples * ranks;
  options.optimizer = "{\"name\": \"sgd\", \"momentum\": 0.0}";
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_OK);
  return trainer;
}

static double weight(lockstep_trainer* trainer) {
  double one = 1, y = 0;
  lockstep_array in = array(&one, LOCKSTEP_F64, 1), out = array(&y, LOCKSTEP_F64, 1);
  EXPECT(lockstep_trainer_predict(trainer, &in, &out) == LOCKSTEP_OK);
  return y;
}

/* One step on y = 3 x; all ranks have the same samples, so the gradient does not depend on their number. */
static void step_by_hand(lockstep_model* model, double decay, double clip) {
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  double x[kSamples] = {1, -2}, y[kSamples] = {3, -6}, rate = 0.01, w, gradient = 0, norm;
  lockstep_array in = array(x, LOCKSTEP_F64, kSamples), out = array(y, LOCKSTEP_F64, kSamples);
  lockstep_trainer* trainer;
  options.weight_decay = decay;
  options.clip_norm = clip;
  trainer = trainer_of(model, options);
  w = weight(trainer);
  for (int i = 0; i < kSamples; ++i) gradient += 2 * x[i] * (w * x[i] - y[i]) / kSamples;
  norm = fabs(gradient);
  if (clip > 0 && norm > clip) gradient *= clip / norm;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, rate, NULL) == LOCKSTEP_OK);
  EXPECT(fabs(weight(trainer) - (w - rate * (gradient + decay * w))) < 1e-6);
  lockstep_trainer_free(trainer);
}

static void skipped_steps(lockstep_model* model) {
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  double x[kSamples] = {1, NAN}, y[kSamples] = {3, 3};
  lockstep_array in = array(x, LOCKSTEP_F64, kSamples), out = array(y, LOCKSTEP_F64, kSamples);
  lockstep_trainer* trainer;
  double before;
  options.skip_not_finite = 1;
  trainer = trainer_of(model, options);
  before = weight(trainer);
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_OK);
  EXPECT(result.skipped == 1 && result.updates == 1 && weight(trainer) == before);
  x[1] = 2;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_OK);
  EXPECT(result.skipped == 1 && result.updates == 2 && weight(trainer) != before);
  lockstep_trainer_free(trainer);

  options.skip_not_finite = 0;
  trainer = trainer_of(model, options);
  x[1] = NAN;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_ERROR_NOT_FINITE);
  EXPECT(SAYS("row 1 of this rank's 2")); /* the caller's row, and no number of ours */
  lockstep_trainer_free(trainer);
}

/* Smaller structures are those of older headers, larger ones of newer ones: what both sides know is read. */
static void sizes(lockstep_model* model) {
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  lockstep_trainer* trainer = NULL;
  options.batch = ranks;
  options.size = offsetof(lockstep_trainer_options, messages);
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_OK);
  lockstep_trainer_free(trainer);
  trainer = NULL;
  options.size = sizeof options + 8;
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_OK);
  lockstep_trainer_free(trainer);
  trainer = NULL;
  options.size = 100 * sizeof options; /* no structure at all */
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_ERROR_ARGUMENT && trainer == NULL);
  options.size = 0;
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_ERROR_ARGUMENT && trainer == NULL);
}

/* Classes are whole numbers; the loss is -log of the softmax at the class. */
static void classes(void) {
  static const char* const kClasses =
      "{\"input\": [1], \"output\": [3], \"type\": \"f64\", \"loss\": \"cross_entropy\", \"layers\": ["
      "{\"type\": \"Linear\", \"in\": 1, \"out\": 3}]}";
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  lockstep_model* model = NULL;
  lockstep_trainer* trainer;
  double x[kSamples] = {0.5, -1.5}, logits[3 * kSamples], expected = 0;
  int32_t y[kSamples] = {2, 0};
  lockstep_array in = array(x, LOCKSTEP_F64, kSamples), target = array(y, LOCKSTEP_I32, kSamples);
  lockstep_array out = array(logits, LOCKSTEP_F64, kSamples);
  out.extent[1] = 3;
  target.rank = 1;
  EXPECT(lockstep_model_create(kClasses, &model) == LOCKSTEP_OK);
  trainer = trainer_of(model, options);
  EXPECT(lockstep_trainer_predict(trainer, &in, &out) == LOCKSTEP_OK);
  for (int i = 0; i < kSamples; ++i) {
    const double* row = logits + 3 * i;
    expected += (log(exp(row[0]) + exp(row[1]) + exp(row[2])) - row[y[i]]) / kSamples;
  }
  EXPECT(lockstep_trainer_evaluate(trainer, &in, &target, &result) == LOCKSTEP_OK && fabs(result.loss - expected) < 1e-6);
  y[1] = 3;
  EXPECT(lockstep_trainer_evaluate(trainer, &in, &target, &result) == LOCKSTEP_ERROR_ARGUMENT && SAYS("3"));
  lockstep_trainer_free(trainer);
  lockstep_model_free(model);
}

/* Layers that do not fit each other, or not the shapes, are errors of the description. */
static void descriptions(void) {
  lockstep_model* model = NULL;
  EXPECT(lockstep_model_create("{\"input\": [2], \"output\": [1], \"layers\": [{\"type\": \"Linear\", \"in\": 2, \"out\": 8, "
                               "\"name\": \"first\"}, {\"type\": \"Linear\", \"in\": 9, \"out\": 1, \"name\": \"second\"}]}",
                               &model) == LOCKSTEP_ERROR_ARGUMENT && model == NULL && SAYS("second"));
  EXPECT(lockstep_model_create("{\"input\": [2], \"output\": [3], \"layers\": [{\"type\": \"Linear\", \"in\": 2, \"out\": 1}]}",
                               &model) == LOCKSTEP_ERROR_ARGUMENT && model == NULL && SAYS("'output'"));
  EXPECT(lockstep_model_create("{\"input\": [2], \"output\": [3], \"onnx\": \"/nonexistent/net.onnx\"}", &model) ==
             LOCKSTEP_ERROR_ARGUMENT && SAYS("/nonexistent/net.onnx"));
  EXPECT(lockstep_model_load("/nonexistent/net.onnx", &model) == LOCKSTEP_ERROR_FILE && SAYS("/nonexistent/net.onnx"));
}

int main(int argc, char** argv) {
  lockstep_model* model = NULL;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  descriptions();
  EXPECT(lockstep_model_create(kLine, &model) == LOCKSTEP_OK);
  step_by_hand(model, 0, 0);
  step_by_hand(model, 0.5, 0);
  step_by_hand(model, 0, 0.25);
  skipped_steps(model);
  sizes(model);
  classes();
  lockstep_model_free(model);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
