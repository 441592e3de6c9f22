// MNIST's IDX files: the first byte chooses what is fuzzed, images (0), labels (1), or their gzip forms (2, 3).
#include <zlib.h>

#include "data/datasets/mnist.h"
#include "lockstep/core/error.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

constexpr std::uint8_t kCount = 5, kSide = 4;

Bytes images() {
  Bytes bytes{0, 0, 8, 3, 0, 0, 0, kCount, 0, 0, 0, kSide, 0, 0, 0, kSide};
  bytes.resize(bytes.size() + kCount * kSide * kSide, 77);
  return bytes;
}

Bytes labels() { return {0, 0, 8, 1, 0, 0, 0, kCount, 0, 1, 2, 3, 9}; }

Bytes zipped(const Bytes& plain) {
  constexpr int kGzip = 16;
  z_stream stream{};
  check(deflateInit2(&stream, 9, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "fuzz", "zlib");
  Bytes packed(deflateBound(&stream, plain.size()));
  stream.next_in = const_cast<std::uint8_t*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = packed.data();
  stream.avail_out = static_cast<uInt>(packed.size());
  check(deflate(&stream, Z_FINISH) == Z_STREAM_END, "fuzz", "zlib");
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

Bytes chosen(std::uint8_t choice, Bytes bytes) {
  bytes.insert(bytes.begin(), choice);
  return bytes;
}

}  // namespace

std::vector<Bytes> seeds() {
  return {chosen(0, images()), chosen(1, labels()), chosen(2, zipped(images())), chosen(3, zipped(labels()))};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep::fuzz;
  if (size == 0) return 0;
  const bool is_label = data[0] % 2 == 1;
  const std::string ending = data[0] % 4 >= 2 ? ".gz" : "";
  const std::span<const std::uint8_t> content(data + 1, size - 1);
  lockstep::datasets::IdxFiles files;
  files.images = is_label ? input_file("good-images", images()) : input_file("images" + ending, content);
  files.labels = is_label ? input_file("labels" + ending, content) : input_file("good-labels", labels());
  expect_answer([&] { lockstep::datasets::read_idx(files); });
  return 0;
}
