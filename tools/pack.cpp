#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/catalogue.h"
#include "data/datasets/click_entries.h"
#include "data/datasets/click_record.h"
#include "data/datasets/click_records.h"
#include "data/datasets/image_folder.h"
#include "lockstep/core/error.h"
#include "lockstep/data/records/record_reader.h"
#include "lockstep/data/records/record_writer.h"
#include "lockstep/train/options/option_checks.h"
#include "lockstep/train/report/result_line.h"
#include "tools/commands.h"
#include "tools/usage.h"

namespace lockstep::tools {
namespace {

constexpr std::string_view kFolderName = "folder";

struct PackArguments {
  data::DatasetOptions dataset{.name = std::string(kFolderName)};
  datasets::ClickSetOptions clicks{.keeps_ids = true};
  std::string dir, output, split, verify;
  std::int64_t file_mib = 1024;
  std::uint64_t shuffle_seed = 0;
  bool shuffle = false, json = false;
};

std::vector<data::Split> splits_of(const std::string& name) {
  if (name == "train") return {data::Split::Train};
  if (name == "eval") return {data::Split::Eval};
  return {data::Split::Train, data::Split::Eval};
}

std::vector<data::DatasetEntry> click_sets(const PackArguments& arguments) {
  return datasets::click_entries(arguments.clicks);
}

bool are_clicks(const PackArguments& arguments) {
  const std::vector<data::DatasetEntry> entries = click_sets(arguments);
  return std::ranges::find(entries, arguments.dataset.name, &data::DatasetEntry::name) != entries.end();
}

data::PackOptions pack_options(const PackArguments& arguments, data::Split split) {
  data::PackOptions options{.folder = arguments.output,
                            .name = split == data::Split::Train ? "train" : "eval",
                            .file_bytes = static_cast<std::uint64_t>(arguments.file_mib) << 20};
  // The order of evaluation has no effect on training.
  if (arguments.shuffle && split == data::Split::Train) options.shuffle_seed = arguments.shuffle_seed;
  return options;
}

std::int64_t pack_split(const PackArguments& arguments, data::Split split) {
  const data::PackOptions options = pack_options(arguments, split);
  if (arguments.dataset.name != kFolderName) {
    const data::DatasetEntry& entry = data::find_dataset(datasets::catalogue(), arguments.dataset.name);
    return data::pack_dataset(*entry.open(arguments.dataset, split), options);
  }
  const std::filesystem::path folder = datasets::split_folder(arguments.dataset.dir, split);
  check(!folder.empty(), "pack", "{}: no folder train, expected train/CLASS/FILE and val/CLASS/FILE",
        arguments.dataset.dir.string());
  return data::pack_images(datasets::ImageFolder(datasets::list_image_folder(folder)), options);
}

void say_packed(const PackArguments& arguments, data::Split split, std::int64_t records) {
  const std::string index =
      fmt::format("{}/{}.index", arguments.output, split == data::Split::Train ? "train" : "eval");
  train::print_answer(arguments.json, {{"index", index}, {"records", records}},
                      fmt::format("{}: {} records", index, records));
}

// Packs clicks: a field for each column, by its name.
void pack_clicks(const PackArguments& arguments) {
  const std::vector<data::DatasetEntry> entries = click_sets(arguments);
  data::RunData opened = data::open_data(entries, arguments.dataset);
  const datasets::ClickRecord names = datasets::ClickRecord::parse(opened.prediction.record);
  for (const data::Split split : splits_of(arguments.split)) {
    std::shared_ptr<const data::Dataset> set =
        split == data::Split::Train ? std::move(opened.train) : std::move(opened.eval);
    if (set == nullptr) continue;  // there are no evaluation samples
    say_packed(arguments, split,
               data::pack_dataset(*datasets::named_clicks(std::move(set), names), pack_options(arguments, split)));
  }
}

// Reads every record, and compares its checksum.
void verify_set(const std::string& path, bool json) {
  const data::RecordReader reader(path);
  std::uint64_t bytes = 0;
  for (std::int64_t i = 0; i < reader.size(); ++i) bytes += reader.read(i).size();
  const std::string& layout = reader.layout().description;
  train::print_answer(
      json, {{"index", path}, {"records", reader.size()}, {"bytes", bytes}, {"verified", true}, {"layout", layout}},
      fmt::format("{}: {} records, {} bytes, all checksums right: {}", path, reader.size(), bytes, layout));
}

void pack(PackArguments& arguments) {
  if (!arguments.verify.empty()) {
    check_usage([&] {
      check(arguments.output.empty(), "pack", "--verify reads a set and --output writes one, expected one of the two");
    });
    return verify_set(arguments.verify, arguments.json);
  }
  check_usage(
      [&] { check(!arguments.output.empty(), "pack", "--output is missing, expected a folder for the records"); });
  arguments.dataset.dir = arguments.dir;
  if (arguments.dataset.name == kFolderName) {
    check_usage(
        [&] { check(!arguments.dir.empty(), "pack", "--data-dir is missing, expected the folder of the images"); });
  } else if (!are_clicks(arguments)) {
    data::check_dataset(datasets::catalogue(), arguments.dataset);
  }
  std::filesystem::create_directories(arguments.output);
  if (are_clicks(arguments)) return pack_clicks(arguments);
  for (const data::Split split : splits_of(arguments.split)) say_packed(arguments, split, pack_split(arguments, split));
}

// The options of train_recsys that name samples.
void add_click_options(CLI::App& command, PackArguments& a) {
  data::FieldOptions& fields = a.dataset.fields;
  const auto add = [&](const char* name, auto& value, const char* text, const char* argument = "") {
    CLI::Option* option = command.add_option(fmt::format("--{}", name), value, text);
    option->group("Clicks")->capture_default_str();
    if (*argument != '\0') option->type_name(argument);
  };
  add("files", fields.files, "files of the samples, with commas between them; * and ? stand for characters");
  add("eval-files", fields.eval_files, "files of the evaluation samples; none: a part of those in --files");
  add("eval-fraction", fields.eval_fraction, "part of the samples that is for evaluation, without --eval-files");
  add("inputs", fields.inputs, "csv, hdf5, arrays: columns or arrays of dense numbers");
  add("label", fields.label, "csv, hdf5, arrays: the column or array that is predicted");
  datasets::for_click_options(a.clicks, add);
}

}  // namespace

void add_pack_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "pack", "Pack a data set into a few large files of records with checksums, or verify such files");
  auto a = std::make_shared<PackArguments>();
  command
      ->add_option("--dataset", a->dataset.name,
                   "folder: image files in train/CLASS and val/CLASS; a name of `lockstep-data list`; or a data set of "
                   "train_recsys: clicks, criteo, ratings, csv, hdf5, arrays")
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
  command->add_flag("--json", a->json, "A line of JSON for each index: index, records");
  add_click_options(*command, *a);
  command->callback([a] {
    a->dataset.seed = a->shuffle_seed;
    pack(*a);
  });
}

}  // namespace lockstep::tools
