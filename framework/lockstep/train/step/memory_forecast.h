// What a rank will hold in memory at most, in bytes, told before the first step: sums of what has been laid out, and of
// what libraries and built kernels were seen to take.
#pragma once

#include <cstddef>
#include <string>

namespace lockstep::train {

struct MemoryForecast {
  std::size_t before = 0;      // resident before the model was compiled: libraries, MPI, data sets
  std::size_t model = 0;       // Trainer::bytes(), ...
  std::size_t plan = 0;        // ... of which the arena
  std::size_t kernels = 0;     // what compiling left beside the model: graphs, kernels, generated code
  std::size_t batches = 0;     // ready, in the making or in use, of training and evaluation
  std::size_t checkpoint = 0;  // while one is written or read

  std::size_t total() const { return before + model + kernels + batches + checkpoint; }
  std::string str() const;  // in MiB, for the log
};

}  // namespace lockstep::train
