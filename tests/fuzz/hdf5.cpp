// HDF5 files of users, read by a reader process: whatever they are, this process lives. The seed is a file with two
// datasets, one in a group.
#include "data/datasets/hdf5_fields.h"

#include <algorithm>

#include "lockstep/io/image_write.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  std::vector<io::NamedTensor> tensors;
  tensors.push_back({"x", Tensor({6, 2, 5}, DType::F32)});
  tensors.push_back({"g/y", Tensor({6}, DType::F64)});
  Bytes image;
  io::ImageStream(io::source_of(tensors), {}, "seed").write([&](std::span<const std::byte> bytes) {
    const auto* begin = reinterpret_cast<const std::uint8_t*>(bytes.data());
    image.insert(image.end(), begin, begin + bytes.size());
  });
  return {image};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  constexpr std::size_t kMostBytes = 1 << 16;  // of a sample that is read: a damaged file may claim any size
  const auto file = fuzz::input_file("a.h5", {data, size});
  fuzz::expect_answer([&] {
    const datasets::Hdf5Dataset set(
        {.files = {file.string()}, .inputs = {"x"}, .targets = {"g/y"}, .cache = std::size_t{1} << 20});
    std::vector<std::vector<std::byte>> sample;
    std::vector<std::byte*> out;
    for (const data::Field& field : set.fields()) {
      if (field.bytes() > kMostBytes) return;
      out.push_back(sample.emplace_back(field.bytes()).data());
    }
    for (std::int64_t i = 0; i < std::min<std::int64_t>(set.size(), 8); ++i) set.read(i, out);
  });
  return 0;
}
