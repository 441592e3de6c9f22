// The `lockstep-data` command: lists the known data sets, fetches their files, checks and converts them, and computes
// samples of equations.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "data/datasets/catalogue.h"
#include "data/tool/convert.h"
#include "data/tool/download.h"
#include "data/tool/generate.h"
#include "data/tool/report.h"
#include "data/tool/sources.h"
#include "data/tool/unpack.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/train/options/program_pages.h"
#include "lockstep/train/report/result_line.h"

namespace {

using namespace lockstep;
using datasets::RemoteFile;
using datasets::Source;
using Json = nlohmann::ordered_json;

struct Arguments {
  data::DatasetOptions dataset;
  std::string dir, mirror, format, output;
  bool keep_archive = false, json = false;
};

std::int64_t bytes_of(const Source& source) {
  std::int64_t bytes = 0;
  for (const RemoteFile& file : source.files) bytes += file.bytes;
  return bytes;
}

void list() {
  for (const data::DatasetEntry& entry : datasets::image_catalogue())
    fmt::print("{:12} {}\n", entry.name, entry.description);
  fmt::print("\nTo be fetched:\n");
  for (const Source& source : datasets::sources()) {
    const std::int64_t bytes = bytes_of(source);
    fmt::print("{:16} --dataset {}, {}{}; {}\n", source.name, source.dataset, source.url,
               bytes > 0 ? fmt::format(" ({:.0f} MB)", static_cast<double>(bytes) / 1e6) : "", source.license);
  }
}

void list_as_json() {
  Json sets = Json::array(), fetched = Json::array();
  for (const data::DatasetEntry& entry : datasets::image_catalogue())
    sets.push_back({{"name", entry.name}, {"description", entry.description}});
  for (const Source& source : datasets::sources())
    fetched.push_back({{"name", source.name},
                       {"data_set", source.dataset},
                       {"url", source.url},
                       {"bytes", bytes_of(source)},
                       {"license", source.license}});
  train::print_result({{"data_sets", std::move(sets)}, {"to_be_fetched", std::move(fetched)}});
}

bool is_unpacked(const RemoteFile& file, const std::filesystem::path& folder) {
  for (const std::string& member : file.members)
    if (!std::filesystem::exists(folder / member)) return false;
  return !file.members.empty();
}

// Brings one file to `folder`, unless its unpacked content is already there.
void fetch_file(const RemoteFile& file, const std::string& base, const std::filesystem::path& folder, bool json) {
  const std::filesystem::path to = folder / file.name;
  const auto say = [&](const char* state, const std::string& text) {
    train::print_answer(json, {{"file", file.name}, {"state", state}}, fmt::format("{}: {}", file.name, text));
  };
  if (is_unpacked(file, folder)) {
    say("unpacked", "is unpacked there");
  } else if (std::filesystem::exists(to)) {
    const std::string wrong = datasets::difference(to, file);
    check(wrong.empty(), "fetch", "{} exists, but is not the expected file: {}; remove it to fetch it again",
          to.string(), wrong);
    say("there", "is there");
  } else {
    say("downloading", fmt::format("from {}", base));
    std::fflush(stdout);
    datasets::download(base + (base.ends_with('/') ? "" : "/") + file.name, file, to);
  }
}

void fetch(const Arguments& arguments) {
  const Source& source = datasets::find_source(arguments.dataset.name);
  const std::filesystem::path folder = std::filesystem::path(arguments.dir) / source.folder;
  std::filesystem::create_directories(folder);
  for (const RemoteFile& file : source.files) {
    fetch_file(file, arguments.mirror.empty() ? source.url : arguments.mirror, folder, arguments.json);
    if (file.members.empty() || is_unpacked(file, folder)) continue;
    datasets::unpack(folder / file.name, file.members, folder);
    if (!arguments.keep_archive) std::filesystem::remove(folder / file.name);
  }
  datasets::print_report(datasets::catalogue(), {.name = source.dataset, .dir = arguments.dir}, arguments.json);
}

void convert(const Arguments& arguments) {
  const datasets::Format& format = datasets::find_format(arguments.format);
  const data::RunData pair = data::open_data(datasets::image_catalogue(), arguments.dataset);
  const Shape stored = pair.train->fields()[data::find_field("convert", pair.train->fields(), "image")].shape;
  check(stored == pair.image_shape(), "convert",
        "--image-size is {}, but {} has images {} that are not decoded from files; expected none",
        arguments.dataset.images.size, arguments.dataset.name, stored.str());
  check(!std::filesystem::exists(arguments.output) || std::filesystem::is_empty(arguments.output), "convert",
        "--output {} exists and is not empty, expected a new folder", arguments.output);
  std::filesystem::create_directories(arguments.output);
  format.write(pair, arguments.output);
  train::print_answer(arguments.json,
                      {{"folder", arguments.output},
                       {"format", format.name},
                       {"training", pair.train->size()},
                       {"evaluation", pair.eval->size()}},
                      fmt::format("{} and {} samples in {}: {}", pair.train->size(), pair.eval->size(),
                                  arguments.output, format.files));
}

// A check of an option: --data-dir "$DATA" with an unset DATA must not count as the present folder.
std::string not_empty(const std::string& text) {
  return text.empty() ? "is empty, expected a path; omit the option for none" : "";
}

void add_commands(CLI::App& app, Arguments& arguments) {
  const auto name = [&](CLI::App* command, const char* text) {
    command->add_option("NAME", arguments.dataset.name, text)->required();
  };
  const auto dir = [&](CLI::App* command, const char* text) {
    return command->add_option("--data-dir", arguments.dir, text)
        ->type_name("DIR")
        ->envname("LOCKSTEP_DATA_DIR")
        ->check(not_empty);
  };
  const auto image_size = [&](CLI::App* command) {
    command
        ->add_option("--image-size", arguments.dataset.images.size,
                     "crop images to N rows and columns, as for evaluation; 0: all images have one size")
        ->type_name("N")
        ->check(CLI::Range(0, 4096));
  };
  const auto json = [&](CLI::App* command, const char* text) { command->add_flag("--json", arguments.json, text); };
  CLI::App* listed = app.add_subcommand("list", "The data sets, and what can be fetched");
  json(listed, "print one object of JSON: data_sets, to_be_fetched");
  listed->callback([&] { arguments.json ? list_as_json() : list(); });

  CLI::App* fetched =
      app.add_subcommand("fetch", "Downloads a data set, verifies its checksums, unpacks and checks it");
  name(fetched, "what `lockstep-data list` shows as to be fetched");
  dir(fetched, "folder to lay the files in; give it to a training program as its --data-dir")->required();
  fetched
      ->add_option("--mirror", arguments.mirror,
                   "folder or URL (http, https, file) to take the files from, in place of their authors'")
      ->type_name("WHERE")
      ->check(not_empty);
  fetched->add_flag("--keep-archive", arguments.keep_archive, "leave the archive there after unpacking");
  json(fetched, "print a line of JSON for each file, and one of what was read");
  fetched->footer("A download that broke off goes on where it stopped. Needs the program curl for URLs.");
  fetched->callback([&] { fetch(arguments); });

  CLI::App* checked = app.add_subcommand(
      "check", "Reads a data set whole, as a training program does, and names each sample that cannot be read");
  name(checked, "a data set of `lockstep-data list`");
  dir(checked, "folder of its files");
  image_size(checked);
  json(checked, "print one object of JSON: sizes, classes, what cannot be read, pixels");
  checked->callback([&] {
    arguments.dataset.dir = arguments.dir;
    datasets::print_report(datasets::image_catalogue(), arguments.dataset, arguments.json);
  });

  datasets::add_generate(app);

  CLI::App* converted = app.add_subcommand("convert", "Writes a data set in another format");
  name(converted, "a data set of `lockstep-data list`");
  dir(converted, "folder of its files");
  image_size(converted);
  std::string texts;
  for (const datasets::Format& format : datasets::formats())
    texts += fmt::format("{}{} ({})", texts.empty() ? "" : "; ", format.name, format.files);
  converted->add_option("--to", arguments.format, texts)->type_name("FORMAT")->required();
  converted->add_option("--output", arguments.output, "new folder for the files")
      ->type_name("DIR")
      ->required()
      ->check(not_empty);
  converted->add_option("--limit-train", arguments.dataset.limit_train, "the first N training samples; 0: all")
      ->type_name("N");
  converted->add_option("--limit-eval", arguments.dataset.limit_eval, "the first N evaluation samples; 0: all")
      ->type_name("N");
  converted->add_option("--seed", arguments.dataset.seed, "of a data set that is made, not read")->type_name("N");
  json(converted, "print a line of JSON: folder, format, training, evaluation");
  converted->callback([&] {
    arguments.dataset.dir = arguments.dir;
    convert(arguments);
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Data sets for Lockstep's training programs: list, fetch, check, convert, generate", "lockstep-data");
  Arguments arguments;
  app.require_subcommand(1);
  const std::string version = "lockstep-data (Lockstep " LOCKSTEP_VERSION ")";
  app.set_version_flag("--version", version);
  train::offer_pages(app, version, [&app] { return train::describe(app); });
  add_commands(app, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockstep-data: {}\n", printable(error.what()));
    return 1;
  }
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return 0;
  fmt::print(stderr, "lockstep-data: stdout cannot be written\n");
  return 1;
}
