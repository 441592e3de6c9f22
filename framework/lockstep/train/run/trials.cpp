#include "lockstep/train/run/trials.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/dataset_view.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/train/callbacks/find_rate.h"
#include "lockstep/train/options/options_table.h"

namespace lockstep::train {

void settle_trials(Options& options) {
  if (!options.trial.find_lr) return;
  options.output = (std::filesystem::path(options.output) / "find-lr").string();
  options.epochs = 0;
  options.max_steps = options.trial.lr_steps;
  options.eval_every = 0;
  options.patience = {};
  options.checkpoints = {.every_epochs = 0};
  options.rate = {.kind = optim::ScheduleOptions::Kind::Constant,
                  .peak = 1,
                  .scaled = options.rate.scaled,
                  .scale_batch = options.rate.scale_batch};
  options.trainer.guards.action = GuardAction::Log;
  options.trainer.guards.gradient = {};
}

void limit_to_trial(RunFacts& facts) {
  const std::int64_t batches = facts.options.trial.overfit_batches, batch = facts.global_batch();
  if (batches == 0) return;
  data::RunData& data = facts.data;
  check(data.train != nullptr, kOptionsSite, "--overfit-batches is {}, expected 0: a stream gives each sample once",
        batches);
  check(data.epoch.order == nullptr, kOptionsSite,
        "--overfit-batches with --balanced or --sample-weights, expected one of them: the first samples are trained in "
        "their order");
  check(data.epoch.mix == nullptr, kOptionsSite,
        "--overfit-batches with --mixup-alpha or --cutmix-alpha, expected one of them: samples are trained unchanged");
  check(!data.train->is_random(), kOptionsSite,
        "--overfit-batches with {}, whose samples are cropped at random while they are decoded, expected --no-augment "
        "beside it",
        data.train->describe());
  const std::int64_t whole = data.train->size() / batch;
  check(batches <= whole, kOptionsSite,
        "--overfit-batches is {}, expected at most {}: the {} training samples fill {} global batches of {}", batches,
        whole, data.train->size(), whole, batch);
  const std::shared_ptr<const data::Dataset> all = std::move(data.train);
  const auto first = [&] {
    return data::SubsetDataset::first(std::make_unique<data::DatasetView>(all), batches * batch);
  };
  data.train = first();
  data.eval = first();
  data.more_eval.clear();
  data.train_transforms = data.eval_transforms;
  data.notes.clear();  // it tells the changes of the training samples, which now have none
}

std::unique_ptr<Callback> find_rate(const RunParts& run) {
  const TrialOptions& trial = run.facts.options.trial;
  const double peak = optim::peak_rate(run.facts.options.rate, run.facts.global_batch());  // of --lr 1
  FindRate::Run calls{.set_rate = [&course = run.course, peak](double rate) { course.set_rate_factor(rate / peak); },
                      .end = [&course = run.course] { course.end(); },
                      .write = {}};
  calls.write = [&files = run.files,
                 &comm = run.facts.comm](const std::function<std::map<std::string, std::string>()>& make) {
    comm::collectively(comm, [&] {
      const std::map<std::string, std::string> texts = make();
      if (!comm.is_root()) return;
      const auto folder = files.folder().folder();
      for (const auto& [name, text] : texts) io::replace_file(*folder, name, text, "find-lr");
    });
  };
  return comm::collectively(run.facts.comm, [&]() -> std::unique_ptr<Callback> {
    return std::make_unique<FindRate>(optim::RateTest(trial.lr_range[0], trial.lr_range[1], trial.lr_steps), 1 / peak,
                                      std::move(calls));
  });
}

}  // namespace lockstep::train
