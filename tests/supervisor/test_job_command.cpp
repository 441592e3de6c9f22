#include "tools/supervisor/job_command.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "lockstep/core/error.h"
#include "lockstep/launch/host_option.h"

namespace lockstep::supervisor {
namespace {

std::vector<std::string> split(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

using launch::MpirunKind;

JobCommand command(const std::string& text) {
  return JobCommand(split(text), text.find("mpirun") == text.npos ? MpirunKind::None : MpirunKind::OpenMpi);
}

JobCommand of_hydra(const std::string& text) { return JobCommand(split(text), MpirunKind::Hydra); }

TEST(JobCommand, TellsMpirunsOptionsFromTheProgramS) {
  const JobCommand job = command(
      "/usr/bin/mpirun --oversubscribe -np 4 --mca btl self,tcp -x A=1 ./train -n 7 --output out --lr=3 --host z");
  EXPECT_TRUE(job.is_mpirun());
  EXPECT_EQ(job.ranks(), 4);
  EXPECT_EQ(job.mca("btl"), "self,tcp");
  EXPECT_EQ(job.mca("pml"), std::nullopt);
  EXPECT_EQ(job.program_option("output"), "out");
  EXPECT_EQ(job.program_option("lr"), "3");
  EXPECT_EQ(job.program_option("resume"), std::nullopt);
  EXPECT_TRUE(job.hosts().hosts.empty());
}

TEST(JobCommand, OtherLaunchersStartAsTheyAre) {
  const JobCommand job = command("srun -n 4 --output=job.log ./train --output out");
  EXPECT_FALSE(job.is_mpirun());
  EXPECT_EQ(job.program_option("output"), "out");
  EXPECT_EQ(joined(job.words({})), "srun -n 4 --output=job.log ./train --output out --resume auto");
}

TEST(JobCommand, GoesOnFromTheNewestCheckpoint) {
  EXPECT_EQ(joined(command("mpirun ./train").words({.resume_auto = true})), "mpirun ./train --resume auto");
  const JobCommand from_file = command("mpirun ./train --resume a.h5 --lr 1");
  EXPECT_EQ(joined(from_file.words({})), "mpirun ./train --resume a.h5 --lr 1");
  EXPECT_EQ(joined(from_file.words({.resume_auto = true})), "mpirun ./train --resume auto --lr 1");
  EXPECT_EQ(joined(command("mpirun ./train --resume=a.h5").words({.resume_auto = true})),
            "mpirun ./train --resume=auto");
}

// As the programs read it: the command line comes before the file.
TEST(JobCommand, ReadsTheProgramSConfigFile) {
  const auto folder = std::filesystem::temp_directory_path() / ("lockstep-config-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "job.toml") << R"(# a job
output = "runs/#7 \"\u00e4\"" # its folder
global-batch = 512
lr=0.1
)";
  const std::string output = "runs/#7 \"\xc3\xa4\"";
  const std::string path = folder / "job.toml";
  for (const std::string& text : {"mpirun ./train --config " + path, "srun ./train --config=" + path,
                                  "mpirun --wdir " + folder.string() + " ./train --config job.toml"}) {
    const JobCommand job = command(text);
    EXPECT_EQ(job.program_option("output"), output) << text;
    EXPECT_EQ(job.program_option("global-batch"), "512") << text;
    EXPECT_EQ(job.program_option("shards"), std::nullopt) << text;
    EXPECT_EQ(joined(job.words({})), text + " --resume auto");
  }
  EXPECT_EQ(command("./train --output here --config " + path).program_option("output"), "here");
  EXPECT_EQ(command("mpirun --wdir /data ./train").path_of_program("runs/seven"), "/data/runs/seven");
  EXPECT_EQ(command("mpirun --wdir /data ./train").path_of_program("/runs/seven"), "/runs/seven");

  std::ofstream(folder / "job.toml") << "resume = \"first.h5\"\n";
  const std::string text = "mpirun ./train --config " + path;
  EXPECT_EQ(joined(command(text).words({})), text);
  EXPECT_EQ(joined(command(text).words({.resume_auto = true})), text + " --resume auto");

  std::ofstream(folder / "job.toml") << "output = \"here\"\n[section]\n";
  EXPECT_NE(command("./train --config " + path).config_problem().find("line 2: section"), std::string::npos);
  EXPECT_NE(command("./train --config " + folder.string()).config_problem().find("not a regular file"),
            std::string::npos);
  const JobCommand none = command("mpirun ./train --config /no/such/file");
  EXPECT_NE(none.config_problem().find("/no/such/file"), std::string::npos);
  EXPECT_EQ(joined(none.words({})), "mpirun ./train --config /no/such/file --resume auto");
  std::filesystem::remove_all(folder);
}

TEST(JobCommand, LeavesHostsOfAListOut) {
  const JobCommand job = command("mpirun -H a:2,b:2 -n 4 ./train --resume auto");
  EXPECT_EQ(launch::to_host_list(job.hosts()), "a:2,b:2");
  EXPECT_EQ(joined(job.words({.lost = {"b"}, .ranks = 2})), "mpirun -H a:2 -n 2 ./train --resume auto");
}

TEST(JobCommand, LeavesHostsOfAFileOut) {
  const auto folder = std::filesystem::temp_directory_path() / ("lockstep-hosts-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "hosts") << "a slots=2\nb slots=4\n";
  const JobCommand job = command("mpirun --hostfile " + (folder / "hosts").string() + " ./train --resume auto");
  const std::string shorter = folder / "shorter";
  EXPECT_EQ(joined(job.words({.lost = {"a"}, .hostfile = shorter})),
            "mpirun --hostfile " + shorter + " ./train --resume auto");
  std::ifstream file(shorter);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "b slots=4\n");
  std::filesystem::remove_all(folder);
}

TEST(JobCommand, LooksForAProgramThatIsNamedByAPathHere) {
  const auto code = [](const std::string& text) {
    const auto obstacle = command(text).obstacle();
    return obstacle ? obstacle->code : 0;
  };
  EXPECT_EQ(code("mpirun -n 2 /no/such/train --output o"), 127);
  EXPECT_EQ(code("mpirun -n 2 -H localhost:2 /no/such/train"), 127);
  EXPECT_EQ(code("/no/such/train"), 127);
  EXPECT_EQ(code("mpirun /etc/passwd"), 126);
  EXPECT_EQ(code("mpirun /usr"), 126);
  for (const char* fine : {"mpirun /bin/true", "mpirun train", "mpirun -H elsewhere /no/such/train", "srun train",
                           "mpirun --wdir /usr bin/none"})
    EXPECT_EQ(code(fine), 0) << fine;
}

TEST(JobCommand, ReadsHydrasOptions) {
  const JobCommand job =
      of_hydra("mpiexec -genv A 1 -np 4 -hosts a:2,b:2 -bind-to none -prepend-rank ./train -n 7 --output out");
  EXPECT_EQ(job.ranks(), 4);
  EXPECT_EQ(launch::to_host_list(job.hosts()), "a:2,b:2");
  EXPECT_EQ(job.program_option("output"), "out");
  EXPECT_EQ(job.agent(), std::vector<std::string>{"ssh"});
  EXPECT_EQ(joined(job.words({.lost = {"b"}, .ranks = 2})),
            "mpiexec -genv A 1 -np 2 -hosts a:2 -bind-to none -prepend-rank ./train -n 7 --output out --resume auto");
  const JobCommand other = of_hydra("mpirun -launcher rsh -launcher-exec /opt/agent -n 2 ./train");
  EXPECT_TRUE(other.starts_by_ssh());
  EXPECT_EQ(other.agent(), std::vector<std::string>{"/opt/agent"});
  EXPECT_FALSE(of_hydra("mpirun -launcher fork -n 2 ./train").starts_by_ssh());
  for (const char* wrong : {"mpirun -configfile job", "mpirun -n four ./train", "mpirun -f /no/such/file ./train",
                            "mpirun -hosts a -host b ./train", "mpirun -genv A ./train"})
    EXPECT_THROW(of_hydra(wrong), Error) << wrong;
}

TEST(JobCommand, LeavesHostsOfHydrasFileOut) {
  const auto folder = std::filesystem::temp_directory_path() / ("lockstep-machines-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / "hosts") << "# two\na:2 user=me\nb:4\n";
  const JobCommand job = of_hydra("mpirun -f " + (folder / "hosts").string() + " ./train --resume auto");
  EXPECT_EQ(launch::to_host_list(job.hosts()), "me@a:2,b:4");
  const std::string shorter = folder / "shorter";
  EXPECT_EQ(joined(job.words({.lost = {"me@a"}, .hostfile = shorter})),
            "mpirun -f " + shorter + " ./train --resume auto");
  std::ifstream file(shorter);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "# two\nb:4\n");
  std::filesystem::remove_all(folder);
}

TEST(JobCommand, RefusesWhatItCannotSupervise) {
  for (const char* wrong :
       {"", "mpirun", "mpirun -n 4", "mpirun -n", "mpirun -n four ./train", "mpirun -n 2 ./a : -n 2 ./b",
        "mpirun --app file", "mpirun -rf ranks ./train", "mpirun --hostfile /no/such/file ./train",
        "mpirun --hostfile /tmp ./train", "mpirun -H a -H b ./train", "mpirun -H a --hostfile /dev/null ./train"}) {
    EXPECT_THROW(command(wrong), Error) << wrong;
  }
}

}  // namespace
}  // namespace lockstep::supervisor
