#include "lockstep/train/prepare/memory_forecast.h"

#include <fmt/format.h>

namespace lockstep::train {

std::string MemoryForecast::str() const {
  const auto mebibytes = [](std::size_t bytes) { return static_cast<double>(bytes) / 1048576; };
  return fmt::format(
      "{:.0f} MiB expected on this rank: {:.0f} for the model, its plan {:.0f} of them; {:.0f} for kernels, {:.0f} for "
      "batches, {:.0f} for checkpoints; {:.0f} before",
      mebibytes(total()), mebibytes(model), mebibytes(plan), mebibytes(kernels), mebibytes(batches),
      mebibytes(checkpoint), mebibytes(before));
}

}  // namespace lockstep::train
