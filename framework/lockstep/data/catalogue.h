// Data sets by name. The framework contains no data set: a program gives its session a catalogue, a table with one row
// per data set (data/datasets/catalogue.h lists those of Lockstep). Any thread may call these functions.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/image_options.h"
#include "lockstep/data/run_data.h"

namespace lockstep::comm {
class Communicator;
}

namespace lockstep::data {

// The kind of the targets of arrays: numbers, which are normalised; classes, from 0 on, which become I32; or flags,
// numbers from 0 to 1 that stay as they are.
enum class TargetKind : std::uint8_t { Numbers, Classes, Flags };

// The treatment of missing values of a table: an error; the record is left out; or the mean of the column over the
// training samples is taken for an input, and the record is left out where a target or the class is missing.
enum class MissingValues : std::uint8_t { Error, Skip, Mean };

// The treatment of each field's numbers, per channel: to mean 0 and deviation 1, to 0 to 1, the logarithm to mean 0 and
// deviation 1, or none.
enum class FieldScaling : std::uint8_t { Standard, Range, Log, None };
inline constexpr std::array<std::string_view, 4> kFieldScalingNames{"standard", "range", "log", "none"};
constexpr std::string_view name_of(FieldScaling scaling) {
  return kFieldScalingNames[static_cast<std::size_t>(scaling)];
}

// The random turns of samples in training (augment/field_symmetry.h): none, along single axes, by 90 degrees, or both.
enum class SymmetryKind : std::uint8_t { None, Flips, Rotations, All };
inline constexpr std::array<std::string_view, 4> kSymmetryKindNames{"none", "flips", "rotations", "all"};
constexpr std::string_view name_of(SymmetryKind kind) { return kSymmetryKindNames[static_cast<std::size_t>(kind)]; }

// The arrays of files that are the samples' inputs and targets, for entries of DatasetKind::Fields.
struct FieldOptions {
  std::string files{}, eval_files{};  // paths with * and ?, separated by commas
  std::string inputs{}, targets{};    // names in the files, separated by commas; NAME[:, 0:2] takes a part
  std::int64_t sample_axis = 0;       // the dimension that counts samples
  double eval_fraction = 0.1;         // of the samples of `files`, for evaluation, where `eval_files` is empty; 1 is
                                      // for a run that only evaluates
  std::int64_t spatial_axes = -1;     // spatial dimensions of a sample; a further one before them counts channels; -1:
                                      // those of the field with the fewest
  bool series = false;                // inputs are (time) or (time, features); features are their channels
  FieldScaling normalise = FieldScaling::Standard;
  double log_offset = 0;                    // with `Log`: added before the logarithm
  TargetKind target = TargetKind::Numbers;  // set by the program, from its loss
  std::string label{};                      // column of a table with the class, in place of targets
  MissingValues missing = MissingValues::Error;
  std::int64_t classes = 0;          // 0: the largest class in the training samples tells
  std::int64_t ignore_index = -100;  // in a target: a position without a class
  SymmetryKind symmetry = SymmetryKind::None;
  std::string vectors{}, pseudovectors{}, pseudoscalars{};  // names of fields, NAME[1,0] with channels
};

// Changes of the samples of any data set (data/wrap_sets.h).
struct SampleOptions {
  // Text files with indices of samples, one per line: the set has these samples alone. Empty: it has all samples.
  std::filesystem::path train_subset{}, eval_subset{};
  Unreadable unreadable = Unreadable::Stop;
  std::int64_t cache_mb = 0;  // MiB of decoded samples that this rank keeps in memory
  bool store = false;         // the training set in the memory of all ranks together (data/sample_store.h)
  // Samples that an epoch has: each class equally often, or by the weights of a file, one per line for each sample of
  // the data set.
  bool balanced = false;
  std::filesystem::path weights{};
  // More than 1: an epoch permutes blocks of this many neighbours, which are read in sequence (SamplerOptions).
  std::int64_t shuffle_block = 1;
};

struct DatasetOptions {
  std::string name{};           // name of an entry of the catalogue
  std::filesystem::path dir{};  // folder with the files, for an entry that needs files
  FieldOptions fields{};
  SampleOptions samples{};
  ImageSetOptions images{};
  // The mean and deviation by which samples are normalised, in place of measured or known ones: of fields, a number per
  // channel of the inputs, then of targets; of images, one number or one per channel, of pixels in [0, 1].
  std::vector<double> mean{}, stddev{};
  double noise = 0;  // in training: deviation of normal noise that is added to normalised inputs
  std::int64_t limit_train = 0, limit_eval = 0;  // use this many first samples; 0: all
  std::uint64_t seed = 0;                        // seed of data that is generated, and of a random split
  bool augment = false;                          // random crops and flips of images in training
  std::int64_t resize = 0;                       // pixels of the images' shorter side; 0: as in the data set
  DType floats = DType::F32;                     // F32 or F64: the type of the model's inputs that are not integers
  Purpose purpose = Purpose::Train;  // Predict: the sets need no targets, and all samples of fields.files are predicted
  // PredictionFacts::record of the run that made the weights, for a purpose other than Train; null: there is none. The
  // caller of open_data() and prepare_data() owns the text until they return.
  const std::string* record = nullptr;
};

// The kind of data that an entry reads, from which follows how its samples are completed.
enum class DatasetKind : std::uint8_t {
  Plain,    // samples that are used as they are; of a field "image", cropped, flipped, resized and normalised
  Encoded,  // image files or records: open_all() decodes them by decode_options() (data/image_sets.h) and keeps decoded
            // images in memory as SampleOptions say
  Fields,   // arrays, by DatasetOptions::fields
  Stream    // open_all() returns a stream in place of a training set
};

// The facts about a set's images that are known before they are read.
struct EntryPixels {
  // Mean and standard deviation of the training set's pixels in [0, 1]: one value per channel, or one for all channels.
  // Empty: measured when the set is opened.
  std::vector<float> mean{}, stddev{};
  bool mirrored = false;  // augmentation may flip images left to right
};

struct DatasetEntry {
  std::string name;
  std::string description;    // the source of the samples, in a few words for --help and lists
  bool needs_dir = false;     // the samples are read from files in DatasetOptions::dir
  bool takes_images = false;  // programs with this entry offer the options in DatasetOptions::images
  DatasetKind kind = DatasetKind::Plain;
  // The options for sets of its kind (train::ForData) that the entry does not read, by their names: a program whose
  // entries all ignore an option does not have it, and others refuse it with this data set.
  std::vector<std::string_view> ignores{};
  // Opens one split. Throws Error with file, offset and expectation if a file is not as expected. A field "image" (U8,
  // (channels, height, width)) is cropped, flipped, resized and normalised as options say; other fields are used as
  // they are.
  std::function<std::unique_ptr<Dataset>(const DatasetOptions&, Split)> open{};
  // Opens everything, in place of open(), for an entry with transforms or splits of its own. No communication. Of
  // DatasetKind::Fields it also takes the parts that SampleOptions' files of indices name, before it splits.
  std::function<RunData(const DatasetOptions&)> open_all{};
  // Completes the result of open_all(), for an entry whose ranks share the work (statistics over all samples). A
  // collective call over the ranks of the communicator, which is null for a process alone. Throws AgreedError.
  std::function<void(RunData&, const DatasetOptions&, const comm::Communicator*)> prepare{};
  // Throws Error for options that the entry refuses, before any file is opened. Empty: the entry takes all.
  std::function<void(const DatasetOptions&)> check_options{};
  EntryPixels pixels{};
  std::vector<std::string> class_names{};  // by label, where they are known before the files are
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
