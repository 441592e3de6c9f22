// A checkpoint's copy of sparse tables in memory and in a file, and the checkpoint to which increments refer.
#include "lockstep/train/run/table_copy.h"

#include <algorithm>
#include <utility>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/io/verified_file.h"
#include "lockstep/train/run/increment_base.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::train {
namespace {

class TableCopies : public checkpoint::InDirectory {
 protected:
  io::Folder folder_{dir_};
};

TEST_F(TableCopies, HaveTheTensorsInMemoryAndInAFile) {
  const std::vector<Shape> shapes{{4, 3}, {0, 3}, {5}};
  for (const io::Folder* folder : {static_cast<const io::Folder*>(nullptr), &std::as_const(folder_)}) {
    TableCopy copy;
    for (int turn = 0; turn < 2; ++turn) {
      copy.begin(folder);
      for (std::size_t i = 0; i < shapes.size(); ++i)
        copy.take({formatted("t{}", i), checkpoint::random_tensor(shapes[i], DType::F32, 9 * i + 1)});
      copy.end();
      EXPECT_EQ(copy.error(), "");
      const io::TensorSource source = copy.tensors();
      ASSERT_EQ(source.count(), shapes.size());
      for (std::size_t i = 0; i < shapes.size(); ++i) {
        const Tensor expected = checkpoint::random_tensor(shapes[i], DType::F32, 9 * i + 1);
        EXPECT_EQ(source.infos[i].name, formatted("t{}", i));
        const Tensor& actual = source.tensor(i).tensor;
        EXPECT_TRUE(
            std::equal(expected.raw(), expected.raw() + expected.bytes(), actual.raw(), actual.raw() + actual.bytes()));
      }
    }
    EXPECT_TRUE(folder_.names().empty()) << "the file has no name";
  }
}

TEST_F(TableCopies, NoteWhyTheFileCouldNotBeWritten) {
  std::filesystem::remove_all(dir_);
  TableCopy copy;
  copy.begin(&folder_);
  copy.take({"t", checkpoint::random_tensor({4}, DType::F32, 1)});
  copy.end();
  EXPECT_TRUE(has(copy.error(), "create a file for sparse tables: No such file or directory")) << copy.error();
  copy.begin(nullptr);
  EXPECT_EQ(copy.error(), "");
}

TEST_F(TableCopies, OfChangedRowsReferToAFileThatIsThereAsItWasWritten) {
  const auto save = [&](std::int64_t step) {
    checkpoint::save(checkpoint::path_for(dir_, step), checkpoint::sample_checkpoint(static_cast<std::uint64_t>(step)));
    io::FileReader reader(checkpoint::path_for(dir_, step));
    return checkpoint::Written{.step = step, .hash = io::read_envelope(reader).hash};
  };
  IncrementBase base;
  EXPECT_FALSE(base.find({}, folder_, 4, 2)) << "a new run";
  base.begin_full(4, "");
  const checkpoint::Written first = save(4);
  EXPECT_FALSE(IncrementBase(base).find(first, folder_, 4, 2)) << "it would take its base's place";
  ASSERT_TRUE(base.find(first, folder_, 6, 2));
  EXPECT_EQ(base.begin_increment().number, 1);
  ASSERT_TRUE(base.find(save(6), folder_, 8, 2));
  EXPECT_EQ(base.begin_increment().hash, first.hash);
  EXPECT_FALSE(base.find(save(8), folder_, 10, 2)) << "two increments in a row";
  base.begin_full(10, "");
  EXPECT_FALSE(base.find(save(8), folder_, 12, 2)) << "the file of step 10 could not be written";
  const checkpoint::Written earlier = save(10);
  base.begin_full(10, earlier.hash);
  EXPECT_FALSE(base.find(earlier, folder_, 12, 2)) << "an earlier file of step 10; the second could not be written";
  const checkpoint::Base resumed{.step = 4, .hash = first.hash, .number = 1};
  base.resumed(resumed);
  EXPECT_TRUE(base.find({}, folder_, 6, 2));
  checkpoint::save(checkpoint::path_for(dir_, 4), checkpoint::sample_checkpoint(5));
  EXPECT_FALSE(base.find({}, folder_, 6, 2)) << "another file has its name";
  EXPECT_FALSE(base.find({}, folder_, 6, 2));
  std::filesystem::remove(checkpoint::path_for(dir_, 4));
  base.resumed(resumed);
  EXPECT_FALSE(base.find({}, folder_, 6, 2)) << "it is gone";
}

}  // namespace
}  // namespace lockstep::train
