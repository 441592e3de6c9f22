// A forecast, before the first step, of a rank's largest memory use in bytes: the planned memory, and the memory that
// libraries and compiled kernels were measured to use.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::train {

struct MemoryForecast {
  std::size_t before = 0;      // resident before the model was compiled: libraries, MPI, data sets
  std::size_t model = 0;       // Trainer::bytes()
  std::size_t plan = 0;        // the part of `model` that is the plans' arena
  std::size_t kernels = 0;     // memory from compiling, except the model's: graphs, kernels, generated code
  std::size_t batches = 0;     // batches of training and evaluation that are ready, being made, or in use
  std::size_t checkpoint = 0;  // for writing or reading a checkpoint

  std::size_t total() const { return before + model + kernels + batches + checkpoint; }
  std::string str() const;  // in MiB, for the log
};

}  // namespace lockstep::train
