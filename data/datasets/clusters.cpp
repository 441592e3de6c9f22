#include "data/datasets/clusters.h"

#include "data/datasets/field_options.h"
#include "data/datasets/field_sets.h"
#include "data/datasets/hdf5_fields.h"
#include "lockstep/core/error.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {
namespace {

using data::DatasetOptions;

void check_clusters(const DatasetOptions& o) {
  constexpr std::string_view kClustersSite = "options";
  check(!o.fields.files.empty(), kClustersSite, "--files is missing, expected HDF5 files, as in --files 'run*.h5'");
  const bool one_input = !o.fields.inputs.empty() && split_names("inputs", o.fields.inputs).size() == 1;
  const bool two_targets = !o.fields.targets.empty() && split_names("targets", o.fields.targets).size() == 2;
  check(one_input && two_targets, kClustersSite,
        "--inputs is '{}' and --targets is '{}', expected the name of positions, and those of energies and forces",
        o.fields.inputs, o.fields.targets);
  check(o.fields.normalise == data::FieldScaling::None, kClustersSite,
        "--normalise is {}, expected none: forces would be no derivatives of energies", name_of(o.fields.normalise));
  check(o.fields.eval_fraction < 1 || o.purpose != data::Purpose::Train, kClustersSite,
        "--eval-fraction is {}, expected less than 1: 1 is for --evaluate-only", o.fields.eval_fraction);
}

std::unique_ptr<data::Dataset> open_files(const DatasetOptions& o, const std::vector<std::string>& files) {
  const std::vector<std::string> targets = split_names("targets", o.fields.targets);
  auto set = std::make_unique<Hdf5Dataset>(Hdf5Options{.files = files,
                                                       .dir = o.dir,
                                                       .inputs = {"position=" + o.fields.inputs},
                                                       .targets = {"energy=" + targets[0], "force=" + targets[1]},
                                                       .sample_axis = o.fields.sample_axis});
  const std::vector<data::Field>& fields = set->fields();
  const Shape& position = fields[0].shape;
  check(position.rank() == 2 && position[0] >= 2 && position[1] == 3 && fields[2].shape == position &&
            fields[1].shape.rank() == 0,
        "clusters", "{}: a sample has positions {}, an energy {} and forces {}, expected (atoms, 3), () and (atoms, 3)",
        joined(files, ","), position.str(), fields[1].shape.str(), fields[2].shape.str());
  return set;
}

data::RunData open_clusters(const DatasetOptions& o) {
  data::RunData data = open_sets(o, open_files);
  data.train_transforms = data.eval_transforms = {std::make_shared<data::ConvertFloats>(o.floats)};
  return data;
}

}  // namespace

data::DatasetEntry clusters_entry() {
  return {.name = "clusters",
          .description = "positions, energies and forces of atoms in HDF5 files: --files",
          .kind = data::DatasetKind::Fields,
          .ignores = {"spatial-axes", "series", "log-offset", "label", "missing", "classes", "ignore-index", "symmetry",
                      "vectors", "pseudovectors", "pseudoscalars", "mean", "std", "noise", "label-smoothing"},
          .open_all = open_clusters,
          .check_options = check_clusters};
}

}  // namespace lockstep::datasets
