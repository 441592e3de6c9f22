// The words of a command of Open MPI's mpirun, which `lockstep hosts`, `lockstep launch` and `lockstep doctor` put
// together. What the user's own words for mpirun set already is not set again, and what the environment sets is set to
// that. Parameters have their names in Open MPI 4, which mpirun of 5 knows on its command line, and not in the
// environment; those that the user sets may have the names of 5. Pure. One thread.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/launch/ports.h"

namespace lockstep::launch {

// Reads an environment variable.
using ReadVariable = std::function<std::optional<std::string>(const std::string&)>;

// The name in Open MPI 5 of a parameter that mpirun or its daemons read, by its name in 4.
std::string name_in_5(const std::string& parameter);
// The value that the environment gives it, for either version.
std::optional<std::string> parameter_in_environment(const std::string& parameter, const ReadVariable& variable);

class MpirunWords {
 public:
  // `own`: the user's words for mpirun. Without `variable` the command is for an environment that is not known.
  explicit MpirunWords(std::vector<std::string> own = {}, ReadVariable variable = {});

  void add(std::initializer_list<std::string> words);

  void add_parameter(const std::string& name, const std::string& value);
  // Neighbours in rank are neighbours on a host.
  void add_mapping();
  // Programs share the cores of a host out by themselves, where Open MPI would bind each of two ranks to one core.
  void add_no_binding();
  // `layer` is oob_tcp (daemons) or btl_tcp (ranks). What the user includes or excludes there is taken instead.
  void add_network(const std::string& layer, const std::string& network);
  void add_ports(const PortPlan& plan);
  // Put behind the arguments that the user has for ssh, as mpirun takes them once.
  void add_ssh_arguments(const std::string& arguments);

  // The command; the user's words stand before the program.
  std::vector<std::string> with(const std::vector<std::string>& program) const;

 private:
  // Whether the user's words set this MCA parameter; `option` is the option of mpirun that sets it too, "--bind-to".
  bool in_own_words(const std::string& parameter, const std::string& option = "") const;
  std::optional<std::string> in_environment(const std::string& parameter) const;
  void add_option(const std::string& option, const std::string& parameter, const std::string& value);

  std::vector<std::string> words_{"mpirun"};
  std::vector<std::string> own_;
  ReadVariable variable_;
};

// Parameters by which mpirun notices a host that has gone silent: a probe each second after 5 s of silence, the sixth
// without an answer ends the job. Open MPI's defaults take minutes, or never notice.
std::vector<std::pair<std::string, std::string>> keepalive_parameters();

// "--mca a b --tag 'x y'" as a shell would split it, without its expansions. Throws Error for an open quote; `option`
// is the name that it gives.
std::vector<std::string> split_words(const std::string& text, const std::string& option);

}  // namespace lockstep::launch
