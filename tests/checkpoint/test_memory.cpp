// How much memory a state takes while it is saved and loaded: limits of the process tell, in a child of its own.
#include "lockstep/checkpoint/weights.h"
#include "lockstep/io/image_write.h"
#include "tests/checkpoint/fixtures.h"
#include "tests/memory_limit.h"

namespace lockstep::checkpoint {
namespace {

constexpr std::size_t kTensor = std::size_t{16} << 20;  // bytes of each tensor
constexpr int kTensors = 12;

io::NamedTensor large(int index) {
  io::NamedTensor entry{.name = formatted("model/t{}", index), .tensor = Tensor({kTensor / 4}, DType::F32)};
  std::ranges::fill(entry.tensor.data<float>(), static_cast<float>(index));
  return entry;
}

// Tensors that exist one at a time.
struct Lazy {
  io::NamedTensor current = {};

  io::TensorSource source() {
    io::TensorSource tensors{.tensor = [this](std::size_t i) -> const io::NamedTensor& {
      current = {};
      return current = large(static_cast<int>(i));
    }};
    for (int i = 0; i < kTensors; ++i)
      tensors.infos.push_back({formatted("model/t{}", i), Shape{kTensor / 4}, DType::F32});
    return tensors;
  }
};

class CheckpointMemory : public InDirectory {
 protected:
  void SetUp() override { LOCKSTEP_SKIP_WITHOUT_LIMITS(); }
  const fs::path path_ = dir_ / "c.h5";
};

TEST_F(CheckpointMemory, TheLimitOfThisTestHolds) {
  EXPECT_FALSE(fits_in(2 * kTensor, [] {
    std::vector<io::NamedTensor> all;
    for (int i = 0; i < kTensors; ++i) all.push_back(large(i));
  }));
}

TEST_F(CheckpointMemory, SavingAndLoadingHoldOneTensorAtATime) {
  EXPECT_TRUE(fits_in(2 * kTensor, [&] {
    Lazy lazy;
    save(path_, Draft{.tensors = lazy.source(), .metadata = "{}"});
  }));
  EXPECT_GT(fs::file_size(path_), kTensors * kTensor);
  EXPECT_LT(fs::file_size(path_), kTensors * kTensor + 16384);
  EXPECT_TRUE(fits_in(2 * kTensor, [&] {
    StoredCheckpoint stored = open_checkpoint(path_);
    const io::TensorSource source = stored.tensors();
    check(source.count() == kTensors, "test", "{} tensors", source.count());
    for (std::size_t i = 0; i < source.count(); ++i) {
      const auto& [name, tensor] = source.tensor(i);
      const auto data = tensor.data<float>();
      check(name == formatted("model/t{}", static_cast<int>(data.front())) && data.front() == data.back(), "test",
            "{}: {} to {}", name, data.front(), data.back());
    }
  }));
}

// Weights of a checkpoint one by one; and a table that is one tensor, of which rows are asked for, in a file of
// Lockstep and in one of h5py's kind, without a hash.
TEST_F(CheckpointMemory, WeightsAreReadInParts) {
  Lazy lazy;
  save(path_, Draft{.tensors = lazy.source(), .metadata = "{}"});
  EXPECT_TRUE(fits_in(2 * kTensor, [&] {
    WeightsFile file(path_);
    const io::TensorSource source = file.tensors();
    for (std::size_t i = 0; i < source.count(); ++i) source.tensor(i);
  }));
  constexpr std::int64_t kRows = 1 << 16, kWidth = 1024;  // 256 MiB
  const fs::path ours = dir_ / "ours.h5", plain = dir_ / "plain.h5";
  {
    std::vector<io::NamedTensor> table;
    table.push_back({"table", Tensor({kRows, kWidth}, DType::F32)});
    for (std::int64_t r = 0; r < kRows; ++r)
      table[0].tensor.data<float>()[static_cast<std::size_t>(r * kWidth)] = static_cast<float>(r);
    save_weights(ours, table);
    std::ofstream out(plain, std::ios::binary);
    io::ImageStream(io::source_of(table), {}, "plain").write([&](std::span<const std::byte> bytes) {
      out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    });
  }
  for (const fs::path& path : {ours, plain}) {
    EXPECT_TRUE(fits_in(2 * kTensor, [&] {
      WeightsFile file(path);
      const io::TensorSource source = file.tensors();
      for (std::int64_t r = 0; r < kRows; r += kRows / 16) {
        const Tensor part = source.read_rows(0, {r, r + kRows / 64});
        check(part.data<float>()[kWidth] == static_cast<float>(r + 1), "test", "row {}", r);
      }
    })) << path;
  }
}

TEST(CheckpointChange, OfATensorWhileItIsSavedIsAnError) {
  Checkpoint saved{.tensors = {}, .metadata = "{}"};
  for (const char* name : {"model/a", "model/b"}) saved.tensors.push_back({name, random_tensor({9}, DType::F32, 1)});
  Draft draft{.tensors = io::source_of(saved.tensors), .metadata = "{}"};
  int asked = 0;
  draft.tensors.tensor = [&](std::size_t i) -> const io::NamedTensor& {
    if (++asked == 4) saved.tensors[1].tensor.raw()[7] ^= std::byte{2};  // both were asked for once, then the first
    return saved.tensors[i];
  };
  const std::string message = error_of([&] { serialize(draft); });
  EXPECT_NE(message.find("XXH3-64 of the values of \"model/b\" is "), std::string::npos) << message;
}

}  // namespace
}  // namespace lockstep::checkpoint
