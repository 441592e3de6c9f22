#include "lockstep/io/tensor_spool.h"

#include <numeric>

#include "tests/checkpoint/fixtures.h"

namespace lockstep::io {
namespace {

TEST(TensorSpool, GivesBackWhatWasAppendedInPieces) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / formatted("lockstep-spool-{}", ::getpid());
  std::filesystem::create_directories(path);
  {
    TensorSpool spool{Folder(path)};
    std::vector<double> values(1000);
    std::iota(values.begin(), values.end(), 0);
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    spool.begin({"first", Shape{10, 100}, DType::F64});
    for (std::size_t at = 0; at < bytes.size(); at += 777)
      spool.append(bytes.subspan(at, std::min<std::size_t>(777, bytes.size() - at)));
    spool.begin({"none", Shape{0, 3}, DType::F32});
    spool.begin({"last", Shape{}, DType::F64});
    EXPECT_THROW(spool.tensors(), Error) << "a tensor without its bytes";
    spool.append(bytes.last(8));
    EXPECT_TRUE(std::filesystem::is_empty(path)) << "the file has no name";
    const TensorSource source = spool.tensors();
    ASSERT_EQ(source.count(), 3U);
    EXPECT_EQ(source.tensor(2).tensor.data<double>()[0], 999);
    const NamedTensor& first = source.tensor(0);
    EXPECT_EQ(first.name, "first");
    EXPECT_TRUE(std::ranges::equal(first.tensor.data<double>(), values));
    EXPECT_EQ(source.tensor(1).tensor.shape(), (Shape{0, 3}));
  }
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace lockstep::io
