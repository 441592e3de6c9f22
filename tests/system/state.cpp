// system_state FILE: a verified checkpoint as one JSON object, tensors by name (type, shape, hash of the bits) and
// metadata, so that scripts can compare runs bit for bit. system_state FILE NAME INDEX: instead, flips the last bit of
// that element of that tensor and writes the file again, whole. system_state FILE without KEY: takes KEY out of the
// metadata, as of a checkpoint from before it was known. system_state FILE rename NAME OTHER: of a tensor.
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>

#include "lockstep/checkpoint/file.h"

namespace {

using lockstep::checkpoint::Checkpoint;

void print(const Checkpoint& saved) {
  nlohmann::json tensors = nlohmann::json::object();
  for (const auto& [name, tensor] : saved.tensors) {
    tensors[name] = fmt::format("{} {} {:016x}", lockstep::name_of(tensor.dtype()), tensor.shape().str(),
                                XXH3_64bits(tensor.raw(), tensor.bytes()));
  }
  fmt::print("{}\n", nlohmann::json{{"tensors", tensors}, {"metadata", nlohmann::json::parse(saved.metadata)}}.dump());
}

void flip(Checkpoint& saved, const std::string& wanted, std::size_t index) {
  for (auto& [name, tensor] : saved.tensors) {
    const std::size_t at =
        index * lockstep::size_of(tensor.dtype());  // little-endian: the last bit is in the first byte
    if (name != wanted) continue;
    lockstep::check(at < tensor.bytes(), "flip", "{} has no element {}", name, index);
    tensor.raw()[at] ^= std::byte{1};
    return;
  }
  lockstep::fail("flip", "there is no {}", wanted);
}

void rename(Checkpoint& saved, const std::string& from, const std::string& to) {
  for (auto& [name, tensor] : saved.tensors) {
    if (name != from) continue;
    name = to;
    return;
  }
  lockstep::fail("rename", "there is no {}", from);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4 && argc != 5) {
    std::fputs("usage: system_state FILE [NAME INDEX | without KEY | rename NAME OTHER]\n", stderr);
    return 2;
  }
  try {
    Checkpoint saved = lockstep::checkpoint::load(argv[1]);
    if (argc == 2) {
      print(saved);
      return 0;
    }
    if (argc == 5) {
      rename(saved, argv[3], argv[4]);
    } else if (std::string_view(argv[2]) == "without") {
      auto metadata = nlohmann::json::parse(saved.metadata);
      lockstep::check(metadata.erase(argv[3]) == 1, "without", "the metadata has no {}", argv[3]);
      saved.metadata = metadata.dump();
    } else {
      flip(saved, argv[2], std::stoul(argv[3]));
    }
    lockstep::checkpoint::save(argv[1], saved);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "system_state: {}\n", error.what());
    return 1;
  }
}
