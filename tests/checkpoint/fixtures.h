// A directory of one test's own, and checkpoints to put there.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "lockstep/checkpoint/file.h"
#include "lockstep/core/random.h"
#include "lockstep/io/envelope.h"
#include "tests/messages.h"

namespace lockstep::checkpoint {

namespace fs = std::filesystem;

class InDirectory : public testing::Test {
 protected:
  InDirectory() {
    std::string name = (fs::temp_directory_path() / "lockstep-test-XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
  }
  ~InDirectory() override { fs::remove_all(dir_); }

  fs::path dir_;
};

inline Tensor random_tensor(const Shape& shape, DType dtype, std::uint64_t seed) {
  Tensor tensor(shape, dtype);
  RandomStream random(seed, 7);
  for (std::size_t i = 0; i < tensor.bytes(); ++i) tensor.raw()[i] = static_cast<std::byte>(random.below(256));
  return tensor;
}

// Every DType in every kind of shape; the bytes are random, so floats hold NaNs with payloads, denormals and infinities
// too.
inline Checkpoint sample_checkpoint(std::uint64_t seed = 1) {
  Checkpoint checkpoint;
  const std::vector<Shape> shapes{{}, {0}, {1}, {7}, {3, 0, 2}, {4, 3, 5, 5}, {2, 1, 3, 1, 2, 1}};
  for (const DType dtype : {DType::F32, DType::F64, DType::I32, DType::I64, DType::U8}) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const std::string name = formatted("model/layer{}.0.{}", i, name_of(dtype));
      checkpoint.tensors.push_back({name, random_tensor(shapes[i], dtype, seed + 100 * i)});
    }
  }
  checkpoint.tensors.push_back({"optimizer/momentum/fc.weight", random_tensor({10, 64}, DType::F32, seed)});
  checkpoint.metadata = formatted(R"({{"step": {}, "text": "grüße\n"}})", seed);
  return checkpoint;
}

inline void expect_same(const std::vector<io::NamedTensor>& actual, std::vector<const io::NamedTensor*> expected) {
  std::ranges::sort(expected, {}, [](const io::NamedTensor* entry) { return entry->name; });
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) {
    const Tensor &a = actual[i].tensor, &b = expected[i]->tensor;
    EXPECT_EQ(actual[i].name, expected[i]->name);
    ASSERT_EQ(a.dtype(), b.dtype()) << actual[i].name;
    ASSERT_EQ(a.shape(), b.shape()) << actual[i].name;
    if (a.bytes() == 0) continue;
    EXPECT_EQ(std::memcmp(a.raw(), b.raw(), a.bytes()), 0) << actual[i].name;
  }
}

inline void expect_same(const std::vector<io::NamedTensor>& actual, const std::vector<io::NamedTensor>& expected) {
  std::vector<const io::NamedTensor*> pointers;
  for (const io::NamedTensor& entry : expected) pointers.push_back(&entry);
  expect_same(actual, std::move(pointers));
}

inline void expect_same(const Checkpoint& actual, const Checkpoint& expected) {
  EXPECT_EQ(actual.metadata, expected.metadata);
  expect_same(actual.tensors, expected.tensors);
}

inline std::vector<std::byte> bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

// The bytes of the file that save() makes.
template <class Contents>  // Checkpoint or Draft
std::vector<std::byte> serialize(const Contents& contents) {
  const fs::path path = fs::temp_directory_path() / formatted("lockstep-test-{}.h5", ::getpid());
  save(path, contents);
  std::vector<std::byte> bytes = bytes_of(path);
  fs::remove(path);
  return bytes;
}

// From the bytes of a file of this name, whose folder messages leave out.
inline Checkpoint parse(std::span<const std::byte> bytes, const std::string& name) {
  const fs::path directory = fs::temp_directory_path() / formatted("lockstep-test-{}", ::getpid());
  fs::create_directory(directory);
  struct Remove {
    const fs::path& path;
    ~Remove() { fs::remove_all(path); }
  } const remove{directory};
  std::ofstream out(directory / name, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  try {
    return load(directory / name);
  } catch (const Error& error) {
    std::string message = error.what();
    const std::string folder = directory.string() + "/";
    if (const std::size_t at = message.find(folder); at != message.npos) message.erase(at, folder.size());
    throw Error(message);
  }
}

// Gives a file whose bytes were changed, and that has no note, the header that fits them.
inline void seal(std::span<std::byte> file) {
  io::PayloadHash hash;
  hash.update(file.subspan(io::kEnvelopeBytes));
  const std::string header =
      io::make_header({.payload = static_cast<std::int64_t>(file.size() - io::kEnvelopeBytes), .hash = hash.digest()});
  std::memcpy(file.data(), header.data(), header.size());
}

inline void put(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(out.flush());
}

inline std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

}  // namespace lockstep::checkpoint
