#include "lockstep/parallel/bucket_hook.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/core/error.h"

namespace lockstep {

void MpiAllreduceHook::begin(const comm::Communicator& comm, std::span<const std::int64_t>) {
  comm_.push_back(comm.duplicate());
}
void MpiAllreduceHook::start(int, std::span<float> gradient) { comm_[0].allreduce(gradient, comm::ReduceOp::Sum); }
void MpiAllreduceHook::start(int, std::span<double> gradient) { comm_[0].allreduce(gradient, comm::ReduceOp::Sum); }

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
  comm_.push_back(comm.duplicate());
  for (std::int64_t elements : bucket_elements) {
    check(elements <= std::numeric_limits<std::int32_t>::max(), "top-k",
          "a bucket of {} elements, expected fewer than 2^31", elements);
    kept_.emplace_back(static_cast<std::size_t>(elements));
  }
}

void TopKHook::start(int, std::span<double>) { fail("top-k", "gradients are f64, expected f32"); }

void TopKHook::start(int bucket, std::span<float> gradient) {
  std::vector<float>& kept = kept_[static_cast<std::size_t>(bucket)];
  const auto chosen = static_cast<std::size_t>(chosen_of(std::ssize(gradient)));
  magnitudes_.resize(gradient.size());
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    kept[i] += gradient[i];
    magnitudes_[i] = std::abs(kept[i]);
  }
  const auto nth = magnitudes_.begin() + static_cast<std::ptrdiff_t>(chosen) - 1;
  std::ranges::nth_element(magnitudes_, nth, std::greater<>());
  const float least = *nth;
  indices_.clear();
  values_.clear();
  for (const bool equal : {false, true}) {  // of those as large as the least, the first that still fit
    for (std::size_t i = 0; i < kept.size() && indices_.size() < chosen; ++i) {
      if (equal ? std::abs(kept[i]) != least : !(std::abs(kept[i]) > least)) continue;
      indices_.push_back(static_cast<std::int32_t>(i));
      values_.push_back(kept[i]);
    }
  }
  for (const std::int32_t i : indices_) kept[static_cast<std::size_t>(i)] = 0;
  const auto all = chosen * static_cast<std::size_t>(comm_[0].size());
  indices_.resize(chosen, 0);  // fewer are that large if there are NaNs: then all ranks get one
  values_.resize(chosen, std::numeric_limits<float>::quiet_NaN());
  all_indices_.resize(all);
  all_values_.resize(all);
  comm_[0].allgather(indices_, all_indices_);
  comm_[0].allgather(values_, all_values_);
  std::ranges::fill(gradient, 0.0F);
  for (std::size_t i = 0; i < all; ++i) gradient[static_cast<std::size_t>(all_indices_[i])] += all_values_[i];
}

}  // namespace lockstep
