// Increments: checkpoints with the rows that changed since another one read as complete ones, need that one, and keep
// it from being pruned.
#include "lockstep/checkpoint/increment.h"

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"
#include "lockstep/io/verified_file.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

using Rows = std::vector<std::int32_t>;

class Increments : public InDirectory {
 protected:
  // A table and its state, which is one number per row, and what is no table.
  static Checkpoint make(std::uint64_t seed) {
    Checkpoint all{.tensors = {}, .metadata = formatted(R"({{"step": {}}})", seed)};
    all.tensors.push_back({"model/out", random_tensor({3}, DType::F32, seed)});
    all.tensors.push_back({"model/table", random_tensor({6, 2}, DType::F32, seed + 1)});
    all.tensors.push_back({"optimizer/sum/table", random_tensor({6}, DType::F32, seed + 2)});
    return all;
  }
  // Writes the increment of `now` with these rows of the table, and puts the other rows of `now` back to `base`'s.
  void save_increment(std::int64_t step, const Base& base, const Checkpoint& of_base, const Rows& rows,
                      Checkpoint& now) {
    Checkpoint part{.tensors = {}, .metadata = now.metadata};
    part.tensors.push_back({"model/out", now.tensors[0].tensor.clone()});
    for (std::size_t t = 1; t < now.tensors.size(); ++t) {
      Tensor& all = now.tensors[t].tensor;
      const std::size_t row = all.bytes() / 6;
      std::vector<std::int64_t> dims = all.shape().dims();
      dims[0] = std::ssize(rows);
      Tensor values(Shape(dims), DType::F32);
      for (std::size_t i = 0; i < rows.size(); ++i)
        std::memcpy(values.raw() + i * row, all.raw() + static_cast<std::size_t>(rows[i]) * row, row);
      for (std::int32_t i = 0; i < 6; ++i) {
        const std::size_t at = static_cast<std::size_t>(i) * row;
        if (std::ranges::find(rows, i) == rows.end())
          std::memcpy(all.raw() + at, of_base.tensors[t].tensor.raw() + at, row);
      }
      const std::string& name = now.tensors[t].name;
      part.tensors.push_back(
          {std::string(kRowsPrefix) + name, Tensor::from<std::int32_t>(Shape{std::ssize(rows)}, rows)});
      part.tensors.push_back({std::string(kValuesPrefix) + name, std::move(values)});
    }
    save(path_for(dir_, step), Draft{.tensors = io::source_of(part.tensors),
                                     .metadata = part.metadata,
                                     .note = note_with_base(note_of(run_, std::nullopt), base)});
  }
  Base save_base(std::int64_t step, const Checkpoint& all) {
    save(path_for(dir_, step),
         Draft{.tensors = io::source_of(all.tensors), .metadata = all.metadata, .note = note_of(run_, std::nullopt)});
    io::FileReader reader(path_for(dir_, step));
    return {.step = step, .hash = io::read_envelope(reader).hash, .number = 1};
  }
  static std::string reason(const fs::path& path) {
    return error_of([&] { open_checkpoint(path); });
  }

  std::string run_ = new_run_id();
};

TEST_F(Increments, ReadAsCompleteCheckpoints) {
  const Checkpoint first = make(10);
  const Base base = save_base(4, first);
  EXPECT_FALSE(base_of(note_of(run_, std::nullopt)));
  for (const Rows& rows : {Rows{0, 3, 5}, Rows{}, Rows{0, 1, 2, 3, 4, 5}}) {
    Checkpoint now = make(20);
    save_increment(6, base, first, rows, now);
    const auto found = newest_whole(dir_);
    ASSERT_TRUE(found);
    const std::optional<Base> named = base_of(found->file.note());
    ASSERT_TRUE(named);
    EXPECT_EQ(named->hash, base.hash);
    EXPECT_EQ(run_of(found->file.note()), run_);
    expect_same(load(path_for(dir_, 6)), now);
    const std::vector<io::NamedTensor> weights = load_weights(path_for(dir_, 6));
    ASSERT_EQ(weights.size(), 2u);
    EXPECT_EQ(std::memcmp(weights[1].tensor.raw(), now.tensors[1].tensor.raw(), now.tensors[1].tensor.bytes()), 0);
    StoredCheckpoint file = open_checkpoint(path_for(dir_, 6));
    EXPECT_EQ(file.tensors().count(), 3u);
    EXPECT_EQ(file.tensors(true).count(), 5u) << "with the numbers of changed rows";
  }
}

TEST_F(Increments, NeedTheirBaseAsItWas) {
  const Checkpoint first = make(10);
  const Base base = save_base(4, first);
  Checkpoint now = make(20);
  save_increment(6, base, first, {2}, now);
  fs::create_directory(dir_ / "aside");
  fs::copy(path_for(dir_, 6), path_for(dir_ / "aside", 6));
  EXPECT_TRUE(has(reason(path_for(dir_ / "aside", 6)), "changed since step-0000000004.h5, a file that it needs"));
  fs::create_directory(dir_ / "checkpoints");
  fs::copy(path_for(dir_, 4), path_for(dir_ / "checkpoints", 4));
  EXPECT_EQ(reason(path_for(dir_ / "aside", 6)), "no error")
      << "a resume has moved the increment aside, and not its base";
  save_base(4, make(11));
  EXPECT_TRUE(has(reason(path_for(dir_, 6)), "its hash is ")) << "another file has its place";
  save_base(3, first);
  const auto found = newest_whole(dir_);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 4) << "a checkpoint without its base is no whole one";
  save_base(4, first);
  Checkpoint wrong = make(20);
  save_increment(7, base, first, {2}, wrong);
  EXPECT_EQ(newest_whole(dir_)->step, 7);
  fs::remove(path_for(dir_, 4));
  EXPECT_EQ(newest_whole(dir_)->step, 3);
}

TEST_F(Increments, SayWhetherTheirBaseIsDamagedOrUnavailable) {
  const Checkpoint first = make(10);
  const Base base = save_base(4, first);
  Checkpoint now = make(20);
  save_increment(6, base, first, {2}, now);
  const auto reason_with = [&](const OpenBase& open) {
    try {
      io::FileReader reader(path_for(dir_, 6));
      open_checkpoint(reader, open, {});
    } catch (const Unavailable& error) {
      return formatted("unavailable: {}", error.what());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(reason_with([](const std::string&) -> io::FileReader { throw Unavailable("[test] no memory"); }),
            "unavailable: [test] no memory");
  const std::string missing =
      reason_with([&](const std::string& name) { return io::FileReader(dir_ / "elsewhere" / name); });
  EXPECT_TRUE(has(missing, "a file that it needs and that cannot be used")) << missing;
  EXPECT_FALSE(missing.starts_with("unavailable")) << missing;
}

TEST_F(Increments, KeepTheirBaseFromBeingPruned) {
  const Checkpoint first = make(10);
  save_base(2, first);
  const Base base = save_base(4, first);
  const auto steps = [&] {
    std::vector<std::int64_t> all;
    for (const Entry& entry : list(dir_)) all.push_back(entry.step);
    return all;
  };
  for (const std::int64_t step : {6, 8, 10}) {
    Checkpoint now = make(20);
    save_increment(step, base, first, {1}, now);
  }
  fs::copy(path_for(dir_, 8), dir_ / "whole");
  fs::resize_file(path_for(dir_, 8), 3);
  prune(io::Folder(dir_), {.last = 2}, 10);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{2, 4, 6, 8, 10})) << "it is not known which base step 8 needs";
  fs::rename(dir_ / "whole", path_for(dir_, 8));
  prune(io::Folder(dir_), {.last = 2}, 10);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{4, 8, 10}));
  save_base(12, make(30));
  prune(io::Folder(dir_), {.last = 2}, 12);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{4, 10, 12}));
  save_base(14, make(30));
  prune(io::Folder(dir_), {.last = 2}, 14);
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{12, 14}));
}

}  // namespace
}  // namespace lockstep::checkpoint
