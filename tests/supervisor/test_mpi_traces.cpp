// Files with the names of Open MPI's, of jobs whose numbers are this process's own.
#include "tools/supervisor/mpi_traces.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "lockstep/host/network.h"
#include "tools/supervisor/prober.h"
#include "tools/supervisor/proc_file.h"
#include "tools/supervisor/process.h"

namespace lockstep::supervisor {
namespace {

namespace fs = std::filesystem;

class Traces : public testing::Test {
 protected:
  void TearDown() override {
    for (const fs::path& file : made_) fs::remove_all(file);
  }
  fs::path segment(const std::string& name) {
    const fs::path file = fs::path("/dev/shm") / name;
    std::ofstream(file) << "segment";
    made_.push_back(file);
    return file;
  }
  const std::uint32_t number_ = 0x50000001U + (static_cast<std::uint32_t>(getpid()) << 4U);
  const std::string job_ = fmt::format("{:x}", number_), other_ = fmt::format("{:x}", number_ ^ 0x20000000U);
  std::vector<fs::path> made_;
};

// As one of a process that ends between open() and read().
TEST(ProcFile, OneThatCannotBeReadIsEmpty) {
  EXPECT_EQ(proc_file("/proc/self/mem"), "");
  EXPECT_EQ(proc_file("/proc/none/stat"), "");
  EXPECT_NE(proc_file("/proc/self/stat"), "");
}

// A file that is mapped here, as by a job with the same number that lives.
class Mapped {
 public:
  explicit Mapped(const fs::path& file) {
    const int descriptor = open(file.c_str(), O_RDONLY);
    memory_ = mmap(nullptr, 1, PROT_READ, MAP_SHARED, descriptor, 0);
    close(descriptor);
    EXPECT_NE(memory_, MAP_FAILED);
  }
  ~Mapped() { munmap(memory_, 1); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

 private:
  void* memory_;
};

TEST_F(Traces, OfTheOwnJobAloneAreRemoved) {
  const fs::path top = fs::path(testing::TempDir()) / fmt::format("ompi.traces.{}", getpid());
  made_.push_back(top);
  const fs::path session = top / "pid.4194999", living = top / fmt::format("pid.{}", getpid());  // more than pids reach
  fs::create_directories(session / "0" / "1");
  fs::create_directories(living);
  const fs::path mine = segment("vader_segment.here.0." + job_ + ".1"),
                 window = segment("osc_sm.here." + job_ + ".3.0");
  const fs::path used = segment("vader_segment.here.0." + job_ + ".2"),
                 others = segment("vader_segment.here.0." + other_ + ".1");
  const fs::path foreign = segment("something.else." + job_ + ".1");
  const Mapped mapped(used);
  MpiTraces traces;
  for (const fs::path& folder : {session, living}) {
    const Process rank({"sleep", "1000"}, {.variables = {{"PMIX_NAMESPACE", std::to_string(number_)},
                                                         {"OMPI_MCA_orte_jobfam_session_dir", folder.string()}}});
    const auto name = [&] { return fs::read_symlink(fmt::format("/proc/{}/exe", rank.pid())).filename(); };
    for (int i = 0; i < 3000 && name() != "sleep"; ++i) usleep(10000);
    traces.look();
  }
  EXPECT_EQ(traces.jobs(), std::set<std::string>{job_});
  EXPECT_EQ(traces.remove(), 3u);
  for (const fs::path& gone : {mine, window, session}) EXPECT_FALSE(fs::exists(gone)) << gone;
  for (const fs::path& kept : {used, others, foreign, living}) EXPECT_TRUE(fs::exists(kept)) << kept;
  EXPECT_EQ(traces.remove(), 0u);
}

// Its segments carry numbers that only their names say, its folders the numbers of the processes that made them.
TEST_F(Traces, OfOpenMpi5AreRemoved) {
  const fs::path top = fs::path(testing::TempDir()) / fmt::format("traces.{}", getpid());
  made_.push_back(top);
  const auto named = [&](const std::string& host, int process, uid_t user) {
    return top / fmt::format("prted.{}.{}.{}", host, process, user);
  };
  const std::string here = host::host_name();
  const fs::path session = named(here, 4194999, geteuid()), file = session / "1" / "gds";
  const std::vector<fs::path> foreign{named(here, getpid(), geteuid()), named("x" + here, 4194999, geteuid()),
                                      named(here, 4194999, geteuid() + 1), top / "prterun.v2"};
  for (const fs::path& folder : foreign) fs::create_directories(folder);
  fs::create_directories(file.parent_path());
  std::ofstream(file) << "mapped";
  const fs::path mine = segment("sm_segment.here.at.home.0." + job_ + ".1"),
                 others = segment("sm_segment.here.at.home.0." + other_ + ".1");
  MpiTraces traces;
  std::vector<fs::path> told = foreign;
  told.push_back(session);
  for (const fs::path& folder : told) {
    const Process rank({"/usr/bin/python3", "-c",
                        "import mmap, sys, time\n"
                        "files = [open(f, 'r+b') for f in sys.argv[1:]]\n"
                        "kept = [mmap.mmap(f.fileno(), 1) for f in files]\n"
                        "open(sys.argv[1] + '.mapped', 'w').close()\ntime.sleep(1000)",
                        file.string(), mine.string()},
                       {.variables = {{"PMIX_NAMESPACE", fmt::format("prterun-here-{}@1", getpid())},
                                      {"PMIX_SERVER_TMPDIR", folder.string()}}});
    const fs::path mapped = file.string() + ".mapped";
    for (int i = 0; i < 3000 && !fs::exists(mapped); ++i) usleep(10000);
    fs::remove(mapped);
    traces.look();
  }
  EXPECT_EQ(traces.jobs(), (std::set<std::string>{job_, fmt::format("prterun-here-{}", getpid())}));
  EXPECT_EQ(traces.remove(), 2u);
  for (const fs::path& gone : {mine, session}) EXPECT_FALSE(fs::exists(gone)) << gone;
  EXPECT_TRUE(fs::exists(others));
  for (const fs::path& kept : foreign) EXPECT_TRUE(fs::exists(kept)) << kept;
}

// An mpirun that was killed before it had started any rank.
TEST_F(Traces, OfALauncherWithoutRanksAreRemoved) {
  const fs::path top = fs::temp_directory_path() / fmt::format("ompi.traces-{}.0", getpid());
  made_.push_back(top);
  MpiTraces traces;
  fs::path session, of_5;
  {
    const Process launcher({"sleep", "1000"});
    traces.look();
    session = top / fmt::format("pid.{}", launcher.pid());
    of_5 = fs::temp_directory_path() / fmt::format("prterun.{}.{}.{}", host::host_name(), launcher.pid(), geteuid());
    made_.push_back(of_5);
    fs::create_directories(session);
    fs::create_directories(of_5);
    EXPECT_EQ(traces.remove(), 0u) << "it lives";
    EXPECT_TRUE(fs::exists(session));
    traces.look();
  }
  EXPECT_EQ(traces.remove(), 2u);
  EXPECT_FALSE(fs::exists(session));
  EXPECT_FALSE(fs::exists(of_5));
}

TEST_F(Traces, AreRemovedOnOtherHostsToo) {
  const fs::path mine = segment("vader_segment.there.0." + job_ + ".1"),
                 window = segment("osc_sm.there." + job_ + ".3.0");
  const fs::path used = segment("vader_segment.there.0." + job_ + ".2"),
                 others = segment("vader_segment.there.0." + other_ + ".1");
  const fs::path of_5 = segment("sm_segment.there.0." + job_ + ".1");
  const std::string name = fmt::format("prterun-there-{}", getpid());
  const auto folder = [&](const std::string& process, const std::string& of) {
    made_.push_back(fs::temp_directory_path() / fmt::format("prted.there.{}.0", process));
    fs::create_directories(made_.back() / "1");
    std::ofstream(made_.back() / "1" / fmt::format("pmix-gds.there-{}@1.jobdata", of)) << "data";
    return made_.back();
  };
  const fs::path left = folder(fmt::format("{}.4194999", getpid()), name),
                 living = folder(fmt::format("x.{}", getpid()), name),
                 of_another = folder(fmt::format("{}.4194998", getpid()), name + "0");
  const Mapped mapped(used);
  const ProbeOptions options{.agent = {"sh", "-c", "shift 0; exec sh -c \"$*\""},
                             .job = "none",
                             .traces = {job_, name},
                             .limit = std::chrono::seconds(60),
                             .here = "another machine"};
  EXPECT_EQ(Prober(options, {"a"}).results()[0].reason, "");
  for (const fs::path& gone : {mine, window, of_5, left}) EXPECT_FALSE(fs::exists(gone)) << gone;
  for (const fs::path& kept : {used, others, living, of_another}) EXPECT_TRUE(fs::exists(kept)) << kept;
}

}  // namespace
}  // namespace lockstep::supervisor
