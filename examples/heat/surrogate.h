// The surrogate of examples/heat/heat.cpp: two networks that are trained and asked through lockstep_c.h. An error of
// Lockstep is printed, and ends the use of the networks; the simulation goes on.
#pragma once

#include <lockstep_c_mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

struct Options {
  int cells = 48, steps = 120, learners = 1, updates = 40, batch = 64, save_every = 20, kill_at = -1;
  double budget = 1e9, tolerance = 4e-3, rate = 5e-3;  // budget: seconds of training in each step
  std::string csv, state;
  bool resume = false;
  int end = -1;  // the exit status if nothing is to be simulated
};

inline constexpr std::int64_t kInputs = 2, kOutputs = 1;  // numbers of a cell, as kNetwork below has them

inline lockstep_array array_of(double* data, std::int64_t samples, std::int64_t features) {
  lockstep_array a = LOCKSTEP_ARRAY_INIT;
  a.data = data;
  a.rank = 2;
  a.extent[0] = samples;
  a.extent[1] = features;
  return a;
}

// Two networks of different first weights. Where they differ, neither has learned the state: the error's estimate.
class Surrogate {
 public:
  Surrogate(MPI_Comm learners, const Options& options) : options_(options) {
    if (learners == MPI_COMM_NULL) return;
    MPI_Comm_size(learners, &ranks_);
    for (int k = 0; k < 2 && works_; ++k) {
      lockstep_model* model = nullptr;
      works_ = good(lockstep_model_create(kNetwork, &model), "a model");
      lockstep_trainer_options o = LOCKSTEP_TRAINER_OPTIONS_INIT;
      o.batch = static_cast<std::int64_t>(options.batch) * ranks_;
      o.seed = static_cast<std::uint64_t>(k) + 1;
      o.memory = 20000;
      works_ = works_ && good(lockstep_trainer_create_mpi(model, learners, &o, &trainers_[index(k)]), "a trainer");
      lockstep_model_free(model);
    }
    learns_ = works_;
  }
  ~Surrogate() {
    for (lockstep_trainer* trainer : trainers_) lockstep_trainer_free(trainer);
    for (lockstep_model* model : models_) lockstep_model_free(model);
  }
  Surrogate(const Surrogate&) = delete;
  Surrogate& operator=(const Surrogate&) = delete;

  bool learns() const { return learns_; }
  // Predictions are worth asking for: by a learner after some steps, by others once they have loaded what was saved.
  bool is_ready() const { return learns_ ? updates_ >= 50 : models_[1] != nullptr; }

  // Remembers samples (T, Y) -> share burnt, and trains within the budget. A failure ends the training alone.
  void train(std::vector<double>& inputs, std::vector<double>& targets) {
    if (!learns_) return;
    const auto n = static_cast<std::int64_t>(targets.size()) / kOutputs;
    const lockstep_array x = array_of(inputs.data(), n, kInputs), y = array_of(targets.data(), n, kOutputs);
    for (int k = 0; k < 2 && learns_; ++k) {
      lockstep_result result = LOCKSTEP_RESULT_INIT;
      lockstep_trainer* trainer = trainers_[index(k)];
      const int kept = lockstep_trainer_remember(trainer, &x, &y);
      good(kept, "remembering");
      learns_ = good(lockstep_trainer_replay(trainer, options_.batch, options_.updates, options_.budget / 2,
                                             options_.rate, &result),
                     "training");
      updates_ = result.updates;
    }
  }

  // The mean of both networks, and how far they are apart.
  bool predict(std::vector<double>& inputs, std::vector<double>& mean, std::vector<double>& apart) {
    const auto n = static_cast<std::int64_t>(mean.size()) / kOutputs;
    const lockstep_array x = array_of(inputs.data(), n, kInputs), first = array_of(mean.data(), n, kOutputs),
                         second = array_of(apart.data(), n, kOutputs);
    const bool done = learns_ ? good(lockstep_trainer_predict(trainers_[0], &x, &first), "predicting") &&
                                    good(lockstep_trainer_predict(trainers_[1], &x, &second), "predicting")
                              : good(lockstep_model_predict(models_[0], &x, &first), "predicting") &&
                                    good(lockstep_model_predict(models_[1], &x, &second), "predicting");
    for (std::size_t i = 0; i < mean.size() && done; ++i) {
      const double a = mean[i], b = apart[i];
      mean[i] = std::clamp((a + b) / 2, 0.0, 1.0);
      apart[i] = std::abs(a - b);
    }
    return done;
  }

  bool save(const std::string& name) {  // collective over the learners
    bool saved = learns_;
    for (int k = 0; k < 2 && saved; ++k)
      saved = good(lockstep_trainer_save(trainers_[index(k)], file(name, k).c_str()), "saving");
    return saved;
  }
  // A learner goes on where it was; another rank predicts with what the learners have saved.
  bool load(const std::string& name) {
    bool loaded = true;
    for (int k = 0; k < 2 && loaded; ++k) {
      if (learns_) {
        learns_ = loaded = good(lockstep_trainer_resume(trainers_[index(k)], file(name, k).c_str()), "resuming");
        lockstep_result result = LOCKSTEP_RESULT_INIT;
        if (learns_)
          lockstep_trainer_replay(trainers_[index(k)], 1, 0, 0, 0, &result);  // no step: the number of updates
        updates_ = result.updates;
      } else {
        lockstep_model* model = nullptr;
        loaded = good(lockstep_model_load(file(name, k).c_str(), &model), "loading");
        if (!loaded) break;
        lockstep_model_free(models_[index(k)]);
        models_[index(k)] = model;
      }
    }
    return loaded;
  }

 private:
  static constexpr const char* kNetwork =
      R"({"input": [2], "output": [1], "type": "f64", "loss": "mse", "metrics": ["rmse"], "layers": [
          {"type": "Linear", "in": 2, "out": 24}, {"type": "Tanh"}, {"type": "Linear", "in": 24, "out": 24},
          {"type": "Tanh"}, {"type": "Linear", "in": 24, "out": 1}, {"type": "Scale", "factor": 0.1}]})";
  static std::size_t index(int k) { return static_cast<std::size_t>(k); }
  static std::string file(const std::string& name, int k) { return name + "-" + std::to_string(k) + ".h5"; }
  // Says what went wrong. The simulation goes on in any case.
  static bool good(int code, const char* what) {
    if (code == LOCKSTEP_OK) return true;
    std::fprintf(stderr, "heat: %s: %s: %s; the solver goes on\n", what, lockstep_error_name(code),
                 lockstep_last_error());
    return false;
  }

  Options options_;
  int ranks_ = 1;
  bool works_ = true, learns_ = false;
  std::int64_t updates_ = 0;
  std::array<lockstep_trainer*, 2> trainers_{};
  std::array<lockstep_model*, 2> models_{};
};
