// What lockstep_c.h promises of failures that begin on one rank: all ranks return, and nothing has changed where the
// header says so. Under mpirun on any number of ranks; prints what does not hold, and ends with 1 then.
#include <lockstep_c_mpi.h>
#include <sys/resource.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "../limits_memory.h"
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

int asks_on_the_last(const lockstep_result* result, void*) { return is_last() && result->updates == 1 ? 1 : 0; }

// The rank whose callback asks for an end knows it at once, the others with the next step, and then it is forgotten.
void end_that_one_rank_asks_for(lockstep_model* model) {
  lockstep_trainer* trainer = trainer_of(model);
  double x = 1, y = 2;
  const lockstep_array in = array(&x, 1), out = array(&y, 1);
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  EXPECT(lockstep_trainer_on_step(trainer, asks_on_the_last, nullptr) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_OK && result.stop == (is_last() ? 1 : 0));
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_OK && result.stop == 1);
  EXPECT(lockstep_trainer_step(trainer, &in, &out, 0.1, &result) == LOCKSTEP_OK && result.stop == 0);
  lockstep_trainer_free(trainer);
}

// The memories of all ranks do not fit on rank 0, which gathers them: an error on all ranks, after which all is as
// before.
void save_without_memory(lockstep_model* model, const std::string& folder) {
  constexpr int64_t kRows = int64_t{3} << 20;  // of 16 bytes: a piece of memory that the heap maps by itself
  lockstep_trainer_options options = options_of(kRows);
  lockstep_trainer* trainer = nullptr;
  EXPECT(lockstep_trainer_create_mpi(model, MPI_COMM_WORLD, &options, &trainer) == LOCKSTEP_OK);
  std::vector<double> values(kRows, 0.5);
  const lockstep_array many = array(values.data(), kRows), one = array(values.data(), 1);
  EXPECT(lockstep_trainer_remember(trainer, &many, &many) == LOCKSTEP_OK);
  EXPECT(lockstep_trainer_step(trainer, &one, &one, 0.1, nullptr) == LOCKSTEP_OK);
  rlim_t data = 0;  // kB
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word == "VmData:") status >> data;
  }
  rlimit before{};
  EXPECT(data > 0 && getrlimit(RLIMIT_DATA, &before) == 0);
  const rlimit small{1024 * data + (rlim_t{16} << 20), before.rlim_max};
  if (rank == 0) EXPECT(setrlimit(RLIMIT_DATA, &small) == 0);
  const int code = lockstep_trainer_save(trainer, (folder + "/large.h5").c_str());
  if (rank == 0) EXPECT(setrlimit(RLIMIT_DATA, &before) == 0);
  EXPECT(code == LOCKSTEP_ERROR_MEMORY);
  EXPECT(lockstep_trainer_step(trainer, &one, &one, 0.1, nullptr) == LOCKSTEP_OK);
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

void calls_that_differ(lockstep_model* model) {
  lockstep_trainer* trainer = trainer_of(model);
  double x = 1, y = 2;
  const lockstep_array in = array(&x, 1), out = array(&y, 1);
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  EXPECT(lockstep_trainer_remember(trainer, &in, &out) == LOCKSTEP_OK);
  if (ranks > 1) {
    const int code = is_last() ? lockstep_trainer_save(trainer, "/nonexistent/state.h5")
                               : lockstep_trainer_replay(trainer, 1, 1, 60, 0.1, &result);
    EXPECT(code == LOCKSTEP_ERROR_ARGUMENT && SAYS("lockstep_trainer_save()") && SAYS("lockstep_trainer_replay()"));
    EXPECT(lockstep_trainer_step(trainer, &in, &out, is_last() ? 0.1 : 0.2, &result) == LOCKSTEP_ERROR_ARGUMENT);
    EXPECT(SAYS("the learning rate is 0.2 on rank 0, and 0.1 on rank"));
  }
  EXPECT(lockstep_trainer_save(trainer, "/nonexistent/state.h5") == LOCKSTEP_ERROR_FILE);
  EXPECT(lockstep_trainer_replay(trainer, 1, 1, 60, 0.1, &result) == LOCKSTEP_OK && result.updates == 1);
  lockstep_trainer_free(trainer);
}

void samples_that_are_not_finite(lockstep_model* model) {
  lockstep_trainer* trainer = trainer_of(model);
  double x[2] = {1, std::numeric_limits<double>::quiet_NaN()}, y[2] = {2, 3};
  const lockstep_array in = array(x, 2), out = array(y, 2);
  lockstep_result result = LOCKSTEP_RESULT_INIT;
  EXPECT(lockstep_trainer_remember(trainer, &in, &out) == LOCKSTEP_ERROR_NOT_FINITE);
  EXPECT(SAYS("'input': element 0 of sample 1"));
  EXPECT(lockstep_trainer_remember(trainer, &out, &in) == LOCKSTEP_ERROR_NOT_FINITE && SAYS("'target'"));
  EXPECT(lockstep_trainer_replay(trainer, 1, 1, 60, 0.1, &result) == LOCKSTEP_OK && result.steps == 0);
  lockstep_trainer_free(trainer);
}

// A model is written for other programs, and predicts the same when it is read again.
void exported_files(lockstep_model* model, const std::string& folder) {
  if (rank != 0) return;
  const std::string onnx = folder + "/line.onnx", source = folder + "/line.c";
  EXPECT(lockstep_model_save(model, onnx.c_str()) == LOCKSTEP_OK);
  EXPECT(lockstep_model_save(model, source.c_str()) == LOCKSTEP_OK);
  for (const char* end : {".c", ".h", ".weights", ".onnx"}) EXPECT(std::ifstream(folder + "/line" + end).good());
  EXPECT(lockstep_model_save(model, "/nonexistent/line.c") == LOCKSTEP_ERROR_FILE && SAYS("/nonexistent/line"));
  lockstep_model* again = nullptr;
  EXPECT(lockstep_model_load(onnx.c_str(), &again) == LOCKSTEP_OK);
  double x[3] = {1, -2, 0.5}, expected[3], found[3];
  const lockstep_array in = array(x, 3), first = array(expected, 3), second = array(found, 3);
  EXPECT(lockstep_model_predict(model, &in, &first) == LOCKSTEP_OK);
  EXPECT(lockstep_model_predict(again, &in, &second) == LOCKSTEP_OK);
  for (int i = 0; i < 3; ++i) EXPECT(std::abs(found[i] - expected[i]) < 1e-6);
  // NAME.onnx lies beside NAME.c: it is not written over while it is read, nor for a name that C cannot have.
  EXPECT(lockstep_model_save(again, source.c_str()) == LOCKSTEP_ERROR_FILE && SAYS("expected another name"));
  EXPECT(lockstep_model_save(again, (folder + "/line2.c").c_str()) == LOCKSTEP_OK);
  EXPECT(lockstep_model_save(model, (folder + "/2line.c").c_str()) == LOCKSTEP_ERROR_FILE && SAYS("letter in front"));
  EXPECT(!std::ifstream(folder + "/2line.onnx").good());
  lockstep_model_free(again);
}

// After MPI_Finalize the weights that ranks share are gone.
void after_the_end(lockstep_trainer* trainer) {
  double x = 1, y = 0;
  const lockstep_array in = array(&x, 1), out = array(&y, 1);
  EXPECT(lockstep_trainer_predict(trainer, &in, &out) == (ranks == 1 ? LOCKSTEP_OK : LOCKSTEP_ERROR_OTHER));
  EXPECT(ranks == 1 || SAYS("MPI was finalised before this call"));
  lockstep_trainer_free(trainer);
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
  end_that_one_rank_asks_for(model);
  if (lockstep::limits_memory()) save_without_memory(model, argv[1]);
  result_of_another_size(model);
  options_that_differ(model);
  calls_that_differ(model);
  samples_that_are_not_finite(model);
  exported_files(model, argv[1]);
  deep_description();
  lockstep_trainer* last = trainer_of(model);
  lockstep_model_free(model);
  int all = 0;
  MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  after_the_end(last);
  return all + failures == 0 ? 0 : 1;
}
