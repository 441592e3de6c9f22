// The command under `lockstep run`: which launcher it calls, which of its words are mpirun's and which the program's,
// and the same command for another start. Throws Error, with the reason, for a command that cannot be supervised.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/launch/host_list.h"
#include "lockstep/launch/mpirun_kind.h"

namespace lockstep::supervisor {

struct LauncherOption;

class JobCommand {
 public:
  // `kind`: whose launcher the first word is (launch::mpirun_kind()).
  JobCommand(std::vector<std::string> words, launch::MpirunKind kind);

  // mpirun (mpiexec, orterun) of Open MPI or MPICH; anything else, as srun, is started as it is.
  bool is_mpirun() const { return kind_ != launch::MpirunKind::None; }
  launch::MpirunKind kind() const { return kind_; }

  // The value of the program's option `--name`, as the program reads it: the command line's last one (srun has options
  // of the same names), else that of its --config file, which was read when the command was made.
  std::optional<std::string> program_option(std::string_view name) const;
  // Why the --config file could not be read; empty: there is none, or it was.
  const std::string& config_problem() const { return config_problem_; }
  // `path` as the program means it: mpirun's --wdir may start it elsewhere.
  std::string path_of_program(const std::string& path) const;
  // mpirun's -n; Open MPI's `--mca name`, with OMPI_MCA_name in the environment after it.
  std::optional<std::int64_t> ranks() const { return ranks_; }
  std::optional<std::string> mca(std::string_view name) const;

  // Whether mpirun reaches other hosts by ssh or what was put in its place; inside a Slurm job it does not unless told
  // so.
  bool starts_by_ssh() const;
  // The words that stand before the name of such a host.
  std::vector<std::string> agent() const;

  // Hosts of --hostfile or --host, read when the command was made; none: this machine, or the scheduler's choice.
  const launch::HostList& hosts() const { return hosts_; }

  // Why no start can succeed: the program, if it is named by a path and runs on this machine alone, is not there (127)
  // or cannot be executed (126), as a shell counts it.
  struct Obstacle {
    int code;
    std::string text;
  };
  std::optional<Obstacle> obstacle() const;

  struct Change {
    bool resume_auto = false;         // go on from the newest checkpoint, whatever --resume said
    std::vector<std::string> lost{};  // hosts to leave out, as Host::login() names them
    std::string hostfile{};           // where a shorter hostfile is written
    std::optional<std::int64_t> ranks{};
  };
  // The words for a start. Without any change they are those given.
  std::vector<std::string> words(const Change& change) const;

 private:
  void read_launcher_options();
  void take_option(const LauncherOption& option, std::size_t at);
  void read_hosts();
  void read_config();
  std::optional<std::string> command_line_option(std::string_view name) const;
  std::optional<std::string> setting(std::string_view name) const;

  // Indices of words.
  struct Places {
    std::size_t program = 0;                             // the first word that is not mpirun's
    std::size_t ranks = 0, hostfile = 0, host_list = 0;  // values of options of mpirun; 0: not there
  };

  std::vector<std::string> words_;
  launch::MpirunKind kind_;
  bool elsewhere_ = false;  // elsewhere: in a folder of mpirun's --wdir
  Places at_;
  std::optional<std::int64_t> ranks_;
  std::vector<std::pair<std::string, std::string>> settings_;  // of mpirun
  std::string folder_;                                         // of --wdir
  std::map<std::string, std::string> config_;                  // values of the --config file
  std::string config_problem_;
  std::string hostfile_text_;
  launch::HostList hosts_;
};

}  // namespace lockstep::supervisor
