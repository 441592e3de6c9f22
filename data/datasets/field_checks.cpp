#include "data/datasets/field_checks.h"

#include "data/datasets/field_options.h"
#include "lockstep/core/error.h"
#include "lockstep/data/class_target.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSite = "options";

using data::DatasetOptions;
using data::Purpose;

}  // namespace

void check_fields_options(const DatasetOptions& o) {
  const data::FieldOptions& f = o.fields;
  check(f.eval_fraction < 1 || o.purpose != Purpose::Train, kSite,
        "--eval-fraction is {}, expected less than 1: 1 is for --evaluate-only", f.eval_fraction);
  check(!f.inputs.empty() && (!f.targets.empty() || !f.label.empty() || o.purpose == Purpose::Predict), kSite,
        "--inputs is '{}' and --targets is '{}', expected the names of arrays in the files, separated by commas",
        f.inputs, f.targets);
  check(f.label.empty() || o.name == "csv", kSite, "--label is for csv; of {}, expected --targets with one array",
        o.name);
  check(f.label.empty() || (f.targets.empty() && f.target == data::TargetKind::Classes), kSite,
        "--label is '{}', which is a class, expected no --targets and a --loss of classes", f.label);
  check(f.target != data::TargetKind::Classes || !f.label.empty() || split_names("targets", f.targets).size() == 1,
        kSite, "--targets is '{}' with a --loss of classes, expected one array of integers", f.targets);
  check(f.target == data::TargetKind::Classes || f.classes == 0, kSite,
        "--classes is {} and the --loss is none of classes, expected cross-entropy or dice", f.classes);
  check(o.mean.empty() || f.normalise == "standard" || f.normalise == "log", kSite,
        "--mean and --std with --normalise {}, expected standard or log", f.normalise);
  check(f.symmetry != "none" || (f.vectors.empty() && f.pseudovectors.empty() && f.pseudoscalars.empty()), kSite,
        "--vectors, --pseudovectors or --pseudoscalars without --symmetry, expected flips, rotations or all");
  check(!o.augment && o.resize == 0, kSite, "--augment and --resize are for images, and {} has none", o.name);
}

void check_files_options(const DatasetOptions& o) {
  check_fields_options(o);
  check(!o.fields.files.empty(), kSite, "--files is missing, expected files of {}, as in --files 'run*.h5'", o.name);
}

void check_flags(const data::RunData& data, const DatasetOptions& o, const comm::Communicator* comm,
                 const std::vector<std::string>& targets) {
  for (const std::string& name : targets) {
    if (o.purpose == Purpose::Train) data::check_flags(*data.train, name, comm);
    if (data.eval) data::check_flags(*data.eval, name, comm);
  }
}

}  // namespace lockstep::datasets
