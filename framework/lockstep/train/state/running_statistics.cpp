#include "lockstep/train/state/running_statistics.h"

#include "lockstep/kernels/native/native_kernels.h"

namespace lockstep::train {

void move_running_statistics(PreparedModel& prepared, const parallel::GradientEngine& engine) {
  plan::ParameterStore& store = prepared.store();
  std::span<const double> all = engine.statistics();
  for (const RunningStatistics& s : prepared.nominal().statistics) {
    const auto channels = static_cast<std::size_t>(s.mean->shape.elements());
    const double samples = engine.sums()[parallel::kSampleSum];
    const parallel::RunningUpdate update{.momentum = s.momentum,
                                         .count = samples * static_cast<double>(s.per_sample),
                                         .sums = all.first(channels),
                                         .squares = all.subspan(channels, channels)};
    void *mean = store.value(s.mean), *variance = store.value(s.variance);
    if (prepared.options().precision == DType::F64) {
      lockstep::parallel::move_running_statistics(update, static_cast<double*>(mean), static_cast<double*>(variance));
    } else {
      lockstep::parallel::move_running_statistics(update, static_cast<float*>(mean), static_cast<float*>(variance));
    }
    store.refresh(s.mean);
    store.refresh(s.variance);
    ++*static_cast<std::int64_t*>(store.value(s.batches));
    all = all.subspan(2 * channels);
  }
}

}  // namespace lockstep::train
