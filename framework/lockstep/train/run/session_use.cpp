// The part of a Session that only uses weights: --evaluate-only and --predict.
#include "lockstep/core/error.h"
#include "lockstep/train/callbacks/callback_list.h"
#include "lockstep/train/options/command_line_error.h"
#include "lockstep/train/report/run_files.h"
#include "lockstep/train/run/announcement.h"
#include "lockstep/train/run/checkpoints.h"
#include "lockstep/train/run/prediction.h"
#include "lockstep/train/run/session.h"
#include "lockstep/train/run/standard_callbacks.h"
#include "lockstep/train/run/start.h"

namespace lockstep::train {

// Loads the weights of a run that trains nothing.
void Session::prepare_weights(std::size_t before) {
  const RunParts parts = this->parts();
  check_together(comm_, [&] {
    check(facts_->options.purpose() == data::Purpose::Predict || course_->has_evaluation(), "options",
          "--evaluate-only without evaluation samples; expected --eval-files, --eval-fraction above 0, or another data "
          "set that has some");
    check(facts_->data.train != nullptr || facts_->data.eval != nullptr, "options",
          "--predict with a stream and without evaluation samples, expected a set in data::RunData::eval");
    check(facts_->options.purpose() != data::Purpose::Predict || facts_->data.predicted().size() > 0, "options",
          "--predict with a data set that has no samples, expected at least one");
  });
  announce(parts, forecast_memory(parts, before));
  load_weights(*facts_, *trainer_);
  add_evaluation_callbacks(*callbacks_, parts);
  callbacks_->each([&](Callback& c) { c.begin_run(trainer_->updates()); });
}

// Evaluates or predicts, once.
void Session::use_weights() {
  if (std::exchange(loop_.finished, true)) return;
  if (facts_->options.purpose() == data::Purpose::Predict) {
    write_predictions(parts());
  } else {
    run_evaluation(true, false);
  }
  heartbeat_.enter(Heartbeat::Phase::Ending);
  callbacks_->each([&](Callback& c) { c.end_run({.step = trainer_->updates(), .trained = false}); });
}

}  // namespace lockstep::train
