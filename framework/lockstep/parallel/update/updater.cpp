#include "lockstep/parallel/update/updater.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel_for.h"

namespace lockstep::parallel {
namespace {

// 256 KiB for f32 with momentum and one derived copy: less than half of a usual L2 cache. A multiple of the tiles of
// all derived copies in oneDNN's layouts.
constexpr std::int64_t kChunk = 16384;
constexpr std::size_t kMaxStates = 8;
// Below this many elements (0.1 ms on one core) threads are not worth waking.
constexpr std::int64_t kSerial = 131072;

void check_number(double value, const std::string& what, const std::string& whose) {
  check(std::isfinite(value) && value >= 0, "optimizer", "the {}{} is {}, expected a finite number, at least 0", what,
        whose, value);
}

void check_numbers(const UpdaterOptions& options) {
  check_number(options.weight_decay, "weight decay", "");
  for (const optim::ParameterGroup& g : options.groups) {
    check_number(g.rate_scale, "scale of rates", fmt::format(" of group '{}'", g.pattern));
    check_number(g.weight_decay.value_or(0), "weight decay", fmt::format(" of group '{}'", g.pattern));
  }
}

}  // namespace

Updater::Updater(plan::ParameterStore& store, std::shared_ptr<optim::UpdateRule> rule, const UpdaterOptions& options)
    : store_(store), rule_(std::move(rule)) {
  const std::size_t states = rule_->states().size();
  check(states <= kMaxStates, "optimizer", "{} keeps {} states per element, expected at most {}", rule_->name(), states,
        kMaxStates);
  check(std::cmp_equal(store.options().optimizer_states, states), "optimizer",
        "{} keeps {} states per element, the parameters have memory for {}", rule_->name(), states,
        store.options().optimizer_states);
  check_numbers(options);
  for (const optim::ParameterGroup& g : options.groups) {
    const bool used =
        std::ranges::any_of(store.parameters(), [&](const auto& p) { return optim::matches(g.pattern, p.name); });
    check(used, "optimizer", "the pattern '{}' of a group matches no parameter", g.pattern);
  }
  for (std::size_t b = 0; b < store.buckets().size(); ++b) {
    for (const plan::BucketEntry& e : store.buckets()[b].entries) {
      const optim::ParameterGroup* group = optim::find_group(options.groups, e.name);
      const bool decays = options.decay_biases_and_norms || e.parameter->role == Role::Weight;
      Chunk c{b, {}, group != nullptr ? group->rate_scale : 1, decays ? options.weight_decay : 0};
      if (group != nullptr && group->weight_decay) c.weight_decay = *group->weight_decay;
      for (std::int64_t begin = 0; begin < e.elements; begin += kChunk) {  // relative to the begin of the parameter
        c.range = {e.offset + begin, e.offset + std::min(begin + kChunk, e.elements)};
        append(c);
      }
    }
  }
}

void Updater::append(const Chunk& chunk) {
  Chunk* last = chunks_.empty() ? nullptr : &chunks_.back();
  if (last != nullptr && last->bucket == chunk.bucket && last->rate_scale == chunk.rate_scale &&
      last->weight_decay == chunk.weight_decay && chunk.range.end - last->range.begin <= kChunk) {
    last->range.end = chunk.range.end;
  } else {
    chunks_.push_back(chunk);
  }
}

void Updater::update(double learning_rate, double weight, std::int64_t step) {
  run(chunks_, {0, std::numeric_limits<std::int64_t>::max()},
      {.learning_rate = learning_rate, .gradient_scale = 1 / weight, .count = step});
}

void Updater::update(std::size_t bucket, Range range, const UpdateStep& step) {
  const auto is_before = [&](const Chunk& c) {
    return c.bucket < bucket || (c.bucket == bucket && c.range.end <= range.begin);
  };
  const auto is_within = [&](const Chunk& c) { return c.bucket == bucket && c.range.begin < range.end; };
  const auto first = std::ranges::partition_point(chunks_, is_before);
  const auto last = std::ranges::partition_point(first, chunks_.end(), is_within);
  run({first, last}, range, step);
}

void Updater::run(std::span<const Chunk> chunks, Range limits, const UpdateStep& step) {
  store_.values_changed();
  const auto run_chunks = [&](std::int64_t begin, std::int64_t end) {
    for (const Chunk& c : chunks.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin))) {
      const Range range{std::max(c.range.begin, limits.begin), std::min(c.range.end, limits.end)};
      store_.options().dtype == DType::F64 ? update_chunk<double>(c, range, step) : update_chunk<float>(c, range, step);
    }
  };
  std::int64_t elements = 0;
  for (const Chunk& c : chunks) elements += c.range.size();
  const auto count = static_cast<std::int64_t>(chunks.size());
  elements <= kSerial ? run_chunks(0, count) : parallel_for(count, kChunk, run_chunks);
}

template <class T>
void Updater::update_chunk(const Chunk& chunk, Range range, const UpdateStep& step) {
  plan::Bucket& bucket = store_.buckets()[chunk.bucket];
  const auto at = [&](std::byte* memory) { return reinterpret_cast<T*>(memory) + range.begin; };
  std::array<T*, kMaxStates> states{};
  std::ranges::transform(bucket.states, states.begin(), at);
  rule_->apply(range.size(), at(bucket.values), at(bucket.gradients[0]), std::span(states).first(bucket.states.size()),
               {.learning_rate = step.learning_rate * chunk.rate_scale,
                .weight_decay = chunk.weight_decay,
                .gradient_scale = step.gradient_scale,
                .step = step.count});
  store_.refresh(bucket, range);
}

template <class T>
void move_running_statistics(const RunningUpdate& u, T* mean, T* variance) {
  if (u.count <= 0) return;
  for (std::size_t c = 0; c < u.sums.size(); ++c) {
    const double m = u.sums[c] / u.count;
    const double biased = std::max(0.0, u.squares[c] / u.count - m * m);
    const double v = u.count > 1 ? biased * u.count / (u.count - 1) : biased;
    mean[c] = static_cast<T>((1 - u.momentum) * static_cast<double>(mean[c]) + u.momentum * m);
    variance[c] = static_cast<T>((1 - u.momentum) * static_cast<double>(variance[c]) + u.momentum * v);
  }
}

template void move_running_statistics<float>(const RunningUpdate&, float*, float*);
template void move_running_statistics<double>(const RunningUpdate&, double*, double*);

}  // namespace lockstep::parallel
