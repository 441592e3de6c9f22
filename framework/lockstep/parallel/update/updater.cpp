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
  check_number(options.clip_value, "largest element of the gradient", "");
  check_number(options.clip_layer_norm, "largest norm of a parameter's gradient", "");
  for (const optim::ParameterGroup& g : options.groups) {
    check_number(g.rate_scale.value_or(1), "scale of rates", fmt::format(" of group '{}'", g.pattern));
    check_number(g.weight_decay.value_or(0), "weight decay", fmt::format(" of group '{}'", g.pattern));
  }
}

constexpr std::int64_t kBlock = BucketBlocks::kBlock;

// The sum over the blocks of a parameter, in their order.
double sum_of(std::span<const double> by_block, Range blocks) {
  double sum = 0;
  for (const double one : part_of_blocks(by_block, blocks)) sum += one;
  return sum;
}

template <class T>
struct States {
  std::array<T*, kMaxStates> pointers{};
  std::size_t count;
  States(const plan::Bucket& bucket, std::int64_t begin) : count(bucket.states.size()) {
    for (std::size_t i = 0; i < count; ++i) pointers[i] = reinterpret_cast<T*>(bucket.states[i]) + begin;
  }
  std::span<T* const> span() const { return std::span(pointers).first(count); }
};

}  // namespace

Updater::Updater(plan::ParameterStore& store, std::shared_ptr<optim::UpdateRule> rule, const UpdaterOptions& options)
    : store_(store), rule_(std::move(rule)), options_(options), blocks_(store.buckets()) {
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
    for (const plan::BucketEntry& e : store.buckets()[b].entries) add_parameter(b, e);
  }
}

void Updater::add_parameter(std::size_t bucket, const plan::BucketEntry& e) {
  check(!by_parameter() || e.offset % kBlock == 0, "optimizer",
        "{} begins at element {} of its bucket, expected a multiple of {}: the update needs norms of whole parameters",
        e.name, e.offset, kBlock);
  const optim::ParameterGroup settings = optim::settings_of(options_.groups, e.name);
  const bool is_weight = e.parameter->role == Role::Weight;
  const double usual_decay = options_.decay_biases_and_norms || is_weight ? options_.weight_decay : 0;
  wholes_.push_back({.blocks = blocks_.at(bucket, {e.offset, e.offset + e.elements}),
                     .rate_scale = settings.rate_scale.value_or(1),
                     .weight_decay = settings.weight_decay.value_or(usual_decay),
                     .adapts = uses_norms() && is_weight});
  Chunk c{bucket, {}, wholes_.size() - 1};
  for (std::int64_t begin = 0; begin < e.elements; begin += kChunk) {  // relative to the begin of the parameter
    c.range = {e.offset + begin, e.offset + std::min(begin + kChunk, e.elements)};
    append(c);
  }
}

void Updater::append(const Chunk& chunk) {
  Chunk* last = chunks_.empty() ? nullptr : &chunks_.back();
  const auto alike = [&](const Whole& a, const Whole& b) {
    return a.rate_scale == b.rate_scale && a.weight_decay == b.weight_decay;
  };
  if (last != nullptr && last->bucket == chunk.bucket && chunk.range.end - last->range.begin <= kChunk &&
      (by_parameter() ? last->whole == chunk.whole : alike(wholes_[last->whole], wholes_[chunk.whole]))) {
    last->range.end = chunk.range.end;
  } else {
    chunks_.push_back(chunk);
  }
}

optim::Rates Updater::rates_of(const Whole& whole, const UpdateStep& step) const {
  return {.learning_rate = step.learning_rate * whole.rate_scale,
          .weight_decay = whole.weight_decay,
          .gradient_scale = step.gradient_scale * whole.clip,
          .step = step.count,
          .clip_value = options_.clip_value,
          .trust = whole.trust};
}

void Updater::clip_parameters(std::span<const double> squares, double gradient_scale) {
  for (Whole& w : wholes_) {
    const double norm = std::sqrt(sum_of(squares, w.blocks)) * gradient_scale;
    const double factor = options_.clip_layer_norm / (norm + 1e-6);  // as torch.nn.utils.clip_grad_norm_
    w.clip = factor < 1 ? factor : 1;
  }
}

void Updater::set_trust(std::span<const double> values, std::span<const double> steps, const UpdateStep& step) {
  for (Whole& w : wholes_) {
    if (!w.adapts) continue;
    w.trust = rule_->trust({.values = sum_of(values, w.blocks), .steps = sum_of(steps, w.blocks)}, rates_of(w, step));
  }
}

void Updater::update(double learning_rate, double weight, std::int64_t step) {
  run(chunks_, {0, std::numeric_limits<std::int64_t>::max()},
      {.learning_rate = learning_rate, .gradient_scale = 1 / weight, .count = step});
}

std::span<const Updater::Chunk> Updater::chunks_of(std::size_t bucket, Range range) const {
  const auto is_before = [&](const Chunk& c) {
    return c.bucket < bucket || (c.bucket == bucket && c.range.end <= range.begin);
  };
  const auto is_within = [&](const Chunk& c) { return c.bucket == bucket && c.range.begin < range.end; };
  const auto first = std::ranges::partition_point(chunks_, is_before);
  const auto last = std::ranges::partition_point(first, chunks_.end(), is_within);
  return {first, last};
}

void Updater::update(std::size_t bucket, Range range, const UpdateStep& step) {
  run(chunks_of(bucket, range), range, step);
}

template <class Work>
void Updater::for_chunks(std::span<const Chunk> chunks, const Work& work) const {
  const auto run_chunks = [&](std::int64_t begin, std::int64_t end) {
    for (const Chunk& c : chunks.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)))
      work(c);
  };
  std::int64_t elements = 0;
  for (const Chunk& c : chunks) elements += c.range.size();
  const auto count = static_cast<std::int64_t>(chunks.size());
  elements <= kSerial ? run_chunks(0, count) : parallel_for(count, kChunk, run_chunks);
}

void Updater::run(std::span<const Chunk> chunks, Range limits, const UpdateStep& step) {
  store_.values_changed();
  for_chunks(chunks, [&](const Chunk& c) {
    const Range range = intersection(c.range, limits);
    store_.options().dtype == DType::F64 ? update_chunk<double>(c, range, step) : update_chunk<float>(c, range, step);
  });
}

void Updater::measure(std::size_t bucket, Range limits, const UpdateStep& step, std::span<double> values,
                      std::span<double> steps) {
  for_chunks(chunks_of(bucket, limits), [&](const Chunk& c) {
    if (!wholes_[c.whole].adapts) return;
    const Range range = intersection(c.range, limits);
    store_.options().dtype == DType::F64 ? measure_chunk<double>(c, range, step, values, steps)
                                         : measure_chunk<float>(c, range, step, values, steps);
  });
}

template <class T>
void Updater::measure_chunk(const Chunk& chunk, Range range, const UpdateStep& step, std::span<double> values,
                            std::span<double> steps) const {
  const plan::Bucket& bucket = store_.buckets()[chunk.bucket];
  const optim::Rates rates = rates_of(wholes_[chunk.whole], step);
  for (std::int64_t at = range.begin; at < range.end; at += kBlock) {
    const optim::Squares squares =
        rule_->squares(std::min(kBlock, range.end - at), reinterpret_cast<const T*>(bucket.values) + at,
                       reinterpret_cast<const T*>(bucket.gradients[0]) + at, States<T>(bucket, at).span(), rates);
    const std::size_t block = static_cast<std::size_t>(blocks_.at(chunk.bucket, at));
    values[block] = squares.values;
    steps[block] = squares.steps;
  }
}

template <class T>
void Updater::update_chunk(const Chunk& chunk, Range range, const UpdateStep& step) {
  plan::Bucket& bucket = store_.buckets()[chunk.bucket];
  rule_->apply(range.size(), reinterpret_cast<T*>(bucket.values) + range.begin,
               reinterpret_cast<const T*>(bucket.gradients[0]) + range.begin, States<T>(bucket, range.begin).span(),
               rates_of(wholes_[chunk.whole], step));
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
