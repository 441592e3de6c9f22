#include "data/datasets/field_entries.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/datasets/csv.h"
#include "data/datasets/field_options.h"
#include "data/datasets/field_transforms.h"
#include "data/datasets/hdf5_fields.h"
#include "data/datasets/npy_fields.h"
#include "lockstep/comm/agreement.h"
#include "lockstep/core/error.h"
#include "lockstep/data/augment/gaussian_noise.h"
#include "lockstep/data/class_target.h"
#include "lockstep/data/combined_datasets.h"
#include "lockstep/data/dataset_view.h"
#include "lockstep/data/join_fields.h"
#include "lockstep/data/normalisation.h"
#include "lockstep/data/wrap_sets.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kSite = "options";

using data::DatasetOptions;
using data::Field;
using data::RunData;
using MakeSet =
    std::function<std::unique_ptr<data::Dataset>(const DatasetOptions&, const std::vector<std::string>& files)>;

std::vector<std::string> files_of(const DatasetOptions& o) { return split_names("files", o.fields.files); }

void check_fields_options(const DatasetOptions& o) {
  const data::FieldOptions& f = o.fields;
  check(!f.inputs.empty() && (!f.targets.empty() || !f.label.empty()), kSite,
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
  check(f.mean.empty() == f.stddev.empty(), kSite, "--mean is '{}' and --std is '{}', expected both or none", f.mean,
        f.stddev);
  check(f.mean.empty() || f.normalise == "standard" || f.normalise == "log", kSite,
        "--mean and --std with --normalise {}, expected standard or log", f.normalise);
  check(f.symmetry != "none" || (f.vectors.empty() && f.pseudovectors.empty() && f.pseudoscalars.empty()), kSite,
        "--vectors, --pseudovectors or --pseudoscalars without --symmetry, expected flips, rotations or all");
  check(!o.augment && o.resize == 0, kSite, "--augment and --resize are for images, and {} has none", o.name);
}

void check_files_options(const DatasetOptions& o) {
  check_fields_options(o);
  check(!o.fields.files.empty(), kSite, "--files is missing, expected files of {}, as in --files 'run*.h5'", o.name);
}

// The sets for training and evaluation: of different files, or parts of the same ones, which files of indices name or
// --eval-fraction divides.
RunData open_sets(const DatasetOptions& o, const MakeSet& make) {
  RunData data;
  data.train = make(o, files_of(o));
  const data::SampleOptions& samples = o.samples;
  if (!o.fields.eval_files.empty()) {
    data.eval = make(o, split_names("eval-files", o.fields.eval_files));
  } else if (!samples.eval_subset.empty()) {
    check(!samples.train_subset.empty(), kSite,
          "--eval-subset is given without --eval-files, so it names samples of --files; expected --train-subset beside "
          "it");
    const std::shared_ptr<const data::Dataset> all = std::move(data.train);
    data.train = std::make_unique<data::DatasetView>(all);
    data.eval = std::make_unique<data::DatasetView>(all);
  }
  data.train = data::subset_of(std::move(data.train), samples.train_subset, "train-subset");
  if (data.eval) {
    data.eval = data::subset_of(std::move(data.eval), samples.eval_subset, "eval-subset");
  } else if (o.fields.eval_fraction > 0) {
    auto parts =
        data::split_dataset(std::move(data.train), {1 - o.fields.eval_fraction, o.fields.eval_fraction}, o.seed);
    data.train = std::move(parts[0]);
    data.eval = std::move(parts[1]);
    check(data.train->size() > 0 && data.eval->size() > 0, kSite,
          "--eval-fraction is {}, which leaves {} training and {} evaluation samples, expected at least one each",
          o.fields.eval_fraction, data.train->size(), data.eval->size());
  }
  return data;
}

bool is_float(const Field& field) { return field.dtype == DType::F32 || field.dtype == DType::F64; }

// The number of spatial dimensions. Where fields differ in their dimensions, those with more have channels.
int spatial_axes(const DatasetOptions& o, const std::vector<Field>& fields) {
  if (o.fields.spatial_axes >= 0) return static_cast<int>(o.fields.spatial_axes);
  int least = fields.front().shape.rank();
  for (const Field& field : fields) least = std::min(least, field.shape.rank());
  const bool differ = std::ranges::any_of(fields, [&](const Field& f) { return f.shape.rank() != least; });
  return differ || least > 1 ? least : 0;  // one dimension alone is a row of features
}

nlohmann::json described(const std::vector<Field>& fields, const std::vector<std::string>& names, int axes) {
  nlohmann::json list = nlohmann::json::array();
  for (const std::string& name : names) {
    const Field& field = fields[data::find_field(kSite, fields, name)];
    list.push_back({{"name", name}, {"channels", data::channels_of(field, axes)}});
  }
  return list;
}

// Names of the fields that come from `texts`, in their order: the sets have inputs first, then targets.
struct Names {
  std::vector<std::string> inputs, targets;
};

Names names_of(const DatasetOptions& o, const std::vector<Field>& fields) {
  const std::size_t inputs = split_names("inputs", o.fields.inputs).size();
  Names names;
  for (std::size_t i = 0; i < fields.size(); ++i) (i < inputs ? names.inputs : names.targets).push_back(fields[i].name);
  return names;
}

// Runs `work` and throws on all ranks if it throws on one.
template <class Work>
auto together(const comm::Communicator* comm, const Work& work) {
  return comm == nullptr ? work() : comm::collectively(*comm, work);
}

// What is known of the arrays before any sample is read.
struct FieldPlan {
  int axes = 0;
  std::vector<data::NormalisationOptions> wanted{};
};

FieldPlan plan_fields(const DatasetOptions& o, const std::vector<Field>& fields, const Names& names) {
  const data::TargetKind kind = o.fields.target;
  std::vector<std::string> scaled = names.inputs, on_grid = names.inputs;
  if (kind == data::TargetKind::Numbers) scaled.insert(scaled.end(), names.targets.begin(), names.targets.end());
  if (kind != data::TargetKind::Classes) on_grid.insert(on_grid.end(), names.targets.begin(), names.targets.end());
  std::vector<Field> spatial;
  for (const std::string& name : on_grid) spatial.push_back(fields[data::find_field(kSite, fields, name)]);
  FieldPlan plan{.axes = spatial_axes(o, spatial)};
  plan.wanted = wishes(o, fields, plan.axes, scaled);
  if (kind == data::TargetKind::Flags) {  // only converted
    for (const std::string& name : names.targets)
      plan.wanted.push_back({.field = name, .scaling = data::Scaling::None});
  }
  return plan;
}

// Sets the transforms of both kinds of sets from numbers that are measured now.
void add_transforms(RunData& data, const DatasetOptions& o, const Names& names, int axes,
                    const data::Normalisation& normalisation) {
  data::Transforms transforms{std::make_shared<data::Normalise>(normalisation, o.floats),
                              std::make_shared<data::ConvertFloats>(o.floats)};
  const auto join = [&](const char* name, const std::vector<std::string>& all) {
    transforms.push_back(
        std::make_shared<data::JoinFields>(data::JoinOptions{.name = name, .fields = all, .spatial_axes = axes}));
  };
  join("input", names.inputs);
  if (o.fields.target == data::TargetKind::Classes) {
    const auto ignored = static_cast<std::int32_t>(o.fields.ignore_index);
    transforms.push_back(std::make_shared<data::ClassTarget>(
        data::ClassTargetOptions{.field = names.targets.front(), .classes = data.classes(), .ignore_index = ignored},
        axes));
  } else {
    join("target", names.targets);
  }
  data.eval_transforms = transforms;
  std::vector<std::string> all = names.inputs;
  all.insert(all.end(), names.targets.begin(), names.targets.end());
  data.train_transforms = symmetry_transforms(o, data.train->fields(), all, axes);
  data.train_transforms.insert(data.train_transforms.end(), transforms.begin(), transforms.end());
  if (o.fields.noise > 0)
    data.train_transforms.push_back(
        std::make_shared<data::GaussianNoise>(data::GaussianNoiseOptions{.field = "input", .stddev = o.fields.noise}));
}

void prepare_fields(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, const Names& names) {
  const std::vector<Field>& fields = data.train->fields();
  const bool classes = o.fields.target == data::TargetKind::Classes;
  const FieldPlan plan = together(comm, [&] { return plan_fields(o, fields, names); });
  const data::Normalisation normalisation = comm == nullptr
                                                ? data::measure_normalisation(*data.train, plan.wanted)
                                                : data::measure_normalisation(*data.train, plan.wanted, *comm);
  if (classes) {
    data.class_field = names.targets.front();
    data.class_counts =
        data::count_classes(*data.train, data.class_field, o.fields.classes > 0 ? o.fields.classes : data.classes(),
                            static_cast<std::int32_t>(o.fields.ignore_index), comm);
  }
  together(comm, [&] { add_transforms(data, o, names, plan.axes, normalisation); });
  nlohmann::json record{{"inputs", described(fields, names.inputs, plan.axes)},
                        {"targets", classes ? nlohmann::json::array() : described(fields, names.targets, plan.axes)},
                        {"spatial_axes", plan.axes},
                        {"normalisation", nlohmann::json::parse(normalisation.text())}};
  if (classes)
    record["classes"] = {{"count", data.classes()}, {"samples", data.class_counts}, {"names", data.class_names}};
  data.record = record.dump();
}

void prepare_named(RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  prepare_fields(data, o, comm, names_of(o, data.train->fields()));
}

std::unique_ptr<data::Dataset> make_hdf5(const DatasetOptions& o, const std::vector<std::string>& files) {
  return std::make_unique<Hdf5Dataset>(Hdf5Options{.files = files,
                                                   .dir = o.dir,
                                                   .inputs = split_names("inputs", o.fields.inputs),
                                                   .targets = split_names("targets", o.fields.targets),
                                                   .sample_axis = o.fields.sample_axis});
}

std::unique_ptr<data::Dataset> make_arrays(const DatasetOptions& o, const std::vector<std::string>& /*files*/) {
  return std::make_unique<NpyDataset>(NpyOptions{.dir = o.dir,
                                                 .inputs = split_names("inputs", o.fields.inputs),
                                                 .targets = split_names("targets", o.fields.targets),
                                                 .sample_axis = o.fields.sample_axis});
}

CsvOptions csv_options(const DatasetOptions& o, const std::vector<std::string>& files) {
  CsvOptions csv{.files = files, .dir = o.dir, .inputs = split_names("inputs", o.fields.inputs), .dtype = o.floats};
  if (!o.fields.targets.empty()) csv.targets = split_names("targets", o.fields.targets);
  csv.label = o.fields.label;
  return csv;
}

// The files for evaluation have the classes of those for training.
RunData open_csv(const DatasetOptions& o) {
  std::vector<std::string> classes;
  RunData data = open_sets(o, [&](const DatasetOptions& options, const std::vector<std::string>& files) {
    CsvOptions csv = csv_options(options, files);
    csv.classes = classes;
    auto set = std::make_unique<CsvDataset>(std::move(csv));
    classes = set->class_names();
    return set;
  });
  data.class_names = std::move(classes);
  return data;
}

}  // namespace

data::DatasetEntry hdf5_entry() {
  return {.name = "hdf5",
          .description = "arrays of HDF5 files: --files, --inputs, --targets",
          .takes_fields = true,
          .open_all = [](const DatasetOptions& o) { return open_sets(o, make_hdf5); },
          .prepare = prepare_named,
          .check_options = check_files_options};
}

data::DatasetEntry arrays_entry() {
  return {.name = "arrays",
          .description = "NumPy's .npy and .npz files: --inputs a.npy,b.npz/name, --targets",
          .takes_fields = true,
          .open_all =
              [](const DatasetOptions& o) {
                DatasetOptions with_files = o;  // names are paths here
                with_files.fields.files = o.fields.inputs;
                return open_sets(with_files, make_arrays);
              },
          .prepare = prepare_named,
          .check_options =
              [](const DatasetOptions& o) {
                check_fields_options(o);
                check(o.fields.files.empty() && o.fields.eval_files.empty(), kSite,
                      "--files and --eval-files are for other data sets; of arrays, expected paths in --inputs and "
                      "--targets, and --eval-fraction");
              }};
}

data::DatasetEntry csv_entry() {
  return {.name = "csv",
          .description = "rows of CSV tables: --files, and columns as --inputs, --targets or --label",
          .takes_fields = true,
          .open_all = open_csv,
          .prepare =
              [](RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
                prepare_fields(data, o, comm,
                               {.inputs = {"input"}, .targets = {o.fields.label.empty() ? "target" : "label"}});
              },
          .check_options = check_files_options};
}

}  // namespace lockstep::datasets
