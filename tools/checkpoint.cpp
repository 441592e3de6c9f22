#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/file.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/verified_file.h"
#include "lockstep/train/report/json_text.h"
#include "tools/commands.h"

namespace lockstep::tools {
namespace {

// As it was written, if it is no JSON.
std::string indented(const std::string& metadata) {
  const auto json = train::parse_json(metadata);
  return json.is_discarded() ? metadata : json.dump(2);
}

void print_tensors(const std::vector<io::TensorInfo>& tensors) {
  std::int64_t elements = 0;
  for (const auto& [name, shape, dtype] : tensors) {
    fmt::print("{:<56} {:<4} {:<20} {:>10}\n", printable(name), name_of(dtype), shape.str(), shape.elements());
    elements += shape.elements();
  }
  fmt::print("{} tensors, {} elements\n", tensors.size(), elements);
}

// Prints the name of the base of an increment, and verifies the base too.
void show_base(const std::filesystem::path& path, const io::VerifiedFile& file, const checkpoint::Base& base) {
  std::int64_t rows = 0, tensors = 0;
  for (const io::TensorInfo& info : file.image().tensors()) {
    if (!info.name.starts_with(checkpoint::kRowsPrefix)) continue;
    rows += info.shape.elements();
    ++tensors;
  }
  fmt::print("increment {} of {}: {} changed rows in {} tensors\n", base.number, checkpoint::name_for(base.step), rows,
             tensors);
  checkpoint::open_checkpoint(path);
  fmt::print("{}: is there, and fits: verified\n", checkpoint::name_for(base.step));
}

nlohmann::ordered_json json_of(const std::vector<io::TensorInfo>& tensors) {
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& [name, shape, dtype] : tensors)
    json.push_back({{"name", name}, {"type", name_of(dtype)}, {"shape", shape.dims()}});
  return json;
}

// The same as show_file() tells, for a program; what is damaged throws before anything is printed.
void show_as_json(const std::filesystem::path& path) {
  nlohmann::ordered_json json = {{"file", path.string()}};
  io::FileReader reader(path);
  if (!io::begins_like_checkpoint(reader.peek(0, io::kEnvelopeBytes))) {
    json["verified"] = false;
    json["tensors"] = json_of(io::source_of(checkpoint::load_weights(path)).infos);
  } else {
    const io::VerifiedFile file(reader, io::read_envelope(reader));
    file.verify_tensors();
    json["verified"] = true;
    json["bytes"] = file.bytes();
    json["hash"] = fmt::format("{}", file.envelope().hash);
    if (const auto base = checkpoint::base_of(file.envelope().note)) {
      checkpoint::open_checkpoint(path);
      json["base"] = checkpoint::name_for(base->step);
      json["increment"] = base->number;
    }
    json["tensors"] = json_of(file.image().tensors());
    if (file.image().metadata()) {
      const auto metadata = train::parse_json(*file.image().metadata());
      json["metadata"] =
          metadata.is_discarded() ? nlohmann::ordered_json(*file.image().metadata()) : nlohmann::ordered_json(metadata);
    }
  }
  fmt::print("{}\n", json.dump(1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
}

void show_file(const std::filesystem::path& path) {
  io::FileReader reader(path);
  if (!io::begins_like_checkpoint(reader.peek(0, io::kEnvelopeBytes))) {
    print_tensors(io::source_of(checkpoint::load_weights(path)).infos);
    fmt::print("not written by Lockstep: no hash to verify\n");
    return;
  }
  const io::VerifiedFile file(reader, io::read_envelope(reader));
  file.verify_tensors();
  print_tensors(file.image().tensors());
  if (file.image().metadata()) fmt::print("metadata {}\n", printable_lines(indented(*file.image().metadata())));
  fmt::print("{} bytes, XXH3-128 {}: verified\n", file.bytes(), file.envelope().hash);
  if (const auto base = checkpoint::base_of(file.envelope().note)) show_base(path, file, *base);
}

}  // namespace

void add_checkpoint_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("checkpoint", "Verify a checkpoint or weights file and list what is in it");
  auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "A checkpoint, weights as HDF5, or a run, of which the newest checkpoint is shown")
      ->required();
  auto as_json = std::make_shared<bool>(false);
  command->add_flag("--json", *as_json, "One JSON object: whether it is verified, hash, tensors, metadata");
  command->callback([path, as_json] {
    // Of a run, its newest checkpoint.
    if (std::filesystem::is_directory(*path)) *path = checkpoint::find_weights(*path, checkpoint::Pick::Newest).file;
    *as_json ? show_as_json(*path) : show_file(*path);
  });
}

}  // namespace lockstep::tools
