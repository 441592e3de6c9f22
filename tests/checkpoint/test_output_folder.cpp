#include "lockstep/checkpoint/output_folder.h"

#include <sys/stat.h>

#include <array>

#include "lockstep/checkpoint/directory.h"
#include "lockstep/checkpoint/run_identity.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/io/envelope.h"
#include "tests/checkpoint/fixtures.h"

namespace lockstep::checkpoint {
namespace {

using namespace std::chrono_literals;

std::string text_of(const fs::path& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

class OwnFiles : public InDirectory {
 protected:
  void SetUp() override {
    std::ofstream(dir_ / "precious") << "keep me";
    fs::create_symlink(dir_ / "precious", dir_ / "link");
    fs::create_symlink(dir_ / "nowhere", dir_ / "dangling");
    ASSERT_EQ(::mkfifo((dir_ / "pipe").c_str(), 0666), 0);
    fs::create_directory(dir_ / "folder");
  }
  static constexpr std::array kUses{io::FileUse::Read, io::FileUse::ReadWrite, io::FileUse::Append,
                                    io::FileUse::Replace};
};

TEST_F(OwnFiles, WhatIsNoRegularFileIsRefusedAndNamed) {
  const io::Folder folder(dir_);
  for (const io::FileUse use : kUses) {
    for (const auto& [name, kind] : {std::pair<std::string, std::string>{"link", "a symbolic link"},
                                     {"dangling", "a symbolic link"},
                                     {"pipe", "a named pipe"},
                                     {"folder", "a folder"}}) {
      const std::string expected =
          formatted("[test] {} is {}, expected a regular file or none: remove it", (dir_ / name).string(), kind);
      EXPECT_EQ(error_of([&, name = name] { folder.open_file(name, use, "test"); }).substr(0, expected.size()),
                expected);
      EXPECT_EQ(error_of([&, name = name] { io::open_own_file(dir_ / name, use, "test"); }).substr(0, expected.size()),
                expected);
    }
  }
  EXPECT_EQ(text_of(dir_ / "precious"), "keep me");
  EXPECT_FALSE(fs::exists(dir_ / "nowhere"));
}

TEST_F(OwnFiles, RegularFilesAreOpenedForWhatTheyAreFor) {
  const io::Folder folder(dir_);
  const auto write = [&](io::FileUse use, std::string_view text) {
    const io::FileDescriptor file = folder.open_file("file", use, "test");
    EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return text_of(dir_ / "file");
  };
  EXPECT_EQ(write(io::FileUse::Append, "one"), "one");
  EXPECT_EQ(write(io::FileUse::Append, "two"), "onetwo");
  EXPECT_EQ(write(io::FileUse::ReadWrite, "3"), "3netwo");
  EXPECT_EQ(write(io::FileUse::Replace, "four"), "four");
  EXPECT_EQ(error_of([&] { folder.open_file("absent", io::FileUse::Read, "test"); }),
            formatted("[test] cannot read {}: No such file or directory", (dir_ / "absent").string()));
  EXPECT_EQ(
      error_of([&] { io::open_own_file(dir_ / "absent" / "file", io::FileUse::Append, "test", "a --trace FILE"); }),
      formatted("[test] cannot write {}: No such file or directory; expected a --trace FILE",
                (dir_ / "absent" / "file").string()));
}

TEST_F(OwnFiles, LockAndIdentityFollowNoLinkAndWaitForNoPipe) {
  for (const char* name : {".lock", "run.json"}) {
    fs::create_symlink(dir_ / "precious", dir_ / "folder" / name);
    const auto use = [&] {
      OutputFolder output(dir_ / "folder", 0ms);
      output.begin(new_run_id());
    };
    EXPECT_NE(error_of(use).find(formatted("folder/{} is a symbolic link", name)), std::string::npos) << error_of(use);
    fs::remove(dir_ / "folder" / name);
    ASSERT_EQ(::mkfifo((dir_ / "folder" / name).c_str(), 0666), 0);
    EXPECT_NE(error_of(use).find(formatted("folder/{} is a named pipe", name)), std::string::npos) << error_of(use);
    fs::remove(dir_ / "folder" / name);
  }
  EXPECT_EQ(text_of(dir_ / "precious"), "keep me");
}

TEST_F(OwnFiles, AFolderBehindALinkIsTheFolder) {
  fs::create_directory_symlink(dir_ / "folder", dir_ / "run");
  OutputFolder output(dir_ / "run", 0ms);
  output.begin(new_run_id());
  EXPECT_TRUE(fs::exists(dir_ / "folder" / "run.json"));
  EXPECT_TRUE(output.folder()->is_at(dir_ / "folder"));
}

// Each "job" is an OutputFolder; locks belong to open files, so those of one process lock each other out as well.
class Output : public InDirectory {
 protected:
  struct Job {
    std::string id = new_run_id();
    OutputFolder output;
    explicit Job(const fs::path& path) : output(path, 0ms) { output.begin(id); }
    // A file of this job, where it may write now.
    fs::path save() {
      const auto folder = output.folder();
      io::replace_file(*folder, "saved", id, "test");
      return folder->path();
    }
  };
  // The job whose file lies there.
  std::string saved_in(const fs::path& folder) const { return text_of(folder / "saved"); }
  static std::string run_in(const fs::path& folder) { return read_run_id(io::Folder(folder)).value_or("none"); }

  fs::path run_ = dir_ / "run", away_ = dir_ / "away";
};

TEST_F(Output, StaysWhereItIs) {
  Job job(run_);
  EXPECT_EQ(job.save(), run_);
  EXPECT_EQ(job.save(), run_);
  EXPECT_EQ(saved_in(run_), job.id);
  EXPECT_EQ(job.output.run(), job.id);
  EXPECT_EQ(names_in(dir_), std::vector<std::string>{"run"});
}

TEST_F(Output, ARunIdThatIsRemovedIsWrittenAgain) {
  Job job(run_);
  fs::remove(run_ / "run.json");
  EXPECT_EQ(job.save(), run_);
  EXPECT_EQ(run_in(run_), job.id);
  std::ofstream(run_ / "run.json") << "{";
  EXPECT_EQ(job.save(), run_);
  EXPECT_EQ(run_in(run_), job.id);
}

TEST_F(Output, OtherProcessesFindTheFolderOfTheirRunAlone) {
  Job job(run_);
  const auto found = [&] {
    const auto folder = find_folder_of_run(run_, job.id);
    return folder ? folder->path() : fs::path();
  };
  EXPECT_EQ(found(), run_);
  fs::remove_all(run_);
  EXPECT_EQ(found(), fs::path());
  Job other(run_);
  EXPECT_EQ(found(), fs::path());
  const fs::path beside = job.save();
  EXPECT_EQ(beside, path_beside(run_, job.id));
  EXPECT_EQ(found(), beside);
}

TEST_F(Output, IsMadeAgainWhereNobodyElseIs) {
  Job job(run_);
  fs::rename(run_, away_);
  EXPECT_EQ(job.save(), run_);
  EXPECT_EQ(saved_in(run_), job.id);
  EXPECT_FALSE(fs::exists(away_ / "saved"));
  fs::remove_all(run_);
  EXPECT_EQ(job.save(), run_);
  EXPECT_EQ(run_in(run_), job.id);
  EXPECT_NE(error_of([&] { DirectoryLock(run_, 0ms); }).find("is in use by"), std::string::npos);
  fs::remove_all(run_);
  fs::rename(away_, run_);  // its own, of before
  EXPECT_EQ(job.save(), run_);
}

TEST_F(Output, ALockThatIsRemovedIsTakenAgain) {
  Job job(run_);
  fs::remove(run_ / ".lock");
  EXPECT_EQ(job.save(), run_);
  EXPECT_NE(error_of([&] { DirectoryLock(run_, 0ms); }).find("is in use by"), std::string::npos);
}

TEST_F(Output, ThatWasRemovedAndTakenIsLeftToTheOther) {
  Job job(run_);
  fs::remove_all(run_);
  Job other(run_);
  const fs::path own = run_.string() + "." + job.id;
  EXPECT_EQ(job.save(), own);
  EXPECT_EQ(saved_in(own), job.id);
  EXPECT_EQ(run_in(own), job.id);
  EXPECT_FALSE(fs::exists(run_ / "saved"));
  EXPECT_EQ(other.save(), run_);
  EXPECT_EQ(job.save(), own);
  fs::remove_all(own);
  EXPECT_EQ(job.save(), own) << "that is the job's folder now";
  EXPECT_EQ(run_in(run_), other.id);
}

TEST_F(Output, ThatWasMovedAndTakenIsFollowed) {
  Job job(run_);
  fs::rename(run_, away_);
  {
    Job other(run_);
    EXPECT_EQ(job.save(), away_);
    fs::rename(away_, dir_ / "further");
    EXPECT_EQ(job.save(), dir_ / "further");
    EXPECT_EQ(other.save(), run_);
  }
  EXPECT_EQ(job.save(), dir_ / "further") << "the other job has ended, its run is still there";
  fs::remove_all(run_);
  EXPECT_EQ(job.save(), run_);
}

TEST_F(Output, TwoThatAreSwappedKeepTheirJobs) {
  const fs::path one = dir_ / "one", two = dir_ / "two";
  Job first(one), second(two);
  const auto swap = [&] {
    fs::rename(one, away_);
    fs::rename(two, one);
    fs::rename(away_, two);
  };
  swap();
  EXPECT_EQ(first.save(), two);
  EXPECT_EQ(second.save(), one);
  EXPECT_EQ(saved_in(two), first.id);
  EXPECT_EQ(saved_in(one), second.id);
  swap();
  EXPECT_EQ(first.save(), one);
  EXPECT_EQ(second.save(), two);
  EXPECT_EQ(names_in(dir_), (std::vector<std::string>{"one", "two"}));
}

TEST_F(Output, SwappedBetweenTheLookAndTheWriteIsStillItsOwn) {
  const fs::path one = dir_ / "one", two = dir_ / "two";
  Job first(one), second(two);
  const auto folder = first.output.folder();
  fs::rename(one, away_);
  fs::rename(two, one);
  io::replace_file(*folder, "saved", first.id, "test");
  prune(*folder, {.last = 1});
  EXPECT_EQ(saved_in(away_), first.id);
  EXPECT_FALSE(fs::exists(one / "saved"));
}

TEST_F(Output, ALockThatAnotherJobReplacedIsLeftToIt) {
  Job job(run_);
  fs::remove(run_ / ".lock");
  Job other(run_);  // in the same folder
  EXPECT_EQ(job.save(), run_.string() + "." + job.id);
  EXPECT_FALSE(fs::exists(run_ / "saved"));
  EXPECT_EQ(other.save(), run_);
}

TEST_F(Output, OfAnotherRunIsNotTakenThoughNobodyHoldsIt) {
  Job job(run_);
  fs::remove_all(run_);
  { const Job over(run_); }
  EXPECT_EQ(job.save(), run_.string() + "." + job.id);
  fs::remove_all(run_);
  Job next(run_);
  fs::remove_all(run_);
  fs::create_directories(run_ / "checkpoints");
  save(path_for(run_ / "checkpoints", 3), sample_checkpoint());  // of an older version, without run.json
  EXPECT_EQ(next.save(), run_.string() + "." + next.id);
}

TEST_F(Output, WhereThereIsNoneIsAnErrorAndTriedAgain) {
  Job job(run_);
  fs::remove_all(run_);
  std::ofstream(run_) << "a file";
  EXPECT_NE(error_of([&] { job.save(); }).find(run_.string()), std::string::npos);
  fs::remove(run_);
  EXPECT_EQ(job.save(), run_);
}

TEST(RunIdentity, IsSixteenDigitsAndNeverTheSame) {
  EXPECT_TRUE(is_run_id(new_run_id()));
  EXPECT_NE(new_run_id(), new_run_id());
  for (const char* wrong : {"", "0123456789abcde", "0123456789abcdef0", "0123456789ABCDEF", "0123456789abcde\n"})
    EXPECT_FALSE(is_run_id(wrong)) << wrong;
}

TEST(RunIdentity, StandsInTheNoteBesideTheScore) {
  const std::string id = new_run_id();
  EXPECT_EQ(run_of(note_of(id, {})), id);
  EXPECT_FALSE(score_of(note_of(id, {})));
  const std::string note = note_of(id, Score{.loss = 2.0 / 3, .metrics = {{std::string(64, 'm'), 1.0 / 3}}});
  EXPECT_LE(note.size(), io::kMaxNote);
  EXPECT_EQ(run_of(note), id);
  EXPECT_EQ(score_of(note)->loss, 2.0 / 3);
  EXPECT_EQ(run_of(note_of("", Score{})), "");
  for (const char* wrong : {"", "no JSON", "[]", "{\"run\":7}", "{\"run\":\"\\u001b[2J\"}"})
    EXPECT_EQ(run_of(wrong), "");
}

class NewestOfARun : public InDirectory {
 protected:
  void save_step(std::int64_t step, const std::string& note) {
    const Checkpoint contents = sample_checkpoint(static_cast<std::uint64_t>(step));
    save(path_for(dir_, step),
         Draft{.tensors = io::source_of(contents.tensors), .metadata = contents.metadata, .note = note});
  }
};

TEST_F(NewestOfARun, PassesOverCheckpointsOfOtherRunsAndNamesThem) {
  const std::string mine = new_run_id(), other = new_run_id();
  save_step(1, "");
  save_step(2, note_of(mine, {}));
  save_step(3, note_of(other, {}));
  save_step(4, note_of(other, {}));
  std::vector<std::pair<std::int64_t, std::string>> foreign;
  const auto note = [&](const Entry& entry, const std::string& run) { foreign.emplace_back(entry.step, run); };
  const io::Folder folder(dir_);
  EXPECT_EQ(newest_whole(folder, {.run = mine, .foreign = note})->step, 2);
  EXPECT_EQ(foreign, (std::vector<std::pair<std::int64_t, std::string>>{{4, other}, {3, other}}));
  EXPECT_EQ(newest_whole(folder, {})->step, 4);
  EXPECT_EQ(newest_whole(folder, {.run = new_run_id()})->step, 1) << "of an older version, which says nothing";
}

}  // namespace
}  // namespace lockstep::checkpoint
