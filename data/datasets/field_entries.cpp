#include "data/datasets/field_entries.h"

#include <memory>
#include <utility>

#include "data/datasets/field_checks.h"
#include "data/datasets/field_options.h"
#include "data/datasets/field_sets.h"
#include "data/datasets/hdf5_fields.h"
#include "data/datasets/npy_fields.h"
#include "data/datasets/prepare_fields.h"
#include "lockstep/core/error.h"

namespace lockstep::datasets {
namespace {

constexpr std::string_view kEntriesSite = "options";

using data::DatasetOptions;
using data::RunData;

void prepare_named(RunData& data, const DatasetOptions& o, const comm::Communicator* comm) {
  prepare_fields(data, o, comm, names_of(o, data.train->fields()));
}

std::unique_ptr<data::Dataset> make_hdf5(const DatasetOptions& o, const std::vector<std::string>& files) {
  return std::make_unique<Hdf5Dataset>(Hdf5Options{.files = files,
                                                   .dir = o.dir,
                                                   .inputs = split_names("inputs", o.fields.inputs),
                                                   .targets = targets_of(o),
                                                   .sample_axis = o.fields.sample_axis});
}

std::unique_ptr<data::Dataset> make_arrays(const DatasetOptions& o, const std::vector<std::string>& /*files*/) {
  return std::make_unique<NpyDataset>(NpyOptions{.dir = o.dir,
                                                 .inputs = split_names("inputs", o.fields.inputs),
                                                 .targets = targets_of(o),
                                                 .sample_axis = o.fields.sample_axis});
}

}  // namespace

data::DatasetEntry hdf5_entry() {
  return {.name = "hdf5",
          .description = "arrays of HDF5 files: --files, --inputs, --targets",
          .kind = data::DatasetKind::Fields,
          .open_all = [](const DatasetOptions& o) { return open_sets(o, make_hdf5); },
          .prepare = prepare_named,
          .check_options = check_files_options};
}

data::DatasetEntry arrays_entry() {
  return {.name = "arrays",
          .description = "NumPy's .npy and .npz files: --inputs a.npy,b.npz/name, --targets",
          .kind = data::DatasetKind::Fields,
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
                check(o.fields.files.empty() && o.fields.eval_files.empty(), kEntriesSite,
                      "--files and --eval-files are for other data sets; of arrays, expected paths in --inputs and "
                      "--targets, and --eval-fraction");
              }};
}

}  // namespace lockstep::datasets
