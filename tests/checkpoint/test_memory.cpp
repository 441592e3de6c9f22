// How much memory a state takes while it is saved and loaded: limits of the process tell, in a child of its own.
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which map memory in their own ways

constexpr std::size_t kTensor = std::size_t{16} << 20;  // bytes of each tensor
constexpr int kTensors = 12;

// Runs `action` in a child that may take `most` bytes of memory of its own beyond what it has; whether it returned.
// Mapped files do not count.
bool fits_in(std::size_t most, const std::function<void()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::size_t data = 0;  // kB
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      if (word == "VmData:") status >> data;
    }
    const rlimit limit{1024 * data + most, 1024 * data + most};
    if (data == 0 || ::setrlimit(RLIMIT_DATA, &limit) != 0) ::_exit(2);
    const std::string error = error_of(action);
    if (error != "no error") std::fprintf(stderr, "%s\n", error.c_str());
    ::_exit(error == "no error" ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) < 2) << status;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

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

#endif

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
