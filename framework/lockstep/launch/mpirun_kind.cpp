#include "lockstep/launch/mpirun_kind.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <system_error>

namespace lockstep::launch {
namespace {

bool is_mpirun(std::string_view name) { return name == "mpirun" || name == "mpiexec"; }

MpirunKind kind_of_name(std::string_view name) {
  constexpr std::array<std::string_view, 4> open_mpi{"orterun", "prterun", "mpirun.openmpi", "mpiexec.openmpi"};
  constexpr std::array<std::string_view, 4> hydra{"mpirun.mpich", "mpiexec.mpich", "mpiexec.hydra", "mpirun.hydra"};
  if (std::ranges::find(open_mpi, name) != open_mpi.end()) return MpirunKind::OpenMpi;
  return std::ranges::find(hydra, name) != hydra.end() ? MpirunKind::Hydra : MpirunKind::None;
}

}  // namespace

bool is_open_mpi(std::string_view library) { return library.find("Open MPI") != library.npos; }

MpirunKind mpirun_kind(std::string_view word, std::string_view library) {
  const std::string_view name = word.substr(word.rfind('/') + 1);
  if (!is_mpirun(name)) return kind_of_name(name);
  std::error_code none;  // a command that is not there is for its start to complain about
  const MpirunKind found = kind_of_name(std::filesystem::canonical(find_program(word), none).filename().string());
  if (found != MpirunKind::None) return found;
  return is_open_mpi(library) ? MpirunKind::OpenMpi : MpirunKind::Hydra;
}

std::filesystem::path find_program(std::string_view word) {
  if (word.find('/') != word.npos) return word;
  const char* variable = std::getenv("PATH");
  const std::string path = variable == nullptr ? "" : variable;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    auto found = std::filesystem::path(path.substr(at, end - at)) / word;
    std::error_code error;
    if (std::filesystem::is_regular_file(found, error) && ::access(found.c_str(), X_OK) == 0) return found;
    at = end + 1;
  }
  return {};
}

}  // namespace lockstep::launch
