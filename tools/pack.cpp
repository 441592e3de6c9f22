#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/datasets/catalogue.h"
#include "data/datasets/image_folder.h"
#include "lockstep/core/error.h"
#include "lockstep/data/records/record_reader.h"
#include "lockstep/data/records/record_writer.h"
#include "lockstep/train/options/option_checks.h"
#include "tools/commands.h"

namespace lockstep::tools {
namespace {

constexpr std::string_view kFolderName = "folder";

struct PackArguments {
  data::DatasetOptions dataset{.name = std::string(kFolderName)};
  std::string dir, output, split, verify;
  std::int64_t file_mib = 1024;
  std::uint64_t shuffle_seed = 0;
  bool shuffle = false;
};

std::vector<data::Split> splits_of(const std::string& name) {
  if (name == "train") return {data::Split::Train};
  if (name == "eval") return {data::Split::Eval};
  return {data::Split::Train, data::Split::Eval};
}

std::int64_t pack_split(const PackArguments& arguments, data::Split split) {
  data::PackOptions options{.folder = arguments.output,
                            .name = split == data::Split::Train ? "train" : "eval",
                            .file_bytes = static_cast<std::uint64_t>(arguments.file_mib) << 20};
  // The order of evaluation has no effect on training.
  if (arguments.shuffle && split == data::Split::Train) options.shuffle_seed = arguments.shuffle_seed;
  if (arguments.dataset.name != kFolderName) {
    const data::DatasetEntry& entry = data::find_dataset(datasets::catalogue(), arguments.dataset.name);
    return data::pack_dataset(*entry.open(arguments.dataset, split), options);
  }
  const std::filesystem::path folder = datasets::split_folder(arguments.dataset.dir, split);
  check(!folder.empty(), "pack", "{}: no folder train, expected train/CLASS/FILE and val/CLASS/FILE",
        arguments.dataset.dir.string());
  return data::pack_images(datasets::ImageFolder(datasets::list_image_folder(folder)), options);
}

// Reads every record, and compares its checksum.
void verify_set(const std::string& path) {
  const data::RecordReader reader(path);
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < reader.size(); ++i) bytes += reader.read(i).size();
  fmt::print("{}: {} records, {} bytes, all checksums right: {}\n", path, reader.size(), bytes,
             reader.layout().description);
}

void pack(PackArguments& arguments) {
  if (!arguments.verify.empty()) {
    check(arguments.output.empty(), "pack", "--verify reads a set and --output writes one, expected one of the two");
    return verify_set(arguments.verify);
  }
  check(!arguments.output.empty(), "pack", "--output is missing, expected a folder for the records");
  arguments.dataset.dir = arguments.dir;
  if (arguments.dataset.name == kFolderName) {
    check(!arguments.dir.empty(), "pack", "--data-dir is missing, expected the folder of the images");
  } else {
    data::check_dataset(datasets::catalogue(), arguments.dataset);
  }
  std::filesystem::create_directories(arguments.output);
  for (const data::Split split : splits_of(arguments.split)) {
    const std::int64_t records = pack_split(arguments, split);
    fmt::print("{}/{}.index: {} records\n", arguments.output, split == data::Split::Train ? "train" : "eval", records);
  }
}

}  // namespace

void add_pack_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "pack", "Pack a data set into a few large files of records with checksums, or verify such files");
  auto a = std::make_shared<PackArguments>();
  command
      ->add_option("--dataset", a->dataset.name,
                   "folder: image files in train/CLASS and val/CLASS; or a name of `lockstep-data list`")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--data-dir", a->dir, "Folder of the data set")->type_name("DIR")->envname("LOCKSTEP_DATA_DIR");
  command->add_option("--output", a->output, "Folder for train.index, eval.index and the files of records")
      ->type_name("DIR");
  command->add_option("--split", a->split, "Pack only this split; without it both")
      ->check(CLI::IsMember({"train", "eval"}));
  command->add_option("--file-size", a->file_mib, "MiB of a file, about")
      ->type_name("N")
      ->check(train::whole_number<std::int64_t>)
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_flag("--shuffle", a->shuffle,
                    "Training samples in a random order, so that those read in sequence are of different classes");
  command->add_option("--seed", a->shuffle_seed, "Seed of that order, and of a data set that is made")
      ->check(train::whole_number<std::uint64_t>)
      ->capture_default_str();
  command->add_option("--verify", a->verify, "Read all records of this set and compare their checksums")
      ->type_name("INDEX");
  command->callback([a] {
    a->dataset.seed = a->shuffle_seed;
    pack(*a);
  });
}

}  // namespace lockstep::tools
