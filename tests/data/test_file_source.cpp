#include "lockstep/data/file_source.h"
#include "tests/data/support.h"

namespace lockstep::data {
namespace {

TEST(FileSource, LargeFilesSurviveThePieces) {
  const TempDir dir;
  Bytes bytes(3'000'001);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>((i * i) >> 7);
  FileSource source(dir.write("x.gz", gzip(bytes)));
  EXPECT_EQ(source.read(1, "a byte"), Bytes{bytes[0]});
  EXPECT_EQ(source.read(3'000'000, "the rest"), Bytes(bytes.begin() + 1, bytes.end()));
  source.expect_end("the rest");
  const std::string text = read_text(dir / "x.gz");
  EXPECT_EQ(Bytes(text.begin(), text.end()), bytes);
}

TEST(FileSource, MissingFilesAndFoldersAreNamed) {
  const TempDir dir;
  expect_error([&] { FileSource(dir / "absent"); }, {"absent", "no such file"});
  expect_error([&] { FileSource(dir.path()); }, {"not a regular file"});
}

}  // namespace
}  // namespace lockstep::data
