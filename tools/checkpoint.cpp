#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/envelope.h"
#include "lockstep/io/image.h"
#include "lockstep/io/read_file.h"
#include "lockstep/train/report/json_text.h"
#include "tools/commands.h"

namespace lockstep::tools {
namespace {

// As it was written, if it is no JSON.
std::string indented(const std::string& metadata) {
  const auto json = train::parse_json(metadata);
  return json.is_discarded() ? metadata : json.dump(2);
}

void print_tensors(const std::vector<checkpoint::NamedTensor>& tensors) {
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : tensors) {
    fmt::print("{:<56} {:<4} {:<20} {:>10}\n", printable(name), name_of(tensor.dtype()), tensor.shape().str(),
               tensor.elements());
    elements += tensor.elements();
  }
  fmt::print("{} tensors, {} elements\n", tensors.size(), elements);
}

void show_file(const std::filesystem::path& path) {
  checkpoint::FileReader reader(path);
  std::vector<std::byte> bytes = checkpoint::allocate_for(reader.size(), reader.path());
  reader.read(bytes);
  if (!checkpoint::begins_like_checkpoint(bytes)) {
    print_tensors(checkpoint::load_weights(path));
    fmt::print("not written by Lockstep: no hash to verify\n");
    return;
  }
  checkpoint::verify_bytes(bytes, reader.path());
  const checkpoint::Envelope envelope = checkpoint::open_envelope(bytes, bytes.size(), reader.path());
  const checkpoint::Image image = checkpoint::read_image(bytes, reader.path());
  print_tensors(image.tensors);
  if (image.metadata) fmt::print("metadata {}\n", printable_lines(indented(*image.metadata)));
  fmt::print("{} bytes, XXH3-128 {}: verified\n", bytes.size(), envelope.hash);
}

}  // namespace

void add_checkpoint_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("checkpoint", "Verify a checkpoint or weights file and list what is in it");
  auto path = std::make_shared<std::string>();
  command->add_option("file", *path, "A checkpoint, or weights as HDF5")->required();
  command->callback([path] { show_file(*path); });
}

}  // namespace lockstep::tools
