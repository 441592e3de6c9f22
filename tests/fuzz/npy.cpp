// NumPy's files: the first byte chooses the form, an array (0) or an archive of arrays (1).
#include <string>

#include "data/datasets/npy.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

std::string array() {
  using namespace std::string_literals;
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 2, 3), }";
  header.resize(117, ' ');
  return "\x93NUMPY\x01\x00\x76\x00"s + header + "\n" + std::string(24, 'x');
}

std::string little(std::size_t value, int width) {
  std::string text;
  for (int i = 0; i < width; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

// A zip archive that stores images.npy as it is; its checksum is wrong, which the reader says at the end.
std::string archive() {
  const std::string content = array(), name = "images.npy";
  const std::string common = little(20, 2) + little(0, 2) + little(0, 2) + little(0, 4) + little(0, 4) +
                             little(content.size(), 4) + little(content.size(), 4) + little(name.size(), 2) +
                             little(0, 2);
  const std::string local = "PK\x03\x04" + common + name + content;
  const std::string entry = "PK\x01\x02" + little(20, 2) + common + little(0, 2) + little(0, 2) + little(0, 2) +
                            little(0, 4) + little(0, 4) + name;
  return local + entry + "PK\x05\x06" + little(0, 4) + little(1, 2) + little(1, 2) + little(entry.size(), 4) +
         little(local.size(), 4) + little(0, 2);
}

}  // namespace

std::vector<Bytes> seeds() {
  using namespace std::string_literals;
  return {bytes_of("\0"s + array()), bytes_of("\1"s + archive())};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  if (size == 0) return 0;
  const std::span<const std::uint8_t> content(data + 1, size - 1);
  if (data[0] % 2 == 1) {
    const auto file = input_file("a.npz", content);
    expect_answer([&] { lockstep::datasets::read_npz(file, "images"); });
  } else {
    const auto path = input_file("a.npy", content);
    expect_answer([&] {
      lockstep::data::FileSource file(path);
      lockstep::datasets::read_npy(file);
    });
  }
  return 0;
}
