// Data sets by name. The framework contains no data set: a program gives its session a catalogue, a table with one row
// per data set (data/datasets/catalogue.h lists those of Lockstep). Any thread may call these functions.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/run_data.h"

namespace lockstep::comm {
class Communicator;
}

namespace lockstep::data {

// The arrays of files that are the samples' inputs and targets, for entries whose `takes_fields` is set.
struct FieldOptions {
  std::string files{}, eval_files{};   // paths with * and ?, separated by commas
  std::string inputs{}, targets{};     // names in the files, separated by commas; NAME[:, 0:2] takes a part
  std::int64_t sample_axis = 0;        // the dimension that counts samples
  double eval_fraction = 0.1;          // of the samples of `files`, for evaluation, where `eval_files` is empty; 1 is
                                       // for a run that only evaluates
  std::int64_t spatial_axes = -1;      // spatial dimensions of a sample; a further one before them counts channels; -1:
                                       // those of the field with the fewest
  std::string normalise = "standard";  // standard, range, log or none: of each field, per channel
  double log_offset = 0;               // with `log`: added before the logarithm
};

struct DatasetOptions {
  std::string name{};           // name of an entry of the catalogue
  std::filesystem::path dir{};  // folder with the files, for an entry that needs files
  FieldOptions fields{};
  std::int64_t limit_train = 0, limit_eval = 0;  // use this many first samples; 0: all
  std::uint64_t seed = 0;                        // seed of data that is generated, and of a random split
  bool augment = false;                          // random crops and flips of images in training
  std::int64_t resize = 0;                       // pixels of the images' shorter side; 0: as in the data set
  DType floats = DType::F32;                     // F32 or F64: the type of the model's inputs that are not integers
  Purpose purpose = Purpose::Train;  // Predict: the sets need no targets, and all samples of fields.files are predicted
  // RunData::record of the run that made the weights, for a purpose other than Train; null: there is none. The caller
  // of open_data() and prepare_data() owns the text until they return.
  const std::string* record = nullptr;
};

struct DatasetEntry {
  std::string name;
  std::string description;    // the source of the samples, in a few words for --help and lists
  bool needs_dir = false;     // the samples are read from files in DatasetOptions::dir
  bool takes_fields = false;  // the entry reads DatasetOptions::fields
  // Opens one split. Throws Error with file, offset and expectation if a file is not as expected. A field "image" (U8,
  // (channels, height, width)) is cropped, flipped, resized and normalised as options say; other fields are used as
  // they are.
  std::function<std::unique_ptr<Dataset>(const DatasetOptions&, Split)> open{};
  // Opens everything, in place of open(), for an entry with transforms or splits of its own. No communication.
  std::function<RunData(const DatasetOptions&)> open_all{};
  // Completes what open_all() returned, for an entry whose ranks share the work (statistics over all samples). A
  // collective call over the ranks of the communicator, which is null for a process alone. Throws AgreedError.
  std::function<void(RunData&, const DatasetOptions&, const comm::Communicator*)> prepare{};
  // Throws Error for options that the entry refuses, before any file is opened. Empty: the entry takes all.
  std::function<void(const DatasetOptions&)> check_options{};
  // Mean and standard deviation of the training set's pixels in [0, 1]: one value per channel, or one for all channels.
  // Empty: measured when the set is opened.
  std::vector<float> mean{}, stddev{};
  bool mirrored = false;  // augmentation may flip images left to right
};

using Catalogue = std::span<const DatasetEntry>;  // a table, which must outlive its users

// Returns the names of all entries: "digits, mnist".
std::string dataset_names(Catalogue catalogue);
// Returns the entry called `name`; throws Error at site "options", which names the command line's options, if there is
// none. check_dataset() also throws if the entry needs a folder and `dir` is empty, and for options that the entry
// refuses.
const DatasetEntry& find_dataset(Catalogue catalogue, std::string_view name);
void check_dataset(Catalogue catalogue, const DatasetOptions& options);
// Opens the data set that `options` name. Throws Error as the functions above, for a limit larger than the set, and for
// files that are not as expected.
RunData open_data(Catalogue catalogue, const DatasetOptions& options);
// Completes it (DatasetEntry::prepare), after which fields() are those of the model.
void prepare_data(Catalogue catalogue, const DatasetOptions& options, RunData& data,
                  const comm::Communicator* comm = nullptr);

}  // namespace lockstep::data
