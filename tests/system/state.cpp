// system_state FILE: a verified checkpoint as one JSON object, tensors by name (type, shape, hash of the bits) and
// metadata, so that scripts can compare runs bit for bit.
#include <fmt/format.h>
#include <xxhash.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "lockstep/checkpoint/file.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: system_state FILE\n", stderr);
    return 2;
  }
  try {
    const lockstep::checkpoint::Checkpoint saved = lockstep::checkpoint::load(argv[1]);
    nlohmann::json tensors = nlohmann::json::object();
    for (const auto& [name, tensor] : saved.tensors) {
      tensors[name] = fmt::format("{} {} {:016x}", lockstep::name_of(tensor.dtype()), tensor.shape().str(),
                                  XXH3_64bits(tensor.raw(), tensor.bytes()));
    }
    fmt::print("{}\n",
               nlohmann::json{{"tensors", tensors}, {"metadata", nlohmann::json::parse(saved.metadata)}}.dump());
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "system_state: {}\n", error.what());
    return 1;
  }
}
