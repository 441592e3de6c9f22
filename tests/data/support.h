// The part that the tests of data sets share: files in a folder of the test's own, and errors that must name things.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/data/dataset.h"

namespace lockstep::data {

using Bytes = std::vector<std::uint8_t>;

// A folder that vanishes with the test.
class TempDir {
 public:
  TempDir() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = std::filesystem::temp_directory_path() /
            formatted("lockstep-{}-{}-{}", test->test_suite_name(), test->name(), getpid());
    std::filesystem::create_directories(path_);
  }
  ~TempDir() { std::filesystem::remove_all(path_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const Bytes& bytes) const {
    std::ofstream file(path_ / name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

inline Bytes gzip(const Bytes& bytes) {
  z_stream z{};
  EXPECT_EQ(deflateInit2(&z, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  Bytes out(deflateBound(&z, bytes.size()));
  z.next_in = const_cast<Bytef*>(bytes.data());
  z.avail_in = static_cast<uInt>(bytes.size());
  z.next_out = out.data();
  z.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
  out.resize(z.total_out);
  deflateEnd(&z);
  return out;
}

// `action` throws an Error whose message has all of `parts`.
template <class Action>
void expect_error(Action&& action, const std::vector<std::string>& parts) {
  try {
    action();
  } catch (const Error& error) {
    const std::string message = error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
    }
    return;
  }
  ADD_FAILURE() << "no error, expected one with '" << (parts.empty() ? "" : parts.front()) << "'";
}

// Every field's bytes of a sample.
inline std::vector<Bytes> sample_of(const Dataset& dataset, std::int64_t index) {
  std::vector<Bytes> fields;
  for (const Field& field : dataset.fields()) fields.emplace_back(field.bytes());
  std::vector<std::byte*> pointers;
  for (Bytes& field : fields) pointers.push_back(reinterpret_cast<std::byte*>(field.data()));
  dataset.read(index, pointers);
  return fields;
}

template <class T>
T value_of(const Bytes& bytes) {
  T value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

// The folder of real data sets, if this machine has one.
inline std::optional<std::filesystem::path> real_data() {
  const char* dir = std::getenv("LOCKSTEP_TEST_DATA");
  return dir && *dir ? std::optional<std::filesystem::path>(dir) : std::nullopt;
}

}  // namespace lockstep::data
