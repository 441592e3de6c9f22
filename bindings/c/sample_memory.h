// A bounded memory of past samples, from which training draws: every sample offered so far is held with the same chance
// (Vitter, "Random sampling with a reservoir" (1985), algorithm R). data::Reservoir, which streams use, adds past
// samples to batches of new ones; here whole batches are drawn, at times that the program chooses. Which samples stay
// and which are drawn follows from the seed and the counts alone. One thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::bindings {

class SampleMemory {
 public:
  // The counts on which random choices depend; with the held samples they are the state.
  struct Counts {
    std::int64_t offered = 0, drawn = 0;
  };

  // Samples are pairs of rows of these numbers of bytes. `seed` differs between ranks. Memory is allocated here.
  SampleMemory(std::int64_t capacity, std::size_t input_bytes, std::size_t target_bytes, std::uint64_t seed);

  std::int64_t capacity() const { return capacity_; }
  std::int64_t held() const { return held_; }
  std::size_t sample_bytes() const { return input_bytes_ + target_bytes_; }
  Counts counts() const { return counts_; }

  // Offers the rows of two tensors, of equally many samples.
  void offer(const Tensor& inputs, const Tensor& targets);
  // Fills the rows of two tensors with samples drawn at random, with replacement; there must be one at least.
  void draw(Tensor& inputs, Tensor& targets);

  // The held samples, one after the other; and the state of another such memory in place of this one's, of which the
  // first `capacity` samples are taken. Throws Error for bytes that are no samples.
  std::span<const std::byte> bytes() const;
  void restore(std::span<const std::byte> bytes, Counts counts);

 private:
  std::byte* at(std::int64_t slot) { return memory_.data() + static_cast<std::size_t>(slot) * sample_bytes(); }

  std::int64_t capacity_, held_ = 0;
  std::size_t input_bytes_, target_bytes_;
  std::uint64_t seed_;
  Counts counts_;
  std::vector<std::byte> memory_;
};

}  // namespace lockstep::bindings
