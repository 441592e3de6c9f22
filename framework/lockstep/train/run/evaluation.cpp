#include "lockstep/train/run/evaluation.h"

#include <chrono>

#include "lockstep/core/error.h"

namespace lockstep::train {

Evaluation evaluate_sets(const RunParts& run, const CallbackList& callbacks, bool makes_up) {
  check(run.course.has_evaluation(), "session", "there is no evaluation data, expected a set in data::RunData::eval");
  const auto began = std::chrono::steady_clock::now();
  const EvaluationStart start{.samples = run.course.evaluation_samples(), .makes_up = makes_up};
  callbacks.each([&](Callback& c) { c.before_evaluation(start); });
  std::int64_t done = 0;  // samples of the sets before
  const auto evaluate_set = [&](data::Loader& loader) {
    loader.seek({});
    Totals totals = run.trainer.evaluate(
        loader, [&](std::int64_t samples) { callbacks.each([&](Callback& c) { c.evaluated(done + samples); }); });
    done += loader.sampler().options().size;
    return totals;
  };
  Evaluation found{.totals = evaluate_set(run.course.evaluation())};
  for (auto& [name, loader] : run.course.more_evaluations()) {
    if (found.totals.whole) found.totals.whole = (found.more[name] = evaluate_set(*loader)).whole;
  }
  found.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return found;
}

void check_use(const RunParts& run) {
  const bool predicts = run.facts.options.purpose() == data::Purpose::Predict;
  const data::RunData& data = run.facts.data;
  check(predicts || run.course.has_evaluation(), "options",
        "--evaluate-only without evaluation samples; expected --eval-files, --eval-fraction above 0, or another data "
        "set that has some");
  check(data.train != nullptr || data.eval != nullptr, "options",
        "--predict with a stream and without evaluation samples, expected a set in data::RunData::eval");
  check(!predicts || data.predicted().size() > 0, "options",
        "--predict with a data set that has no samples, expected at least one");
}

}  // namespace lockstep::train
