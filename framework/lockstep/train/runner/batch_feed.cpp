#include "lockstep/train/runner/batch_feed.h"

#include <algorithm>
#include <cstring>

#include "lockstep/core/error.h"

namespace lockstep::train {

plan::Plan& BatchFeed::plan(Mode mode, std::int64_t samples) {
  plan::Plan*& known = plans_[{mode, samples}];
  if (known == nullptr) known = &prepared_.model().plan(mode, prepared_.types_of(samples));
  return *known;
}

void BatchFeed::fill(plan::Plan& plan, const data::Batch& batch, Range rows, std::uint64_t step) const {
  for (const data::Field& f : prepared_.fields()) {
    void* input = plan.input(f.name);
    if (input == nullptr || rows.size() == 0) continue;  // the model does not read this field
    const Tensor& source = batch.at(f.name);
    if (source.dtype() != f.dtype || !source.shape().has_tail(f.shape)) {
      fail("trainer", "field '{}' of the batch is {}{}, the model was traced with {} per sample", f.name,
           name_of(source.dtype()), source.shape().str(), Type{f.shape, f.dtype}.str());
    }
    std::memcpy(input, source.raw() + static_cast<std::size_t>(rows.begin) * f.bytes(),
                static_cast<std::size_t>(rows.size()) * f.bytes());
  }
  if (void* number = plan.input(Graph::kStep)) *static_cast<std::int64_t*>(number) = static_cast<std::int64_t>(step);
  if (void* ids = plan.input(Graph::kSampleIds)) {
    std::copy_n(batch.step.samples.begin() + rows.begin, rows.size(), static_cast<std::int64_t*>(ids));
  }
}

// Loaders always make such batches; a batch of the caller may be wrong, also on this rank alone.
void BatchFeed::check_batch(const data::Batch& batch) {
  check(batch.names.size() == batch.fields.size(), "trainer", "the batch has {} fields and {} names",
        batch.fields.size(), batch.names.size());
  for (std::size_t i = 0; i < batch.fields.size(); ++i) {
    const Shape& shape = batch.fields[i].shape();
    check(shape.rank() > 0 && shape[0] == batch.samples(), "trainer",
          "field '{}' of the batch is {}, expected one row for each of the {} ids in batch.step.samples",
          batch.names[i], shape.str(), batch.samples());
  }
}

}  // namespace lockstep::train
