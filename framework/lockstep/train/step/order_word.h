// The orders of a rank's callbacks (train/callbacks/callback.h) as one word, which ranks compare before they carry the
// orders out: ranks with different orders would wait for each other in different calls.
#pragma once

#include <cstdint>
#include <string>

namespace lockstep::train {

// The point between two steps at which callbacks gave the orders.
enum class OrderPoint : std::uint8_t { AfterStep = 1, EndOfEpoch, BeforeEpoch, AfterEvaluation, OwnEvaluation };

enum OrderBit : std::uint64_t {
  kEvaluates = 1,
  kSaves = 2,
  kSavesUnlessSaved = 4,
  kStops = 8,
  kFinishes = 16,
};

constexpr std::uint64_t order_word(OrderPoint point, std::uint64_t bits) {
  return static_cast<std::uint64_t>(point) << 8 | bits;
}

// Describes a word: "a checkpoint after the step". The word 0 is that of a rank that trains the next step.
std::string order_text(std::uint64_t word);

}  // namespace lockstep::train
