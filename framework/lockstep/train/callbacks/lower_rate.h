// Lowers the learning rate when evaluations become no better (--schedule plateau; optim/plateau.h). The totals of an
// evaluation are equal on all ranks, so all ranks decide the same. Checkpoints contain its count and the factor: a
// resumed run has the rates of a run without a stop.
#pragma once

#include <functional>

#include "lockstep/optim/plateau.h"
#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class LowerRate : public Callback {
 public:
  // `least` is the smallest factor; `set_factor` takes the factor of the rates of all further steps.
  LowerRate(const optim::PlateauOptions& options, double least, std::function<void(double factor)> set_factor)
      : Callback({.state = "plateau"}), plateau_(options, least), set_factor_(std::move(set_factor)) {}
  void save_state(CallbackState& state) override;
  void load_state(const CallbackState& state) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  optim::Plateau plateau_;
  std::function<void(double)> set_factor_;
};

}  // namespace lockstep::train
