#include "tests/fuzz/harness.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "lockstep/core/error.h"
#include "lockstep/core/log.h"

namespace lockstep::fuzz {
namespace {

namespace fs = std::filesystem;

struct Scratch {
  Scratch() {
    // Memory rather than a disk, where there is such a folder.
    const fs::path parent = fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path();
    std::string name = (parent / "lockstep-fuzz-XXXXXX").string();
    check(mkdtemp(name.data()) != nullptr, "fuzz", "no folder in {}", parent.string());
    path = name;
  }
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path, error);
  }
  fs::path path;
};

}  // namespace

fs::path scratch_file(std::string_view name) {
  static const Scratch scratch;
  return scratch.path / name;
}

fs::path input_file(std::string_view name, std::span<const std::uint8_t> content) {
  fs::path path = scratch_file(name);
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(content.data()), static_cast<std::streamsize>(content.size()));
  out.close();
  check(out.good(), "fuzz", "{} cannot be written", path.string());
  return path;
}

Bytes content_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  check(in.is_open(), "fuzz", "{} cannot be read", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_answer(const std::function<void()>& read) {
  static const bool quiet = [] {
    install_log(nullptr);  // what readers say about damage would be said ten thousand times
    return true;
  }();
  static_cast<void>(quiet);
  try {
    read();
  } catch (const Error&) {
  }
}

}  // namespace lockstep::fuzz
