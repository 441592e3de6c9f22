// Weights as HDF5 that others wrote. The corpus has files of h5py: of both formats of the library, chunked, packed,
// big-endian, with attributes and groups.
#include "lockstep/checkpoint/weights.h"

#include "lockstep/io/image_write.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  std::vector<io::NamedTensor> tensors;
  tensors.push_back({"fc.weight", Tensor({2, 5}, DType::F32)});
  tensors.push_back({"group/fc.bias", Tensor({5}, DType::F64)});
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
  const auto file = fuzz::input_file("weights.h5", {data, size});
  fuzz::expect_answer([&] { checkpoint::load_weights(file); });
  return 0;
}
