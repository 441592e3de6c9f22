// Samples that are computed from equations, for recipes and tests: nothing is downloaded. Sample i is a function of the
// seed and i alone, so a larger set begins with the smaller one, and threads change no bit. `lockstep-data generate`
// writes them as HDF5.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/dtype.h"
#include "lockstep/core/on_threads.h"
#include "lockstep/core/parallel_for.h"
#include "lockstep/core/random.h"
#include "lockstep/data/dataset.h"

namespace lockstep::datasets {

class Generator {
 public:
  virtual ~Generator() = default;
  virtual std::string_view name() const = 0;
  // The contents of a sample: the names of the datasets in the file, and their shapes without the axis of samples; all
  // F64.
  virtual const std::vector<data::Field>& fields() const = 0;
  // The equation and its parameters: a JSON object, which the file contains.
  virtual std::string parameters() const = 0;
  // Computes samples [first, first + count) on all OpenMP threads: out[f] has the values of field f of all of them, one
  // sample after the other. Throws Error with the number of a sample that cannot be computed.
  virtual void generate(std::uint64_t seed, std::int64_t first, std::int64_t count,
                        std::span<double* const> out) const = 0;

  // The random numbers of a sample.
  RandomStream random(std::uint64_t seed, std::int64_t sample) const {
    return {mix(seed, hash_name(name())), static_cast<std::uint64_t>(sample)};
  }
};

// Calls compute(i) for i in [0, count) on the OpenMP threads. The exception of the smallest i that threw is thrown
// after all calls.
template <class Compute>
void for_each_sample(std::int64_t count, const Compute& compute) {
  constexpr std::int64_t kWork = std::int64_t{1} << 20;  // a sample is always worth a thread
  PartErrors errors(static_cast<std::size_t>(count));
  parallel_for(count, kWork, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) errors.run(static_cast<std::size_t>(i), [&] { compute(i); });
  });
  errors.rethrow_first();
}

struct GenerateOptions {
  std::int64_t samples = 0;
  std::uint64_t seed = 0;
  DType dtype = DType::F32;      // of the values in the file: F32 or F64
  std::filesystem::path output;  // the file, which must not exist
};

// Computes the samples and writes them to options.output: a dataset (samples, ...) per field, and the text "metadata",
// a JSON object of generator, parameters, samples and seed. The file gets its name when it is complete. Holds all
// samples in memory. `progress` is called with the number of samples that are computed. Throws Error for options out of
// range, for values that the type cannot hold, and with the path for a file that cannot be written.
void write_samples(const Generator& generator, const GenerateOptions& options,
                   const std::function<void(std::int64_t)>& progress = {});

}  // namespace lockstep::datasets
