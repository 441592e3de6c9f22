// What lockstep_c.h promises of failures that begin on one rank: all ranks return, and nothing has changed where the
// header says so. Under mpirun on any number of ranks; prints what does not hold, and ends with 1 then.
#include <lockstep_c_mpi.h>

#include <cstdint>
#include <stdexcept>
#include <string>

#include "expect.h"

namespace {

int ranks = 1;

bool is_last() { return rank == ranks - 1; }

lockstep_array array(double* data, int64_t samples) {
  lockstep_array a = LOCKSTEP_ARRAY_INIT;
  a.data = data;
  a.type = LOCKSTEP_F64;
  a.rank = 2;
  a.extent[0] = samples;
  a.extent[1] = 1;
  return a;
}

lockstep_trainer_options options_of(int64_t memory) {
  lockstep_trainer_options options = LOCKSTEP_TRAINER_OPTIONS_INIT;
  options.batch = ranks;
  options.memory = memory;
  return options;
}

lockstep_trainer* trainer_of(lockstep_model* model) {
  const lockstep_trainer_options options = options_of(4);
  lockstep_trainer* trainer = nullptr;
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_OK);
  return trainer;
}

int fails_on_the_last(const lockstep_result* result, void*) {
  if (is_last() && result->updates >= 2) throw std::runtime_error("the program's own trouble");
  return 0;
}

void callback_of_one_rank(lockstep_model* model) {
  lockstep_trainer* trainer = trainer_of(model);
  double x = 1, y = 2;
  const lockstep_array in = array(&x, 1), out = array(&y, 1);
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  EXPECT(lockstep_trainer_remember(trainer, &in, &out) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_on_step(trainer, fails_on_the_last, nullptr) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_replay(trainer, 1, 5, 60, 0.1, &result) == LOCKSTEP_ERROR_CALLBACK);
  EXPECT(SAYS("after update 2: the program's own trouble"));
  EXPECT(lockstep_trainer_on_step(trainer, nullptr, nullptr) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_replay(trainer, 1, 3, 60, 0.1, &result) == LOCKSTEP_OK && result.updates == 5);
  lockstep_trainer_free(trainer);
}

void result_of_another_size(lockstep_model* model) {
  lockstep_trainer* trainer = trainer_of(model);
  double x = 1, y = 2;
  const lockstep_array in = array(&x, 1), out = array(&y, 1);
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  if (is_last()) result.size = 0;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_ERROR_ARGUMENT);
  EXPECT(SAYS("lockstep_result.size is 0"));
  EXPECT(lockstep_trainer_evaluate(trainer, &in, &out, &result) == LOCKSTEP_ERROR_ARGUMENT);
  EXPECT(lockstep_trainer_replay(trainer, 1, 1, 60, 0.1, &result) == LOCKSTEP_ERROR_ARGUMENT);
  result = LOCKSTEP_RESULT_INIT;
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_OK && result.updates == 1);
  lockstep_trainer_free(trainer);
}

void options_that_differ(lockstep_model* model) {
  lockstep_trainer_options options = options_of(0);
  lockstep_trainer* trainer = nullptr;
  options.optimizer = is_last() ? R"({"name": "sgd", "momentum": 0.8})" : R"({"name": "sgd", "momentum": 0.9})";
  const int code = lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer);
  EXPECT(ranks == 1 ? code == LOCKSTEP_OK : code == LOCKSTEP_ERROR_ARGUMENT && SAYS("momentum 0.8"));
  lockstep_trainer_free(trainer);
  options = options_of(is_last() ? INT64_C(1) << 62 : 0);
  trainer = nullptr;
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_ERROR_ARGUMENT);
  EXPECT(trainer == nullptr && SAYS("4611686018427387904 samples"));
}

void deep_description() {
  const std::string deep(100000, '[');
  lockstep_model* model = nullptr;
  EXPECT(lockstep_model_create(deep.c_str(), &model) == LOCKSTEP_ERROR_ARGUMENT && model == nullptr);
  const std::string closed = std::string(100, '[') + std::string(100, ']');
  EXPECT(lockstep_model_create(closed.c_str(), &model) == LOCKSTEP_ERROR_ARGUMENT && SAYS("at most 64 levels"));
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  lockstep_model* model = nullptr;
  EXPECT(lockstep_model_create(
             R"({"input": [1], "output": [1], "type": "f64", "layers": [{"type": "Linear", "in": 1, "out": 1}]})",
             &model) == LOCKSTEP_OK);
  callback_of_one_rank(model);
  result_of_another_size(model);
  options_that_differ(model);
  deep_description();
  lockstep_model_free(model);
  MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return failures == 0 ? 0 : 1;
}
