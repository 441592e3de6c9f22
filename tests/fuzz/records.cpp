// Packed records: an input is a set's index, a separator and its only file. One bit of the first byte says whether the
// checksums are made right again, so that what lies behind them is reached too.
#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "lockstep/core/tensor.h"
#include "lockstep/data/array_datasets.h"
#include "lockstep/data/records/record_reader.h"
#include "lockstep/data/records/record_writer.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {
namespace {

constexpr std::string_view kSeparator = "|file|";

std::vector<Bytes> packed(const data::Dataset& set, std::string_view name) {
  const auto folder = scratch_file("x").parent_path();
  std::filesystem::remove(folder / formatted("{}.index", name));
  data::pack_dataset(set, {.folder = folder, .name = std::string(name)});
  std::vector<Bytes> inputs;
  for (const std::uint8_t choice : {std::uint8_t{0}, std::uint8_t{1}}) {
    Bytes& bytes = inputs.emplace_back(1, choice);
    for (const Bytes& part : {content_of(folder / formatted("{}.index", name)), bytes_of(kSeparator),
                              content_of(folder / formatted("{}-00000.records", name))})
      bytes.insert(bytes.end(), part.begin(), part.end());
  }
  return inputs;
}

void put_hash(std::span<std::uint8_t> bytes) {
  if (bytes.size() < 8) return;
  const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size() - 8);
  std::memcpy(bytes.data() + bytes.size() - 8, &hash, sizeof hash);
}

}  // namespace

std::vector<Bytes> seeds() {
  Tensor x({5, 3}, DType::F32), label({5}, DType::I32);
  std::vector<data::NamedTensor> tensors;
  tensors.push_back({"x", std::move(x)});
  tensors.push_back({"label", std::move(label)});
  return packed(data::TensorDataset(std::move(tensors), 2), "numbers");
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const fuzz::Bytes all(data + 1, data + size);
  const auto cut = std::search(all.begin(), all.end(), fuzz::kSeparator.begin(), fuzz::kSeparator.end());
  fuzz::Bytes index(all.begin(), cut), file;
  if (cut != all.end()) file.assign(cut + std::ssize(fuzz::kSeparator), all.end());
  if ((data[0] & 1) != 0) fuzz::put_hash(index);
  const auto path = fuzz::input_file("set.index", index);
  fuzz::input_file("numbers-00000.records", file);
  fuzz::expect_answer([&] {
    const data::RecordReader reader(path);
    for (std::int64_t i = 0; i < std::min<std::int64_t>(reader.size(), 20); ++i) reader.read(i);
  });
  fuzz::expect_answer([&] { data::open_records(path, {}); });
  return 0;
}
