#include "lockstep/train/step/order_word.h"

#include <utility>

namespace lockstep::train {
namespace {

std::string point_text(OrderPoint point) {
  switch (point) {
    case OrderPoint::AfterStep:
      return "after the step";
    case OrderPoint::EndOfEpoch:
      return "at the end of the epoch";
    case OrderPoint::BeforeEpoch:
      return "before the next epoch";
    case OrderPoint::AfterEvaluation:
      return "after the evaluation";
    case OrderPoint::OwnEvaluation:
      return "before an evaluation by the program";
  }
  return "at an unknown point";
}

}  // namespace

std::string order_text(std::uint64_t word) {
  if (word == 0) return "no order, and trains the next step";
  std::string text;
  for (const auto& [bit, name] : {std::pair{kEvaluates, "an evaluation"}, std::pair{kSaves, "a checkpoint"},
                                  std::pair{kSavesUnlessSaved, "a checkpoint unless there is one"},
                                  std::pair{kStops, "to stop"}, std::pair{kFinishes, "to finish"}}) {
    const bool said = bit == kSavesUnlessSaved && (word & kStops) != 0;  // a stop saves too
    if ((word & bit) != 0 && !said) text += (text.empty() ? "" : " and ") + std::string(name);
  }
  return (text.empty() ? "no order " : text + " ") + point_text(static_cast<OrderPoint>(word >> 8));
}

}  // namespace lockstep::train
