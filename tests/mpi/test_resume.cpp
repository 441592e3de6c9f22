// A session that goes on from a checkpoint: how often its bytes are read and hashed, on which rank, which ranks receive
// tensors, and whose run it is. This program defines the functions of libxxhash and libc that it counts; they do what
// they always do.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "data/datasets/catalogue.h"
#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/train/run/session.h"
#include "models/zoo/classify.h"
#include "models/zoo/registry.h"
#include "tests/mpi/harness.h"

namespace lockstep::test {
namespace {

std::atomic<std::uint64_t> bytes_hashed = 0, bytes_read = 0;  // for and of files of checkpoints
std::atomic<std::uint64_t> tensor_bytes = 0;                  // hashed one tensor at a time

bool is_checkpoint(int file) {
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  std::array<char, 4096> target{};
  const ssize_t n = ::readlink(link.c_str(), target.data(), target.size());
  return n > 0 && std::string_view(target.data(), static_cast<std::size_t>(n)).ends_with(".h5");
}

}  // namespace
}  // namespace lockstep::test

extern "C" {

// NOLINTBEGIN(readability-identifier-naming): the library's names.
int XXH3_128bits_update(void* state, const void* bytes, std::size_t size) {
  using Update = int (*)(void*, const void*, std::size_t);
  static const auto real = reinterpret_cast<Update>(::dlsym(RTLD_NEXT, "XXH3_128bits_update"));
  lockstep::test::bytes_hashed += size;
  return real(state, bytes, size);
}

std::uint64_t XXH3_64bits(const void* bytes, std::size_t size) {
  using Hash = std::uint64_t (*)(const void*, std::size_t);
  static const auto real = reinterpret_cast<Hash>(::dlsym(RTLD_NEXT, "XXH3_64bits"));
  lockstep::test::tensor_bytes += size;
  return real(bytes, size);
}
// NOLINTEND(readability-identifier-naming)

ssize_t read(int file, void* bytes, std::size_t size) {
  const ssize_t n = ::syscall(SYS_read, file, bytes, size);
  if (n > 0 && lockstep::test::is_checkpoint(file)) lockstep::test::bytes_read += static_cast<std::uint64_t>(n);
  return n;
}
}

namespace lockstep::test {
namespace {

namespace fs = std::filesystem;

// Trains up to `steps` updates, saves at the end, and returns what has been read and hashed until training began.
struct Start {
  std::uint64_t hashed = 0, read = 0, tensors = 0, state = 0;
  std::int64_t begun_at = 0;
};
Start run(const fs::path& output, std::int64_t steps, const std::string& resume, bool share_weights = true) {
  train::Options options{
      .dataset = {.name = "digits", .limit_train = 128, .limit_eval = 32}, .epochs = 0, .max_steps = steps};
  options.global_batch = 32;
  options.batch_size = 0;
  options.threads = 1;
  options.loaders = 0;
  options.output = output.string();
  options.checkpoints.resume = resume;
  options.trainer.parallel.share_weights = share_weights;
  options.checkpoints.every_epochs = 0;
  options.checkpoints.every_steps = 2;
  options.checkpoints.keep = "0";
  options.eval_every = 0;
  options.rate.kind = optim::ScheduleOptions::Kind::Constant;
  options.trainer.parallel.overlap = train::ParallelOptions::Overlap::Steps;  // no thread beside each rank
  options.quiet = true;
  options.stall.report = 0;
  options.trainer.guards.verify_every = options.trainer.guards.compare_every = 0;
  train::Session session(world(), options, "test_resume", "{}", datasets::catalogue());
  const auto network = models::build_model("mnist_mlp", session.data().classes(), session.data().image_shape());
  bytes_hashed = bytes_read = tensor_bytes = 0;
  train::Trainer& trainer = session.build(*network, models::classify(*network));
  const Start result{.hashed = bytes_hashed,
                     .read = bytes_read,
                     .tensors = tensor_bytes,
                     .state = trainer.state_bytes(),
                     .begun_at = trainer.updates()};
  while (session.next_epoch()) {
    for (data::Batch& batch : session.batches()) session.report(trainer.step(batch, session.learning_rate()));
    session.finish_epoch();
  }
  return result;
}

fs::path file(const fs::path& output, std::int64_t step) { return checkpoint::path_for(output / "checkpoints", step); }

TEST(Resume, RankZeroReadsAFileOnceAndVerifiesItOnce) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  run(output, 4, "");
  for (const std::string& resume : {std::string("auto"), file(output, 4).string()}) {
    const Start found = run(output, 4, resume);
    ASSERT_EQ(found.begun_at, 4);
    const std::uint64_t size = world().is_root() ? fs::file_size(file(output, 4)) : 0;
    // And the header of each file in the folder, which says whose it is.
    EXPECT_GE(found.read, size) << resume;
    EXPECT_LE(found.read, world().is_root() ? size + 2 * 512 : 0) << resume;
    EXPECT_LE(found.hashed, size) << resume;  // without the header, with its note
    EXPECT_GE(found.hashed + 512, size) << resume;
  }
}

// Where the ranks of a node share weights, the first of them alone gets tensors, and checks each as it comes.
TEST(Resume, ATensorIsSentToTheRanksThatWriteIt) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  run(output, 4, "");
  for (const bool share : {true, false}) {
    const Start found = run(output, 4, "auto", share);
    ASSERT_EQ(found.begun_at, 4);
    if (world().is_root()) continue;
    const bool receives = !share || world().local_rank() == 0;
    EXPECT_GE(found.tensors, receives ? found.state : 0) << share;
    EXPECT_LT(found.tensors, receives ? found.state + 4096 : 4096) << share;  // and what else is hashed: some text
  }
}

TEST(Resume, AutoTakesItsOwnRunsCheckpoints) {
  const SharedDirectory shared;
  const fs::path mine = shared.path() / "mine", other = shared.path() / "other";
  run(mine, 2, "");
  run(other, 4, "");
  if (world().is_root()) fs::copy_file(file(other, 4), file(mine, 4));
  world().barrier();
  EXPECT_EQ(run(mine, 2, "auto").begun_at, 2);
  EXPECT_FALSE(fs::exists(file(mine, 4))) << "it is set aside";
  world().barrier();
  EXPECT_EQ(run(mine, 2, file(other, 4).string()).begun_at, 4) << "which was asked for";
}

TEST(Resume, KeepsTheRunsIdentityAndANewRunHasAnother) {
  const SharedDirectory shared;
  const fs::path output = shared.path() / "run";
  const auto id = [&] { return checkpoint::read_run_id(io::Folder(output)).value_or("none"); };
  const auto writer = [&](std::int64_t step) { return checkpoint::run_of(checkpoint::read_note(file(output, step))); };
  run(output, 2, "");
  const std::string first = id();
  EXPECT_TRUE(checkpoint::is_run_id(first));
  EXPECT_EQ(writer(2), first);
  EXPECT_EQ(world().broadcast_string(first), first) << "all ranks see one folder";
  run(output, 4, "auto");
  EXPECT_EQ(id(), first);
  EXPECT_EQ(writer(4), first);
  run(output, 4, file(output, 2).string());
  EXPECT_EQ(id(), first) << "it went back within its run";
  if (world().is_root()) fs::copy_file(file(output, 2), shared.path() / "step.h5");
  world().barrier();
  run(output, 2, "");
  EXPECT_NE(id(), first);
  const std::string second = id();
  world().barrier();
  run(output, 4, (shared.path() / "step.h5").string());
  EXPECT_NE(id(), first);
  EXPECT_NE(id(), second) << "it begins from another run's checkpoint";
  EXPECT_EQ(writer(4), id());
}

}  // namespace
}  // namespace lockstep::test
