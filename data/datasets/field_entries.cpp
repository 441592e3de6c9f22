#include "data/datasets/field_entries.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "data/datasets/csv.h"
#include "data/datasets/hdf5_fields.h"
#include "data/datasets/npy_fields.h"
#include "lockstep/core/error.h"
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
using MakeSet = std::unique_ptr<data::Dataset> (*)(const DatasetOptions&, const std::vector<std::string>& files);

std::vector<std::string> files_of(const DatasetOptions& o) { return split_names("files", o.fields.files); }

void check_fields_options(const DatasetOptions& o) {
  check(!o.fields.inputs.empty() && !o.fields.targets.empty(), kSite,
        "--inputs is '{}' and --targets is '{}', expected the names of arrays in the files, separated by commas",
        o.fields.inputs, o.fields.targets);
  check(!o.augment && o.resize == 0, kSite, "--augment and --resize are for images, and {} has none", o.name);
}

void check_files_options(const DatasetOptions& o) {
  check_fields_options(o);
  check(!o.fields.files.empty(), kSite, "--files is missing, expected files of {}, as in --files 'run*.h5'", o.name);
}

// The sets for training and evaluation: of different files, or parts of the same ones, which files of indices name or
// --eval-fraction divides.
RunData open_sets(const DatasetOptions& o, MakeSet make) {
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
  return differ || least > 1 ? std::min(least, 3) : 0;  // one dimension alone is a row of features
}

// How the samples' dimensions are read.
struct Axes {
  int inputs = 0, targets = 0;  // spatial dimensions, or 1 for time
  bool series = false;          // channels are behind the time, not in front
};

// Targets of one dimension or none are numbers where the inputs are fields of more dimensions, or series.
Axes axes_of(const DatasetOptions& o, const std::vector<Field>& inputs, const std::vector<Field>& targets) {
  const auto rank = [](const Field& field) { return field.shape.rank(); };
  const int most_target = targets.empty() ? 0 : rank(*std::ranges::max_element(targets, {}, rank));
  if (o.fields.series) {
    for (const Field& field : inputs) {
      check(rank(field) == 1 || rank(field) == 2, kSite,
            "--series: '{}' has samples {}, expected (time) or (time, features)", field.name, field.shape.str());
    }
    return {.inputs = 1, .targets = most_target == 2 ? 1 : 0, .series = true};
  }
  const int most_input = rank(*std::ranges::max_element(inputs, {}, rank));
  const bool numbers =
      !targets.empty() && (o.fields.spatial_axes >= 0 ? most_target < std::min<std::int64_t>(2, o.fields.spatial_axes)
                                                      : most_target < std::min(2, most_input - 1));
  if (numbers) return {.inputs = spatial_axes(o, inputs), .targets = 0};
  std::vector<Field> all = inputs;
  all.insert(all.end(), targets.begin(), targets.end());
  const int axes = spatial_axes(o, all);
  return {.inputs = axes, .targets = axes};
}

std::vector<data::NormalisationOptions> wishes(const DatasetOptions& o, const std::vector<Field>& fields, int axes) {
  std::vector<data::NormalisationOptions> wishes;
  for (const Field& field : fields) {
    const int channels = o.fields.series ? axes : 0;  // the axis that counts them
    data::NormalisationOptions wish{.field = field.name, .channel_axis = field.shape.rank() > axes ? channels : -1};
    wish.scaling = o.fields.normalise == "none"    ? data::Scaling::None
                   : o.fields.normalise == "range" ? data::Scaling::MinMax
                                                   : data::Scaling::MeanStd;
    if (o.fields.normalise == "log") wish.log_offset = o.fields.log_offset;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

nlohmann::json described(const std::vector<Field>& fields, int axes, bool series) {
  nlohmann::json list = nlohmann::json::array();
  for (const Field& field : fields) {
    const std::int64_t channels = data::channels_of(field, axes, series);
    list.push_back({{"name", field.name}, {"channels", channels}});
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

void prepare_fields(RunData& data, const DatasetOptions& o, const comm::Communicator* comm, const Names& names) {
  const std::vector<Field>& fields = data.train->fields();
  const bool classes = names.targets.size() == 1 &&
                       !is_float(fields[data::find_field(kSite, fields, names.targets[0])]) && data.classes() > 0;
  const auto called = [&](const std::vector<std::string>& wanted) {
    std::vector<Field> found;
    for (const std::string& name : wanted) found.push_back(fields[data::find_field(kSite, fields, name)]);
    return found;
  };
  const std::vector<Field> inputs = called(names.inputs),
                           targets = classes ? std::vector<Field>{} : called(names.targets);
  const Axes axes = axes_of(o, inputs, targets);
  auto wanted = wishes(o, inputs, axes.inputs);
  std::ranges::move(wishes(o, targets, axes.targets), std::back_inserter(wanted));
  const data::Normalisation normalisation = comm == nullptr ? data::measure_normalisation(*data.train, wanted)
                                                            : data::measure_normalisation(*data.train, wanted, *comm);
  data::Transforms transforms{std::make_shared<data::Normalise>(normalisation, o.floats),
                              std::make_shared<data::ConvertFloats>(o.floats)};
  const auto join = [&](const char* name, const std::vector<std::string>& all, int dimensions) {
    transforms.push_back(std::make_shared<data::JoinFields>(
        data::JoinOptions{.name = name, .fields = all, .spatial_axes = dimensions, .channels_last = axes.series}));
  };
  join("input", names.inputs, axes.inputs);
  if (!classes) join("target", names.targets, axes.targets);
  data.train_transforms = data.eval_transforms = transforms;
  data.record = nlohmann::json{{"inputs", described(inputs, axes.inputs, axes.series)},
                               {"targets", described(targets, axes.targets, axes.series)},
                               {"spatial_axes", axes.inputs},
                               {"target_axes", axes.targets},
                               {"series", axes.series},
                               {"normalisation", nlohmann::json::parse(normalisation.text())}}
                    .dump();
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

std::unique_ptr<data::Dataset> make_csv(const DatasetOptions& o, const std::vector<std::string>& files) {
  return std::make_unique<CsvDataset>(CsvOptions{.files = files,
                                                 .dir = o.dir,
                                                 .inputs = split_names("inputs", o.fields.inputs),
                                                 .targets = split_names("targets", o.fields.targets),
                                                 .dtype = o.floats});
}

}  // namespace

std::vector<std::string> split_names(std::string_view option, std::string_view text) {
  std::vector<std::string> names(1);
  int depth = 0;
  for (const char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      names.emplace_back();
    } else {
      names.back() += c;
    }
  }
  for (std::string& name : names) {
    name.erase(0, name.find_first_not_of(' '));
    name.erase(name.find_last_not_of(' ') + 1);
    check(!name.empty(), kSite, "--{} is '{}', expected names with commas between them", option, text);
  }
  return names;
}

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
          .description = "rows of CSV tables: --files, and columns as --inputs and --targets",
          .takes_fields = true,
          .open_all = [](const DatasetOptions& o) { return open_sets(o, make_csv); },
          .prepare =
              [](RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
                prepare_fields(data, o, comm, {.inputs = {"input"}, .targets = {"target"}});
              },
          .check_options = check_files_options};
}

}  // namespace lockstep::datasets
