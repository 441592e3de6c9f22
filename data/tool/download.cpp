#include "data/tool/download.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <vector>

#include "data/tool/checksum.h"
#include "lockstep/core/error.h"

extern char** environ;  // NOLINT: POSIX has it in no header

namespace lockstep::datasets {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

bool is_url(const std::string& text) { return text.find("://") != text.npos; }

// PATH.part, locked, because two processes that write to it would damage it.
class Part {
 public:
  explicit Part(std::filesystem::path path) : path_(std::move(path)) {
    descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    check(descriptor_ >= 0, path_.string(), "cannot be opened for writing: {}", reason(errno));
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const int code = errno;
      close(descriptor_);
      check(code != EWOULDBLOCK, path_.string(), "another process is fetching this file");
      fail(path_.string(), "cannot be locked: {}", reason(code));
    }
  }
  ~Part() { close(descriptor_); }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const {
    struct stat status {};
    check(fstat(descriptor_, &status) == 0, path_.string(), "size unknown: {}", reason(errno));
    return status.st_size;
  }
  void empty() const { check(ftruncate(descriptor_, 0) == 0, path_.string(), "cannot be emptied: {}", reason(errno)); }
  // Flushed, under its final name.
  void rename_to(const std::filesystem::path& to) const {
    check(fsync(descriptor_) == 0, path_.string(), "cannot be written to the disk: {}", reason(errno));
    std::filesystem::rename(path_, to);
    const int folder = open(to.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return;
    fsync(folder);  // not every file system supports this; the file itself is on the disk
    close(folder);
  }

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Runs curl, which writes to `part` and reports errors on stderr, and returns its exit status.
int run_curl(const std::string& url, const Part& part, bool resume) {
  std::vector<std::string> words{"curl",
                                 "--fail",
                                 "--location",
                                 "--globoff",
                                 "--show-error",
                                 isatty(STDERR_FILENO) == 1 ? "--progress-bar" : "--silent",
                                 "--proto",
                                 "=http,https,file",
                                 "--proto-redir",
                                 "=http,https",
                                 "--connect-timeout",
                                 "30",
                                 "--speed-limit",
                                 "1",
                                 "--speed-time",
                                 "60",
                                 "--retry",
                                 "2",
                                 "--output",
                                 part.path().string()};
  if (resume) words.insert(words.end(), {"--continue-at", "-"});
  words.insert(words.end(), {"--url", url});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int code = posix_spawnp(&child, "curl", nullptr, nullptr, arguments.data(), environ);
  check(code == 0, "fetch", "the program curl cannot be started: {}", reason(code));
  int status = 0;
  while (waitpid(child, &status, 0) < 0) check(errno == EINTR, "fetch", "curl is lost: {}", reason(errno));
  check(WIFEXITED(status), "fetch", "{}: curl was ended by signal {}", url, WTERMSIG(status));
  return WEXITSTATUS(status);
}

// Exit codes of curl: byte ranges are not supported, a range was refused (HTTP 416 and others), a resume failed.
bool cannot_resume(int status) { return status == 33 || status == 22 || status == 36; }

void fill(const std::string& from, const Part& part, bool resume) {
  if (!is_url(from)) {
    part.empty();
    std::error_code error;
    std::filesystem::copy_file(from, part.path(), std::filesystem::copy_options::overwrite_existing, error);
    check(!error, from, "cannot be copied to {}: {}", part.path().string(), error.message());
    return;
  }
  int status = run_curl(from, part, resume);
  if (resume && cannot_resume(status)) {
    part.empty();
    status = run_curl(from, part, false);
  }
  check(status == 0, "fetch",
        "{}: curl ended with status {}; the bytes that arrived stay in {}, and the next fetch continues from there",
        from, status, part.path().string());
}

}  // namespace

std::string difference(const std::filesystem::path& path, const RemoteFile& expected) {
  const bool packed = expected.of == RemoteFile::Checksum::Content;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  if (expected.bytes > 0 && bytes != expected.bytes) return formatted("{} bytes, expected {}", bytes, expected.bytes);
  std::string sum;
  try {
    sum = packed ? sha256_of_content(path) : sha256_of_file(path);
  } catch (const Error& error) {
    return error.what();
  }
  if (sum == expected.sha256) return "";
  return formatted("sha256 {}{}, expected {}", sum, packed ? " of the inflated bytes" : "", expected.sha256);
}

void download(const std::string& from, const RemoteFile& expected, const std::filesystem::path& to) {
  const Part part(std::filesystem::path(to) += ".part");
  if (expected.bytes > 0 && part.bytes() > expected.bytes) part.empty();
  const bool whole = expected.bytes > 0 && part.bytes() == expected.bytes;  // it is complete and only lacks its name
  const bool resume = part.bytes() > 0;
  if (!whole) fill(from, part, resume);
  std::string wrong = difference(part.path(), expected);
  if (!wrong.empty() && resume) {  // the first part was not of this file
    part.empty();
    fill(from, part, false);
    wrong = difference(part.path(), expected);
  }
  if (!wrong.empty()) {
    part.empty();
    std::filesystem::remove(part.path());
    fail("fetch", "{}: not the expected file: {}", from, wrong);
  }
  part.rename_to(to);
}

}  // namespace lockstep::datasets
