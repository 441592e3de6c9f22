#include "tools/doctor/subject.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/host/build_id.h"
#include "lockstep/host/network.h"
#include "lockstep/host/threads.h"
#include "lockstep/launch/mpirun_words.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::uintmax_t kSampled = 1 << 20;  // bytes of a file that are read: at its begin, middle and end
constexpr std::size_t kMostRead = 2000;       // files of which bytes are read: of more files, every n-th by name
constexpr std::size_t kMostLines = 10000;     // that travel to the other hosts: of more files, a line for each folder

std::string absolute_path(const std::string& path) { return path.empty() ? "" : fs::absolute(path).lexically_normal(); }

// All of a file, or parts of a long one.
std::string hash_of(const fs::path& file, std::uintmax_t size, std::uintmax_t sampled) {
  std::ifstream stream(file, std::ios::binary);
  if (!stream) return "cannot be read";
  const std::uintmax_t block = std::min(size, std::max<std::uintmax_t>(1, sampled / 3));
  std::vector<std::uintmax_t> starts;
  if (size <= sampled) {
    for (std::uintmax_t at = 0; at < size; at += block) starts.push_back(at);
  } else {
    starts = {0, (size - block) / 2, size - block};
  }
  std::uint64_t hash = size;
  std::vector<char> bytes(block);
  for (const std::uintmax_t at : starts) {
    stream.seekg(static_cast<std::streamoff>(at));
    stream.read(bytes.data(), static_cast<std::streamsize>(std::min(block, size - at)));
    hash = XXH3_64bits_withSeed(bytes.data(), static_cast<std::size_t>(stream.gcount()), hash);
    stream.clear();
  }
  return formatted("{:016x}", hash);
}

struct FileLine {
  std::string folder, text;
};

// The texts, or, of very many, the number of each folder's and a hash of them. `lines` are in the order of names, in
// which a folder may come in several pieces.
std::vector<std::string> texts_of(const std::vector<FileLine>& lines) {
  std::vector<std::string> texts;
  if (lines.size() <= kMostLines) {
    for (const FileLine& line : lines) texts.push_back(line.text);
    return texts;
  }
  struct Sum {
    std::size_t files = 0;
    std::uint64_t hash = 0;
  };
  std::map<std::string, Sum> folders;
  for (const FileLine& line : lines) {
    Sum& sum = folders[line.folder];
    ++sum.files;
    sum.hash = XXH3_64bits_withSeed(line.text.data(), line.text.size(), sum.hash);
  }
  for (const auto& [folder, sum] : folders)
    texts.push_back(formatted("{}/: {} files, {:016x}", folder, sum.files, sum.hash));
  return texts;
}

preflight::NamedFiles named_files(const std::string& program, const std::string& data) {
  preflight::NamedFiles files{.named = !program.empty() || !data.empty()};
  std::error_code error;
  if (!program.empty() && !fs::is_regular_file(program, error)) {
    files.missing.push_back(formatted("no program '{}'", program));
  } else if (!program.empty() && access(program.c_str(), X_OK) != 0) {
    files.unfit.push_back(formatted("'{}' is not executable; chmod +x", program));
  }
  if (!data.empty() && !fs::is_directory(data, error))
    files.missing.push_back(formatted("no folder '{}' of a data set", data));
  return files;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// What the user's words for mpirun, else the environment, give to a parameter of Open MPI.
std::string parameter(const DoctorOptions& options, const std::string& name) {
  const std::vector<std::string> words = launch::split_words(options.mpi_args, "--mpi-args");
  const auto at = std::ranges::find(words, name);
  return at != words.end() && at + 1 != words.end() ? *(at + 1) : environment(("OMPI_MCA_" + name).c_str());
}

}  // namespace

std::string file_contents(const fs::path& file) {
  std::error_code error;
  const std::uintmax_t size = fs::file_size(file, error);
  if (error) return formatted("{}: {}", file.string(), error.message());
  return formatted("{}: {} bytes, {}", file.string(), size, hash_of(file, size, size));
}

std::string folder_contents(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return formatted("{}: no such folder", folder.string());
  std::vector<fs::path> files;
  for (auto at = fs::recursive_directory_iterator(folder, error); !error && at != fs::end(at); at.increment(error)) {
    std::error_code unreadable;
    if (at->is_regular_file(unreadable)) files.push_back(at->path());
  }
  std::ranges::sort(files);
  const std::size_t step = files.size() / kMostRead + 1;
  std::vector<FileLine> lines;
  for (std::size_t i = 0; i < files.size(); ++i) {
    std::error_code unreadable;
    const fs::path name = files[i].lexically_relative(folder);
    const std::uintmax_t size = fs::file_size(files[i], unreadable);
    std::string text = unreadable ? formatted("{}: {}", name.string(), unreadable.message())
                                  : formatted("{} {} bytes", name.string(), size);
    if (!unreadable && i % step == 0) text.append(" ").append(hash_of(files[i], size, kSampled));
    lines.push_back({name.parent_path().string(), std::move(text)});
  }
  if (error) lines.push_back({"", error.message()});
  return formatted("{} files\n{}", files.size(), joined(texts_of(lines), "\n"));
}

json subject_settings(const DoctorOptions& options) {
  return {{"interface", options.interface.empty() ? parameter(options, "btl_tcp_if_include") : options.interface},
          {"exclude", parameter(options, "btl_tcp_if_exclude")},
          {"ports", options.ports},
          {"threads", options.threads},
          {"program", absolute_path(options.program)},
          {"data_dir", absolute_path(options.data_dir)},
          {"output", absolute_path(options.output)},
          {"cheap", options.cheap}};
}

preflight::Subject subject_here(const json& settings, int local_ranks) {
  const int threads = settings.at("threads");
  preflight::Subject subject{.local_ranks = local_ranks, .host = host::host_name()};
  subject.threads = host::budget(local_ranks, threads, -1).compute;
  subject.same.build = host::build_id();
  const std::string program = settings.at("program"), data = settings.at("data_dir");
  if (!program.empty()) subject.same.build += "\n" + file_contents(program);
  if (!data.empty()) subject.same.data = folder_contents(data);
  subject.files = named_files(program, data);
  subject.output = settings.at("output").get<std::string>();
  subject.network.interface = settings.at("interface").get<std::string>();
  if (subject.network.interface.empty()) subject.network.interface = environment("LOCKSTEP_INTERFACE");
  if (subject.network.interface.empty()) subject.network.interface = environment("OMPI_MCA_btl_tcp_if_include");
  subject.network.exclude = settings.at("exclude").get<std::string>();
  subject.network.ports = parse_ports(settings.at("ports"));
  return subject;
}

}  // namespace lockstep::tools
