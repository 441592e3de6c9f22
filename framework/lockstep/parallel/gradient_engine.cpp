#include "lockstep/parallel/gradient_engine.h"

#include <algorithm>
#include <cstring>

namespace lockstep {

GradientEngine::GradientEngine(const comm::Communicator& comm, const WorldLayout& world, ParameterStore& store,
                               std::size_t statistics, std::size_t counts)
    : gradient_comm_(comm.duplicate()),
      control_comm_(comm.duplicate()),
      walk_(world),
      store_(store),
      statistics_count_(statistics),
      statistics_(static_cast<std::size_t>(world.my_slots()), std::vector<double>(statistics)),
      reducer_(gradient_comm_, world),
      control_(control_comm_, world, kFirstCount + counts, kControlWords) {
  for (Bucket& bucket : store_.buckets()) {
    std::vector<void*> slots;
    for (AlignedBuffer& slot : bucket.gradients) slots.push_back(slot.get());
    reducer_.add_bucket(store_.options().dtype, bucket.elements, std::move(slots));
  }
  std::vector<void*> slots;
  for (auto& slot : statistics_) slots.push_back(slot.data());
  statistics_bucket_ = reducer_.add_bucket(DType::F64, static_cast<std::int64_t>(statistics), std::move(slots));
  awaited_.resize(store_.buckets().size());
  complete_.resize(store_.buckets().size());
}

void GradientEngine::begin_step(std::uint64_t step, std::uint64_t samples, std::uint64_t position) {
  control_.words()[kStepWord] = step;
  control_.words()[kSamplesWord] = samples;
  control_.words()[kPositionWord] = position;
  control_.begin();
  walk_.begin();
  complete_.assign(complete_.size(), false);
  next_ = 0;
  begin_leaf();
}

void GradientEngine::begin_leaf() {
  std::ranges::fill(leaf_statistics(), 0.0);
  for (std::size_t b = 0; b < awaited_.size(); ++b) awaited_[b] = static_cast<int>(store_.buckets()[b].entries.size());
}

void GradientEngine::end_leaf() {
  walk_.next();
  if (!walk_.done()) begin_leaf();
}

void GradientEngine::sums_ready() {
  control_.end_leaf();
  walk_.join([this](int from, int into) {
    add_into<double>(static_cast<std::int64_t>(statistics_count_), statistics_[static_cast<std::size_t>(from)].data(),
                     statistics_[static_cast<std::size_t>(into)].data());
  });
  if (walk_.last()) reducer_.start(statistics_bucket_);
}

void GradientEngine::gradient_ready(const Parameter* parameter) {
  const int bucket = store_.bucket_of(parameter);
  if (--awaited_[static_cast<std::size_t>(bucket)] == 0) {
    join(bucket);
    if (walk_.last()) start_in_order(bucket);
  }
  if (walk_.last()) progress();  // at each gradient: MPI moves long messages on only inside calls
}

// Plans of different batches may finish buckets in different orders, but ranks must not start them so.
void GradientEngine::start_in_order(int bucket) {
  complete_[static_cast<std::size_t>(bucket)] = true;
  while (next_ < complete_.size() && complete_[next_]) reducer_.start(static_cast<int>(next_++));
}

void GradientEngine::join(int number) {
  Bucket& bucket = store_.buckets()[static_cast<std::size_t>(number)];
  walk_.join([&](int from_slot, int into_slot) {
    const void* from = bucket.gradients[static_cast<std::size_t>(from_slot)].get();
    void* into = bucket.gradients[static_cast<std::size_t>(into_slot)].get();
    if (store_.options().dtype == DType::F64) {
      add_into(bucket.elements, static_cast<const double*>(from), static_cast<double*>(into));
    } else {
      add_into(bucket.elements, static_cast<const float*>(from), static_cast<float*>(into));
    }
  });
}

void GradientEngine::zero_gradients() {
  for (Bucket& bucket : store_.buckets()) {
    std::memset(bucket.gradients[static_cast<std::size_t>(slot())].get(), 0,
                static_cast<std::size_t>(bucket.elements) * size_of(store_.options().dtype));
  }
  for (Bucket& bucket : store_.buckets()) {
    for (const BucketEntry& entry : bucket.entries) gradient_ready(entry.parameter);
  }
}

void GradientEngine::progress() {
  control_.progress();
  reducer_.progress();
}

void GradientEngine::finish_step() {
  control_.finish();
  control_.check_same(kStepWord, "the number of the step");
  control_.check_same(kSamplesWord, "the number of samples in the step");
  control_.check_same(kPositionWord, "the position in the data set");
  reducer_.finish();
}

}  // namespace lockstep
