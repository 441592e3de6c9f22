#include "lockstep/data/file_pattern.h"

#include <glob.h>

#include <algorithm>
#include <memory>
#include <set>

#include "lockstep/core/error.h"

namespace lockstep::data {
namespace {

std::vector<std::filesystem::path> files_of(const std::filesystem::path& pattern) {
  std::error_code error;
  if (std::filesystem::exists(pattern, error)) return {pattern};
  glob_t found{};
  const std::unique_ptr<glob_t, void (*)(glob_t*)> owner(&found, globfree);
  // GLOB_NOSORT: glob() sorts by the language's rules, which differ between machines.
  const int code = glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  check(code == 0 || code == GLOB_NOMATCH, "files", "{}: cannot be searched (glob's error {})", pattern.string(), code);
  std::vector<std::filesystem::path> files(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::ranges::sort(files, {}, [](const std::filesystem::path& path) { return path.native(); });
  return files;
}

}  // namespace

std::vector<std::filesystem::path> expand_files(const std::vector<std::string>& patterns,
                                                const std::filesystem::path& dir) {
  check(!patterns.empty(), "files", "there are no names of files, expected at least one, such as run*.h5");
  std::vector<std::filesystem::path> files;
  std::set<std::filesystem::path> seen;
  for (const std::string& pattern : patterns) {
    check(!pattern.empty(), "files", "a name of a file is empty");
    const std::filesystem::path whole = dir / pattern;  // a pattern from / on replaces `dir`
    const std::vector<std::filesystem::path> found = files_of(whole);
    check(!found.empty(), "files", "{}: there is no such file", whole.string());
    for (const std::filesystem::path& file : found) {
      check(!std::filesystem::is_directory(file), "files", "{}: is a folder, expected a file", file.string());
      check(seen.insert(file.lexically_normal()).second, "files", "{}: is given twice", file.string());
      files.push_back(file);
    }
  }
  return files;
}

}  // namespace lockstep::data
