#include "bindings/c/sample_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "lockstep/core/random.h"

namespace lockstep::bindings {
namespace {

// Streams of random numbers: of the n-th offer, and of the n-th draw.
constexpr std::uint64_t kOffers = 0, kDraws = 1;

std::uint64_t stream(std::uint64_t kind, std::int64_t n) { return 2 * static_cast<std::uint64_t>(n) + kind; }

std::size_t bytes_of(std::int64_t samples, std::size_t each) {
  std::size_t bytes = 0;
  check(!__builtin_mul_overflow(samples, each, &bytes) && bytes <= std::numeric_limits<std::ptrdiff_t>::max(),
        "memory of samples", "{} samples of {} bytes are more than an address can reach, expected fewer samples",
        samples, each);
  return bytes;
}

}  // namespace

SampleMemory::SampleMemory(std::int64_t capacity, std::size_t input_bytes, std::size_t target_bytes, std::uint64_t seed)
    : capacity_(capacity),
      input_bytes_(input_bytes),
      target_bytes_(target_bytes),
      seed_(seed),
      memory_(bytes_of(capacity, input_bytes + target_bytes)) {}

void SampleMemory::offer(const Tensor& inputs, const Tensor& targets) {
  if (capacity_ == 0) return;
  const std::int64_t samples = inputs.shape()[0];
  for (std::int64_t i = 0; i < samples; ++i) {
    const std::int64_t n = counts_.offered++;
    std::int64_t slot = held_;
    if (held_ == capacity_) {
      slot =
          static_cast<std::int64_t>(RandomStream(seed_, stream(kOffers, n)).below(static_cast<std::uint64_t>(n) + 1));
      if (slot >= capacity_) continue;
    } else {
      ++held_;
    }
    const auto row = static_cast<std::size_t>(i);
    std::memcpy(at(slot), inputs.raw() + row * input_bytes_, input_bytes_);
    std::memcpy(at(slot) + input_bytes_, targets.raw() + row * target_bytes_, target_bytes_);
  }
}

void SampleMemory::draw(Tensor& inputs, Tensor& targets) {
  check(held_ > 0, "memory of samples", "there is no sample to draw, expected one at least");
  RandomStream random(seed_, stream(kDraws, counts_.drawn++));
  const auto samples = static_cast<std::size_t>(inputs.shape()[0]);
  for (std::size_t row = 0; row < samples; ++row) {
    const std::byte* sample = at(static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(held_))));
    std::memcpy(inputs.raw() + row * input_bytes_, sample, input_bytes_);
    std::memcpy(targets.raw() + row * target_bytes_, sample + input_bytes_, target_bytes_);
  }
}

std::span<const std::byte> SampleMemory::bytes() const {
  return {memory_.data(), static_cast<std::size_t>(held_) * sample_bytes()};
}

void SampleMemory::restore(std::span<const std::byte> bytes, Counts counts) {
  const auto found = static_cast<std::int64_t>(bytes.size() / sample_bytes());
  check(bytes.size() % sample_bytes() == 0 && counts.offered >= found && counts.drawn >= 0, "memory of samples",
        "{} bytes, {} offered and {} drawn are no state of samples of {} bytes", bytes.size(), counts.offered,
        counts.drawn, sample_bytes());
  held_ = std::min(found, capacity_);
  std::copy_n(bytes.begin(), static_cast<std::size_t>(held_) * sample_bytes(), memory_.begin());
  counts_ = counts;
}

}  // namespace lockstep::bindings
