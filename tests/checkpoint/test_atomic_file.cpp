// io::AtomicFile puts a file in the place of a file, and of nothing else.
#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/io/atomic_file.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class AtomicFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("atomic-file-" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  void replace(const std::string& name) const {
    const std::string text = "new";
    io::replace_file(folder_ / name, text, "test");
  }
  std::string error_of(const std::string& name) const try {
    replace(name);
    return "no error";
  } catch (const Error& error) {
    return error.what();
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
};

TEST_F(AtomicFileTest, ReplacesAFile) {
  std::ofstream(folder_ / "file") << "old";
  replace("file");
  EXPECT_EQ(text_of("file"), "new");
  replace("free");
  EXPECT_EQ(text_of("free"), "new");
}

TEST_F(AtomicFileTest, RefusesWhatIsNoFile) {
  std::ofstream(folder_ / "file") << "old";
  fs::create_symlink(folder_ / "file", folder_ / "link");
  fs::create_symlink(folder_ / "nowhere", folder_ / "dangling");
  fs::create_directory(folder_ / "folder");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);

  for (const char* link : {"link", "dangling"}) {
    EXPECT_NE(error_of(link).find(std::string(link) + " is a symbolic link, expected a regular file"),
              std::string::npos)
        << error_of(link);
    EXPECT_TRUE(fs::is_symlink(folder_ / link));
  }
  EXPECT_NE(error_of("folder").find("is a folder"), std::string::npos) << error_of("folder");
  EXPECT_NE(error_of("pipe").find("is a device, pipe or socket"), std::string::npos) << error_of("pipe");
  EXPECT_EQ(fs::status(folder_ / "pipe").type(), fs::file_type::fifo);
  EXPECT_EQ(text_of("file"), "old");
  for (const auto& entry : fs::directory_iterator(folder_))
    EXPECT_FALSE(entry.path().filename().string().starts_with(".lockstep-")) << entry.path();
}

}  // namespace
}  // namespace lockstep
