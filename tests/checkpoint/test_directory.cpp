#include "lockstep/checkpoint/directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/io/envelope.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

class CheckpointDirectory : public InDirectory {
 protected:
  void save_steps(std::initializer_list<std::int64_t> steps) {
    for (const std::int64_t step : steps) {
      save(path_for(dir_, step), sample_checkpoint(static_cast<std::uint64_t>(step)));
    }
  }
  void flip_a_bit(std::int64_t step) {
    std::vector<std::byte> bytes = bytes_of(path_for(dir_, step));
    bytes[bytes.size() / 2] ^= std::byte{1};
    put(path_for(dir_, step), bytes);
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> found;
    for (const Entry& entry : list(dir_)) found.push_back(entry.step);
    return found;
  }
  void put_temporary(const std::string& name) { put(dir_ / name, std::as_bytes(std::span("half a file"))); }
};

using Steps = std::vector<std::int64_t>;

std::string host() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

TEST_F(CheckpointDirectory, ListsByStepAndIgnoresOtherNames) {
  EXPECT_EQ(path_for("out/checkpoints", 1200), fs::path("out/checkpoints/step-0000001200.h5"));
  EXPECT_THROW(path_for(dir_, -1), Error);
  save_steps({20, 3, 100});
  for (const char* name : {"step-12.h5", "step-0000000012.h5.bak", "step--000000012.h5", "step-00000000012.h5",
                           "step-.h5", "best.h5", "step-99999999999999999999.h5"}) {
    put_temporary(name);
  }
  EXPECT_EQ(steps(), (Steps{3, 20, 100}));
  save_steps({12'345'678'901});
  EXPECT_EQ(steps().back(), 12'345'678'901);
}

TEST_F(CheckpointDirectory, EmptyOrMissingHasNoCheckpoint) {
  EXPECT_FALSE(newest_whole(dir_));
  EXPECT_FALSE(newest_whole(dir_ / "missing"));
  EXPECT_TRUE(list(dir_ / "missing").empty());
  put_temporary("file");
  EXPECT_NE(error_of([&] { list(dir_ / "file"); }).find("file: read directory: Not a directory"), std::string::npos);
}

TEST_F(CheckpointDirectory, PassesOverDamagedFilesAndReportsEach) {
  save_steps({1, 2, 3, 4});
  EXPECT_EQ(newest_whole(dir_)->step, 4);
  fs::resize_file(path_for(dir_, 4), 700);
  flip_a_bit(3);
  Steps reported;
  std::string reasons;
  const auto found = newest_whole(dir_, [&](const Entry& entry, const std::string& reason) {
    reported.push_back(entry.step);
    reasons += reason + "\n";
  });
  ASSERT_TRUE(found);
  EXPECT_EQ(found->step, 2);
  EXPECT_EQ(found->path, path_for(dir_, 2));
  EXPECT_EQ(reported, (Steps{4, 3}));
  EXPECT_NE(reasons.find("step-0000000004.h5: cut short: has 700 bytes, expects "), std::string::npos) << reasons;
  EXPECT_NE(reasons.find("step-0000000003.h5: damaged: XXH3-128"), std::string::npos) << reasons;

  flip_a_bit(2);
  flip_a_bit(1);
  reported.clear();
  EXPECT_FALSE(newest_whole(dir_, [&](const Entry& entry, const std::string&) { reported.push_back(entry.step); }));
  EXPECT_EQ(reported, (Steps{4, 3, 2, 1}));
}

TEST_F(CheckpointDirectory, PruneKeepsTheNewest) {
  save_steps({1, 2, 3, 4, 5});
  EXPECT_EQ(prune(io::Folder(dir_), {.last = 2}).size(), 3u);
  EXPECT_EQ(steps(), (Steps{4, 5}));
  EXPECT_TRUE(prune(io::Folder(dir_), {.last = 7}).empty());
  EXPECT_EQ(prune(io::Folder(dir_), {.last = 1}).at(0).step, 4);
  EXPECT_EQ(steps(), (Steps{5}));
  save_steps({6});
  EXPECT_TRUE(prune(io::Folder(dir_), {.last = 0}).empty());
}

TEST_F(CheckpointDirectory, PruneKeepsMultiplesForEver) {
  save_steps({5, 10, 15, 20, 25, 30});
  prune(io::Folder(dir_), {.last = 2, .every = 10});
  EXPECT_EQ(steps(), (Steps{10, 20, 25, 30}));
}

// No file can be opened as long as an object lives.
class NoDescriptors {
 public:
  NoDescriptors() {
    check_call(::getrlimit(RLIMIT_NOFILE, &before_) == 0, "test", "getrlimit");
    const rlimit none{0, before_.rlim_max};
    check_call(::setrlimit(RLIMIT_NOFILE, &none) == 0, "test", "setrlimit");
  }
  ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  NoDescriptors(const NoDescriptors&) = delete;
  NoDescriptors& operator=(const NoDescriptors&) = delete;

 private:
  rlimit before_{};
};

// The rights of a user whom the modes of files stop, as long as an object lives; root has no such limits.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0), works_(!was_root_ || ::seteuid(65534) == 0) {}
  ~AsNobody() {
    if (was_root_ && works_ && ::seteuid(0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  bool works() const { return works_; }  // whether the system has such a user

 private:
  bool was_root_, works_;
};

Score scored(double loss, double accuracy) { return {.loss = loss, .metrics = {{"accuracy", accuracy}}}; }

TEST_F(CheckpointDirectory, PruneKeepsTheBestByItsNote) {
  const Checkpoint contents = sample_checkpoint();
  const auto save_scored = [&](std::int64_t step, const std::string& note) {
    save(path_for(dir_, step),
         Draft{.tensors = io::source_of(contents.tensors), .metadata = contents.metadata, .note = note});
  };
  save_scored(1, note_of("", scored(0.25, 0.5)));
  save_scored(2, note_of("", scored(0.5, 0.75)));
  save_scored(3, note_of("", scored(0.75, 0.75)));
  save_scored(4, note_of("", scored(std::nan(""), std::nan(""))));
  save_scored(5, "something else");
  save_scored(6, "");
  put_temporary("step-0000000000.h5");  // which cannot be read
  prune(io::Folder(dir_), {.last = 3, .best = "accuracy", .higher_is_better = true});
  EXPECT_EQ(steps(), (Steps{2, 4, 5, 6})) << "of equals the older one stays, so that it does not change for nothing";
  save_scored(7, note_of("", scored(0.0625, 0.5)));
  prune(io::Folder(dir_), {.last = 1, .best = "loss"});
  EXPECT_EQ(steps(), (Steps{7}));
}

TEST_F(CheckpointDirectory, PruneKeepsTheBestLossOfAModelWithoutAccuracy) {
  const Checkpoint contents = sample_checkpoint();
  for (const auto& [step, loss] : {std::pair{1, 0.5}, std::pair{2, 0.25}, std::pair{3, 0.75}, std::pair{4, 0.5}}) {
    save(path_for(dir_, step), Draft{.tensors = io::source_of(contents.tensors),
                                     .metadata = contents.metadata,
                                     .note = note_of("", Score{.loss = loss})});
  }
  EXPECT_TRUE(score_of(note_of("", Score{.loss = 1}))->metrics.empty());
  prune(io::Folder(dir_), {.last = 1, .best = "loss"});
  EXPECT_EQ(steps(), (Steps{2, 4}));
  prune(io::Folder(dir_), {.last = 1, .best = "accuracy", .higher_is_better = true});
  EXPECT_EQ(steps(), (Steps{4}));
}

TEST_F(CheckpointDirectory, TheBestIsTheOneOfTheNewestRule) {
  const Checkpoint contents = sample_checkpoint();
  const auto save_noted = [&](std::int64_t step, const std::string& note) {
    save(path_for(dir_, step),
         Draft{.tensors = io::source_of(contents.tensors), .metadata = contents.metadata, .note = note});
  };
  const Retention by_loss{.best = "loss"}, by_accuracy{.best = "accuracy", .higher_is_better = true};
  EXPECT_FALSE(best_whole(dir_ / "nowhere"));
  save_noted(1, note_of("", scored(0.25, 0.5)));
  EXPECT_FALSE(best_whole(dir_)) << "without a rule there is no best one";
  EXPECT_FALSE(rule_of(note_of("", std::nullopt, by_loss)));
  EXPECT_THROW(find_weights(dir_, Pick::Best), Error);
  save_noted(2, note_of("", Score{.loss = 0.5}, by_loss));
  EXPECT_EQ(best_whole(dir_)->step, 1);
  save_noted(3, note_of("", scored(0.75, 0.75), by_accuracy));
  save_noted(4, note_of("", scored(0.75, 0.625), by_accuracy));
  save_noted(5, note_of("", std::nullopt, by_accuracy));
  const std::optional<Best> found = best(io::Folder(dir_), by_accuracy);
  ASSERT_TRUE(found);
  EXPECT_EQ(std::tuple(found->step, found->metric, found->value), std::tuple(3, std::string("accuracy"), 0.75));
  EXPECT_EQ(find_weights(dir_, Pick::Best).file, path_for(dir_, 3));
  EXPECT_EQ(find_weights(dir_).file, path_for(dir_, 5));
  EXPECT_THROW(find_weights(path_for(dir_, 3), Pick::Best), Error) << "a file is no run";
  flip_a_bit(3);
  std::vector<std::int64_t> damaged;
  EXPECT_EQ(best_whole(dir_, [&](const Entry& entry, const std::string&) { damaged.push_back(entry.step); })->step, 4);
  EXPECT_EQ(damaged, (Steps{3}));
}

TEST_F(CheckpointDirectory, ASearchEndsAtAFileThatTheSystemDoesNotGive) {
  const Checkpoint contents = sample_checkpoint();
  const Retention rule{.best = "loss"};
  for (const auto& [step, loss] : {std::pair{1, 0.75}, std::pair{2, 0.5}, std::pair{3, 0.25}}) {
    save(path_for(dir_, step), Draft{.tensors = io::source_of(contents.tensors),
                                     .metadata = contents.metadata,
                                     .note = note_of("", Score{.loss = loss}, rule)});
  }
  flip_a_bit(3);  // so that a search reports it, and goes on to step 2
  EXPECT_EQ(newest_whole(dir_)->step, 2);
  EXPECT_EQ(best_whole(dir_)->step, 2);
  for (const bool best : {false, true}) {
    std::optional<NoDescriptors> none;
    std::string reason = "no error";
    try {
      const auto report = [&](const Entry&, const std::string&) { none.emplace(); };
      if (best) {
        best_whole(dir_, report);
      } else {
        newest_whole(dir_, report);
      }
    } catch (const Unavailable& error) {
      none.reset();  // first, as UBSan opens a pipe to look at the type of an object
      reason = error.what();
    }
    none.reset();
    EXPECT_TRUE(has(reason, "step-0000000002.h5: open: Too many open files")) << reason;
  }
}

TEST_F(CheckpointDirectory, PruneKeepsWhatMayBeTheBest) {
  const Checkpoint contents = sample_checkpoint();
  for (const auto& [step, loss] : {std::pair{1, 0.25}, std::pair{2, 0.75}, std::pair{3, 0.5}, std::pair{4, 0.625}}) {
    save(path_for(dir_, step), Draft{.tensors = io::source_of(contents.tensors),
                                     .metadata = contents.metadata,
                                     .note = note_of("", Score{.loss = loss})});
    fs::permissions(path_for(dir_, step), step == 1 ? fs::perms::none : fs::perms{0644});
  }
  fs::permissions(dir_, fs::perms::all);
  const io::Folder folder(dir_);
  {
    const AsNobody nobody;
    if (!nobody.works()) GTEST_SKIP() << "no other user here";
    prune(folder, {.last = 1, .best = "loss"}, 4);
    EXPECT_THROW(best(folder, {.best = "loss"}), Unavailable);
  }
  EXPECT_EQ(steps(), (Steps{1, 3, 4})) << "step 1, which cannot be read, may be the best, and is";
  fs::permissions(path_for(dir_, 1), fs::perms{0644});
  prune(folder, {.last = 1, .best = "loss"}, 4);
  EXPECT_EQ(steps(), (Steps{1, 4}));
}

TEST(Retention, IsReadFromText) {
  const auto read = [](const char* text) { return parse_retention(text, "test"); };
  EXPECT_EQ(read("5"), (Retention{.last = 5}));
  EXPECT_EQ(read("0"), (Retention{.last = 0}));
  EXPECT_EQ(read("every:100"), (Retention{.last = 3, .every = 100}));
  EXPECT_EQ(read("best:loss,last:1,every:7"), (Retention{.last = 1, .every = 7, .best = "loss"}));
  EXPECT_EQ(read("best:accuracy"), (Retention{.best = "accuracy"}));
  for (const char* wrong : {"", ",", "3,", "-1", "last:", "last:x", "3,last:4", "every:0", "every:-2", "best",
                            "best:", "best:loss,best:accuracy", "newest:3", "1e3", " 3"}) {
    EXPECT_NE(error_of([&] { read(wrong); }).find(formatted("[test] --keep is '{}'", wrong)), std::string::npos)
        << wrong;
  }
}

TEST_F(CheckpointDirectory, PassesOverAFileWhoseTensorDeniesItsChecksum) {
  save_steps({1, 2});
  std::vector<std::byte> bytes = bytes_of(path_for(dir_, 2));
  const Checkpoint saved = sample_checkpoint(2);
  const Tensor& tensor = saved.tensors.back().tensor;
  const auto found = std::search(bytes.begin(), bytes.end(), tensor.raw(), tensor.raw() + tensor.bytes());
  ASSERT_NE(found, bytes.end());
  *found ^= std::byte{1};
  seal(bytes);
  put(path_for(dir_, 2), bytes);
  std::string reasons;
  const auto newest = newest_whole(dir_, [&](const Entry&, const std::string& reason) { reasons += reason; });
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->step, 1);
  EXPECT_NE(reasons.find(saved.tensors.back().name), std::string::npos) << reasons;
}

TEST_F(CheckpointDirectory, PruneNeverTakesTheNewestWholeOne) {
  save_steps({1, 2, 3, 4, 5});
  flip_a_bit(5);
  flip_a_bit(4);
  flip_a_bit(3);
  prune(io::Folder(dir_), {.last = 2});
  EXPECT_EQ(steps(), (Steps{2, 4, 5}));
  EXPECT_EQ(newest_whole(dir_)->step, 2);
}

TEST_F(CheckpointDirectory, PruneTakesLeftoversOfDeadWritersOnly) {
  save_steps({1});
  const std::string mine = ".lockstep-" + host() + ".4000000.";
  const std::string dead = mine + "0.tmp", living = mine + "1.tmp";
  const std::string elsewhere = ".lockstep-another-host.7.0.tmp", elsewhere_old = ".lockstep-another-host.7.1.tmp";
  for (const std::string& name : {dead, living, elsewhere, elsewhere_old, std::string(".other.tmp")})
    put_temporary(name);
  fs::last_write_time(dir_ / elsewhere_old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  const int fd = ::open((dir_ / living).c_str(), O_RDONLY);
  ASSERT_EQ(::flock(fd, LOCK_EX | LOCK_NB), 0);
  prune(io::Folder(dir_), {.last = 3});
  EXPECT_EQ(names_in(dir_), (std::vector<std::string>{elsewhere, living, ".other.tmp", "step-0000000001.h5"}));
  ::close(fd);
  prune(io::Folder(dir_), {.last = 3});
  EXPECT_FALSE(fs::exists(dir_ / living));
}

// A child that saves one checkpoint after the other until it is killed.
class KilledWriter : public CheckpointDirectory {
 protected:
  void start() {
    child_ = ::fork();
    ASSERT_GE(child_, 0);
    if (child_ > 0) return;
    const auto write = [&] {
      for (std::int64_t step = newest_whole(dir_)->step + 1;; ++step) save_steps({step});
    };
    std::fputs(error_of(write).c_str(), stderr);
    ::_exit(1);
  }
  void kill() {
    ::kill(child_, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child_, &status, 0), child_);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer ended by itself";
  }
  // Stops the child, time and again, until that is in the middle of a write.
  void stop_in_mid_write() {
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(100);
         std::chrono::steady_clock::now() < end; ::usleep(100)) {
      ::kill(child_, SIGSTOP);
      int status = 0;
      ASSERT_EQ(::waitpid(child_, &status, WUNTRACED), child_);
      ASSERT_TRUE(WIFSTOPPED(status)) << "the writer ended by itself";
      if (unfinished() > 0) return;
      ::kill(child_, SIGCONT);
    }
  }
  std::int64_t unfinished() const {
    return std::ranges::count_if(names_in(dir_), [](const std::string& name) { return name.ends_with(".tmp"); });
  }
  // Whatever the child was doing, its directory holds only whole checkpoints.
  void expect_whole() {
    const auto found = newest_whole(dir_, [](const Entry&, const std::string& reason) { ADD_FAILURE() << reason; });
    ASSERT_TRUE(found);
    expect_same(load(found->path), sample_checkpoint(static_cast<std::uint64_t>(found->step)));
    prune(io::Folder(dir_), {.last = 2});
    EXPECT_EQ(unfinished(), 0);
  }

 private:
  pid_t child_ = 0;
};

TEST_F(KilledWriter, InMidWriteLeavesWholeCheckpoints) {
  save_steps({0});
  for (int round = 0; round < 5 && !HasFatalFailure(); ++round) {
    start();
    stop_in_mid_write();
    kill();
    EXPECT_EQ(unfinished(), 1);
    expect_whole();
  }
}

TEST_F(KilledWriter, AtAnyTimeLeavesWholeCheckpoints) {
  save_steps({0});
  RandomStream random(21, 0);
  for (int round = 0; round < 40 && !HasFatalFailure(); ++round) {
    start();
    ::usleep(static_cast<useconds_t>(random.below(20'000)));
    kill();
    expect_whole();
  }
}

}  // namespace
}  // namespace lockstep::checkpoint
