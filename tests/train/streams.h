// A FILE* whose text a test can read, and a folder of the test's own.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace lockstep::train {

class TextStream {
 public:
  TextStream() : file_(std::tmpfile()) {}
  ~TextStream() { std::fclose(file_); }
  TextStream(const TextStream&) = delete;
  TextStream& operator=(const TextStream&) = delete;
  std::FILE* file() { return file_; }
  std::string text() {  // also of what was written to its descriptor
    std::fflush(file_);
    struct stat status {};
    EXPECT_EQ(fstat(fileno(file_), &status), 0);
    std::string result(static_cast<std::size_t>(status.st_size), '\0');
    EXPECT_EQ(pread(fileno(file_), result.data(), result.size(), 0), status.st_size);
    return result;
  }

 private:
  std::FILE* file_;
};

class FolderTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  static std::string read(const std::filesystem::path& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  }
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "lockstep_train" /
                                  testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() /
                                  testing::UnitTest::GetInstance()->current_test_info()->name();
};

}  // namespace lockstep::train
