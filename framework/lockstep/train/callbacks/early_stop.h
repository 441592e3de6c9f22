// Ends the run after `patience` evaluations in a row whose loss, or metric, is not better than the best earlier one.
// The totals of an evaluation are equal on all ranks, so all ranks decide the same. Checkpoints contain the count: a
// resumed run goes on with it, and a run that this callback has ended ends again, unless `patience` is larger now.
#pragma once

#include <limits>
#include <string>
#include <utility>

#include "lockstep/train/callbacks/callback.h"

namespace lockstep::train {

class EarlyStop : public Callback {
 public:
  // `patience`: evaluations; 0: never. `metric`: its name, or "loss"; `higher`: higher values are better.
  EarlyStop(std::int64_t patience, std::string metric, bool higher)
      : Callback({.state = patience > 0 ? "patience" : ""}),
        patience_(patience),
        metric_(std::move(metric)),
        higher_(higher),
        best_((higher ? -1 : 1) * std::numeric_limits<double>::infinity()) {}
  void save_state(CallbackState& state) override;
  void load_state(const CallbackState& state) override;
  void make_up(const EpochEvent& event, Orders& orders) override;
  void after_evaluation(const EvaluationEvent& event, Orders& orders) override;

 private:
  bool is_over() const { return patience_ > 0 && without_progress_ >= patience_; }
  std::string reason() const;
  std::int64_t patience_, without_progress_ = 0;
  std::string metric_;
  bool higher_;
  double best_;
};

}  // namespace lockstep::train
