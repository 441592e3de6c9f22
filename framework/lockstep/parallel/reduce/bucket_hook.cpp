#include "lockstep/parallel/reduce/bucket_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"

namespace lockstep::parallel {

void MpiAllreduceHook::begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) {
  comm_.emplace(comm.duplicate());
  requests_.resize(bucket_elements.size());
}

// The memory of the gradient outlives the request, so the hook keeps nothing.
void MpiAllreduceHook::start(int bucket, std::span<float> gradient) {
  requests_[static_cast<std::size_t>(bucket)] = comm_->iallreduce(gradient, comm::ReduceOp::Sum, {});
}
void MpiAllreduceHook::start(int bucket, std::span<double> gradient) {
  requests_[static_cast<std::size_t>(bucket)] = comm_->iallreduce(gradient, comm::ReduceOp::Sum, {});
}

TopKHook::TopKHook(double part) : part_(part) {
  check(part > 0 && part <= 1, "top-k", "part {} of the gradient, expected more than 0 and at most 1", part);
}

std::string TopKHook::describe() const {
  return fmt::format("the largest {:.3g}% of each rank's gradient, the rest kept for later", 100 * part_);
}

std::int64_t TopKHook::chosen_of(std::int64_t elements) const {
  return std::min(elements, std::max<std::int64_t>(1, std::llround(part_ * static_cast<double>(elements))));
}

void TopKHook::begin(const comm::Communicator& comm, std::span<const std::int64_t> bucket_elements) {
  comm_.emplace(comm.duplicate());
  buckets_.clear();
  for (std::int64_t elements : bucket_elements) {
    check(elements <= std::numeric_limits<std::int32_t>::max(), "top-k",
          "a bucket of {} elements, expected fewer than 2^31", elements);
    buckets_.push_back({.kept = std::vector<float>(static_cast<std::size_t>(elements)),
                        .before = std::vector<float>(static_cast<std::size_t>(elements))});
  }
}

void TopKHook::start(int, std::span<double>) { fail("top-k", "gradients are f64, expected f32"); }

void TopKHook::start(int number, std::span<float> gradient) {
  State& bucket = buckets_[static_cast<std::size_t>(number)];
  std::vector<Chosen>& mine = bucket.messages->mine;
  const auto count = static_cast<std::size_t>(chosen_of(std::ssize(gradient)));
  bucket.gradient = gradient;
  mine.clear();
  for (std::size_t i = 0; i < gradient.size() && mine.size() < count; ++i) {
    if (!std::isfinite(gradient[i])) mine.push_back({static_cast<std::int32_t>(i), gradient[i]});
  }
  if (mine.empty()) {
    std::swap(bucket.kept, bucket.before);
    for (std::size_t i = 0; i < gradient.size(); ++i) bucket.kept[i] = bucket.before[i] + gradient[i];
    choose_largest(bucket, count);
  } else {
    bucket.before = bucket.kept;
    mine.resize(count, mine.back());  // all ranks send the same number of elements; the copies have no effect
  }
  send_chosen(bucket);
}

// In as many collectives as the limit of a message over all ranks asks for; `all` has those of one after the other.
void TopKHook::send_chosen(State& bucket) {
  auto& [mine, all] = *bucket.messages;
  const auto ranks = static_cast<std::size_t>(comm_->size());
  const auto most =
      std::max<std::size_t>(1, static_cast<std::size_t>(comm_->message_limit()) / (ranks * sizeof(Chosen)));
  const auto bytes = [](std::span<Chosen> chosen) {
    return comm::Buffer(chosen.data(), static_cast<std::int64_t>(chosen.size_bytes()), comm::Element::Byte);
  };
  all.resize(mine.size() * ranks);
  bucket.requests.clear();
  for (std::size_t begin = 0; begin < mine.size(); begin += most) {
    const std::size_t count = std::min(most, mine.size() - begin);
    bucket.requests.push_back(comm_->iallgather(bytes(std::span(mine).subspan(begin, count)),
                                                bytes(std::span(all).subspan(begin * ranks, count * ranks)),
                                                bucket.messages));
  }
}

// Moves the `count` largest kept elements into the message. Infinite sums are the largest. There is no NaN, as kept
// elements are sums of finite gradients.
void TopKHook::choose_largest(State& bucket, std::size_t count) {
  std::vector<float>& kept = bucket.kept;
  std::vector<Chosen>& mine = bucket.messages->mine;
  if (count == 0) return;
  magnitudes_.resize(kept.size());
  std::ranges::transform(kept, magnitudes_.begin(), [](float v) { return std::abs(v); });
  const auto nth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::nth_element(magnitudes_, nth, std::greater<>());
  const float least = *nth;
  for (const bool equal : {false, true}) {  // of elements equal to the smallest chosen one, the first that still fit
    for (std::size_t i = 0; i < kept.size() && mine.size() < count; ++i) {
      if (equal ? std::abs(kept[i]) != least : !(std::abs(kept[i]) > least)) continue;
      mine.push_back({static_cast<std::int32_t>(i), kept[i]});
    }
  }
  for (const Chosen& c : mine) kept[static_cast<std::size_t>(c.index)] = 0;
}

bool TopKHook::done(int number) {
  State& bucket = buckets_[static_cast<std::size_t>(number)];
  if (!comm::test_all(bucket.requests)) return false;
  std::ranges::fill(bucket.gradient, 0.0F);
  for (const Chosen& c : bucket.messages->all) bucket.gradient[static_cast<std::size_t>(c.index)] += c.value;
  return true;
}

void TopKHook::refused() {
  for (State& bucket : buckets_) bucket.kept = bucket.before;
}

void TopKHook::end() {
  for (State& bucket : buckets_) bucket.requests.clear();
}

}  // namespace lockstep::parallel
