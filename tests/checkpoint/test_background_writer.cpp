#include "lockstep/checkpoint/background_writer.h"

#include <omp.h>
#include <signal.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <atomic>
#include <future>
#include <iterator>
#include <sstream>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/core/log.h"
#include "lockstep/graph/layout.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::chrono_literals;

class BackgroundWriting : public InDirectory {
 protected:
  fs::path folder_ = dir_ / "checkpoints";

  static Draft draft_of(const Checkpoint& checkpoint, std::int64_t step) {
    return {.tensors = io::source_of(checkpoint.tensors), .metadata = checkpoint.metadata, .step = step};
  }
  static std::function<io::Folder()> in(const fs::path& directory) {
    return [directory] {
      std::error_code ignored;  // then opening says what is wrong
      fs::create_directories(directory, ignored);
      return io::Folder(directory);
    };
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const Entry& entry : list(folder_)) found.push_back(entry.step);
    return found;
  }
};

std::ptrdiff_t threads_of_process() { return std::distance(fs::directory_iterator("/proc/self/task"), {}); }

// State in blocked layouts is brought into logical order on the writer's thread.
TEST_F(BackgroundWriting, TakesOneThread) {
  const Shape shape{64, 64, 32, 32};
  const Layout blocked = Layout::channels_blocked(shape, 16);
  const Tensor stored(shape, DType::F32);
  const io::NamedTensor entry{.name = "model/w", .tensor = Tensor(shape, DType::F32)};
  Draft draft{.tensors = {.tensor = [&](std::size_t) -> const io::NamedTensor& {
                reorder(shape, DType::F32, blocked, stored.raw(), {}, const_cast<std::byte*>(entry.tensor.raw()));
                return entry;
              }},
              .metadata = "{}",
              .step = 1};
  draft.tensors.infos.push_back({entry.name, shape, DType::F32});
  BackgroundWriter writer({.folder = in(folder_), .keep = {.last = 2}});
  omp_set_num_threads(3);
  const std::ptrdiff_t before = threads_of_process();
  writer.write(std::move(draft));
  writer.claim();
  EXPECT_EQ(steps(), std::vector<std::int64_t>{1});
  EXPECT_EQ(threads_of_process(), before);
}

using Steps = std::vector<std::int64_t>;

TEST_F(BackgroundWriting, WritesWhileTheCallerGoesOnAndPrunes) {
  const Checkpoint contents = sample_checkpoint();  // outlives the writer, which reads it
  BackgroundWriter writer({.folder = in(folder_), .keep = {.last = 2}});
  std::promise<void> may_go_on;
  std::shared_future<void> gate = may_go_on.get_future().share();
  Draft held = draft_of(contents, 1);
  held.tensors.tensor = [&, gate](std::size_t i) -> const io::NamedTensor& {
    gate.wait();
    return contents.tensors[i];
  };
  writer.write(std::move(held));
  EXPECT_TRUE(steps().empty()) << "the caller is here before the file is";
  may_go_on.set_value();
  for (std::int64_t step = 2; step <= 5; ++step) {
    writer.claim();
    EXPECT_EQ(steps().back(), step - 1);
    writer.write(draft_of(contents, step));
  }
  writer.finish();
  EXPECT_EQ(steps(), (Steps{4, 5}));
  expect_same(load(path_for(folder_, 5)), contents);
}

TEST_F(BackgroundWriting, ADraftBesideAnotherIsRefused) {
  const Checkpoint contents = sample_checkpoint();  // outlives the writer, which reads it
  BackgroundWriter writer({.folder = in(folder_)});
  std::promise<void> gate;
  Draft held = draft_of(contents, 1);
  held.tensors.tensor = [&, open = gate.get_future().share()](std::size_t i) -> const io::NamedTensor& {
    open.wait();
    return contents.tensors[i];
  };
  writer.write(std::move(held));
  EXPECT_NE(error_of([&] { writer.write(draft_of(contents, 2)); }).find("expected claim() first"), std::string::npos);
  gate.set_value();
}

TEST_F(BackgroundWriting, AFailureIsTriedAgainFromTheSameTensors) {
  const Checkpoint contents = sample_checkpoint();  // outlives the writer, which reads it
  put(folder_, {});                                 // a file where the folder should be
  std::promise<Written> written;
  BackgroundWriter writer(
      {.folder = in(folder_), .retry = 10ms, .report = [&](const Written& w) { written.set_value(w); }});
  std::atomic<int> reads = 0;
  std::promise<void> first_try;
  Draft draft = draft_of(contents, 7);
  draft.tensors.tensor = [&](std::size_t i) -> const io::NamedTensor& {
    if (reads++ == 0) first_try.set_value();
    return contents.tensors[i];
  };
  writer.write(std::move(draft));
  first_try.get_future().wait();
  fs::remove(folder_);
  EXPECT_EQ(written.get_future().get().path, path_for(folder_, 7));
  expect_same(load(path_for(folder_, 7)), contents);
}

TEST_F(BackgroundWriting, TheFolderIsAskedForBeforeEachWrite) {
  const Checkpoint contents = sample_checkpoint();
  std::atomic<int> asked = 0;
  BackgroundWriter writer({.folder = [&] { return in(dir_ / std::to_string(++asked))(); }, .retry = 1h});
  writer.write(draft_of(contents, 1));
  writer.claim();
  writer.write(draft_of(contents, 2));
  writer.finish();
  EXPECT_TRUE(fs::exists(path_for(dir_ / "1", 1)));
  EXPECT_TRUE(fs::exists(path_for(dir_ / "2", 2)));
}

TEST_F(BackgroundWriting, ANewerDraftTakesThePlaceOfAFailedOne) {
  const Checkpoint contents = sample_checkpoint();  // outlives the writer, which reads it
  put(folder_, {});
  BackgroundWriter writer({.folder = in(folder_), .retry = 1h});
  writer.write(draft_of(contents, 1));
  writer.claim();
  fs::remove(folder_);
  writer.write(draft_of(contents, 2));
  writer.finish();
  EXPECT_EQ(steps(), (Steps{2}));
}

TEST_F(BackgroundWriting, FailuresInARowAreCountedInsteadOfRepeated) {
  const Checkpoint contents = sample_checkpoint();  // outlives the writer, which reads it
  std::ostringstream text;
  const auto logger =
      install_log(std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  put(folder_, {});
  {
    BackgroundWriter writer({.folder = in(folder_), .retry = 1h});
    for (std::int64_t step = 1; step <= 12; ++step) {
      writer.write(draft_of(contents, step));
      writer.claim();
    }
    fs::remove(folder_);
    writer.write(draft_of(contents, 13));
    writer.finish();
  }
  install_log(logger);
  std::vector<std::string> lines;
  std::istringstream said(text.str());
  for (std::string line; std::getline(said, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 13u) << text.str();
  EXPECT_NE(lines[0].find("checkpoint of step 1 could not be written: "), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("training goes on, next try in 3600 s"), std::string::npos) << lines[0];
  for (const auto& [at, count] : {std::pair{1u, "2nd"}, {2u, "3rd"}, {3u, "4th"}, {10u, "11th"}, {11u, "12th"}}) {
    EXPECT_TRUE(lines[at].ends_with(formatted("; it is the {} failed checkpoint in a row", count))) << lines[at];
    EXPECT_EQ(lines[at].find("training goes on"), std::string::npos) << lines[at];
  }
  EXPECT_NE(lines[12].find("checkpoint of step 13 is written, after 12 failed checkpoints in a row"), std::string::npos)
      << lines[12];
}

TEST_F(BackgroundWriting, TheEndTriesOnceMoreAndSaysWhatIsLost) {
  put(folder_, {});
  const Checkpoint contents = sample_checkpoint();
  {
    BackgroundWriter writer({.folder = in(folder_), .retry = 1h});
    writer.write(draft_of(contents, 1));
    const std::string message = error_of([&] { writer.finish(); });
    EXPECT_NE(message.find(name_for(1) + ": the checkpoint folder cannot be opened: "), std::string::npos) << message;
    EXPECT_NE(message.find(folder_.string()), std::string::npos) << message;
    EXPECT_NE(message.find("Not a directory"), std::string::npos) << message;
    fs::remove(folder_);
    EXPECT_EQ(error_of([&] { writer.finish(); }), "no error");
    EXPECT_EQ(error_of([&] { writer.finish(); }), "no error") << "nothing is left to do";
  }
  EXPECT_EQ(steps(), (Steps{1}));
  put(dir_ / "other", {});
  BackgroundWriter never({.folder = in(dir_ / "other"), .retry = 1h});
  never.write(draft_of(contents, 1));  // and goes without having succeeded
}

// In a child whose files may not grow: the signal that this raises is not one for the process, and later it is written.
TEST_F(BackgroundWriting, AFullDiskIsNoSignal) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Checkpoint contents = sample_checkpoint();
    rlimit limits{};
    ::getrlimit(RLIMIT_FSIZE, &limits);
    const rlim_t before = std::exchange(limits.rlim_cur, 1000);
    ::setrlimit(RLIMIT_FSIZE, &limits);
    BackgroundWriter writer({.folder = in(folder_), .retry = 1h});
    writer.write(draft_of(contents, 3));
    const bool said = error_of([&] { writer.finish(); }).find("File too large") != std::string::npos;
    const bool clean = names_in(folder_).empty();
    limits.rlim_cur = before;
    ::setrlimit(RLIMIT_FSIZE, &limits);
    writer.finish();
    ::_exit(said && clean && fs::exists(path_for(folder_, 3)) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lockstep::checkpoint
