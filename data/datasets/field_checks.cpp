#include "data/datasets/field_checks.h"

#include <algorithm>

#include "data/datasets/field_options.h"
#include "lockstep/comm/communicator.h"
#include "lockstep/core/error.h"
#include "lockstep/core/log.h"
#include "lockstep/data/class_target.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kChecksSite = "options";

using data::DatasetOptions;
using data::Purpose;

// Labels are probably numbers if there are more of them, and more than one for two samples.
constexpr std::int64_t kManyLabels = 10;

}  // namespace

void check_fields_options(const DatasetOptions& o) {
  const data::FieldOptions& f = o.fields;
  check(f.eval_fraction < 1 || o.purpose != Purpose::Train, kChecksSite,
        "--eval-fraction is {}, expected less than 1: 1 is for --evaluate-only", f.eval_fraction);
  check(!f.inputs.empty() && (!f.targets.empty() || !f.label.empty() || o.purpose == Purpose::Predict), kChecksSite,
        "--inputs is '{}' and --targets is '{}', expected the names of arrays in the files, separated by commas",
        f.inputs, f.targets);
  check(f.label.empty() || o.name == "csv", kChecksSite, "--label is for csv; of {}, expected --targets with one array",
        o.name);
  check(f.missing == data::MissingValues::Error || o.name == "csv", kChecksSite,
        "--missing is for csv; of {}, expected arrays without missing values", o.name);
  check(f.label.empty() || (f.targets.empty() && f.target == data::TargetKind::Classes), kChecksSite,
        "--label is '{}', which is a class, expected no --targets and a --loss of classes", f.label);
  check(f.target != data::TargetKind::Classes || !f.label.empty() || split_names("targets", f.targets).size() == 1,
        kChecksSite, "--targets is '{}' with a --loss of classes, expected one array of integers", f.targets);
  check(f.target == data::TargetKind::Classes || f.classes == 0, kChecksSite,
        "--classes is {} and the --loss is none of classes, expected cross-entropy or dice", f.classes);
  check(o.mean.empty() || scaling_of(f) == data::Scaling::MeanStd, kChecksSite,
        "--mean and --std with --normalise {}, expected standard or log", name_of(f.normalise));
  check(f.symmetry != data::SymmetryKind::None ||
            (f.vectors.empty() && f.pseudovectors.empty() && f.pseudoscalars.empty()),
        kChecksSite,
        "--vectors, --pseudovectors or --pseudoscalars without --symmetry, expected flips, rotations or all");
  check(!o.augment && o.resize == 0, kChecksSite, "--augment and --resize are for images, and {} has none", o.name);
}

void check_files_options(const DatasetOptions& o) {
  check_fields_options(o);
  check(!o.fields.files.empty(), kChecksSite, "--files is missing, expected files of {}, as in --files 'run*.h5'",
        o.name);
}

void check_flags(const data::RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                 const std::vector<std::string>& targets) {
  for (const std::string& name : targets) {
    if (o.purpose == Purpose::Train) data::check_flags(*data.train, name, comm);
    if (data.eval) data::check_flags(*data.eval, name, comm);
  }
}

void warn_of_targets(const data::RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                     const std::vector<std::string>& targets) {
  if (o.purpose != Purpose::Train || (comm != nullptr && !comm->is_root())) return;
  const std::vector<data::Field>& fields = data.train->fields();
  for (const std::string& name : targets) {
    if (o.fields.target == data::TargetKind::Numbers &&
        !is_floating(fields[data::find_field(kChecksSite, fields, name)].dtype))
      log()->warn("data: targets '{}' are integers, trained as numbers: for classes, --loss cross-entropy", name);
  }
  if (o.fields.target != data::TargetKind::Classes) return;
  const std::int64_t classes = data.classes(), samples = data.train->size();
  if (!o.fields.label.empty()) {
    if (classes > kManyLabels && 2 * classes > samples)
      log()->warn("data: --label '{}' has {} classes for {} training samples: for numbers, --targets '{}'",
                  o.fields.label, classes, samples, o.fields.label);
    return;
  }
  const std::int64_t absent = std::ranges::count(data.labels.counts, 0);
  if (o.fields.classes == 0 && 2 * absent > classes)
    log()->warn("data: {} of {} classes never occur in the training samples: is {} an --ignore-index?", absent, classes,
                classes - 1);
}

}  // namespace lockstep::datasets
