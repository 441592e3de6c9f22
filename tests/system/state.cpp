// system_state FILE: a verified checkpoint as one JSON object, tensors by name (type, shape, hash of the bits) and
// metadata, so that scripts can compare runs bit for bit. system_state FILE NAME INDEX: instead, flips the last bit of
// that element of that tensor and writes the file again, whole.
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdio>
#include <nlohmann/json.hpp>

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 4) {
    std::fputs("usage: system_state FILE [NAME INDEX]\n", stderr);
    return 2;
  }
  try {
    Checkpoint saved = lockstep::checkpoint::load(argv[1]);
    if (argc == 2) {
      print(saved);
      return 0;
    }
    flip(saved, argv[2], std::stoul(argv[3]));
    lockstep::checkpoint::save(argv[1], saved);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "system_state: {}\n", error.what());
    return 1;
  }
}
