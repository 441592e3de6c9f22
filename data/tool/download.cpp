#include "data/tool/download.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <system_error>
#include <vector>

#include "data/tool/checksum.h"
#include "data/tool/part_file.h"
#include "lockstep/core/error.h"

extern char** environ;  // NOLINT: POSIX has it in no header

namespace lockstep::datasets {
namespace {

std::string reason(int code) { return std::generic_category().message(code); }

bool is_url(const std::string& text) { return text.find("://") != text.npos; }

// PATH.part, locked, because two processes that write to it would damage it. The destructor removes it if it is empty.
class Part {
 public:
  explicit Part(std::filesystem::path path) : path_(std::move(path)) {
    do {
      file_ = open_part(path_, O_RDWR);
      const bool locked = flock(file_.get(), LOCK_EX | LOCK_NB) == 0;
      check(locked || errno != EWOULDBLOCK, path_.string(), "another process is fetching this file");
      check_call(locked, path_.string(), "cannot be locked");
    } while (!is_at_path());  // another process has removed it since it was opened
  }
  ~Part() {
    if (struct stat status{}; !renamed_ && fstat(file_.get(), &status) == 0 && status.st_size == 0)
      unlink(path_.c_str());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::int64_t bytes() const {
    struct stat status {};
    const int code = fstat(file_.get(), &status);
    check_call(code == 0, path_.string(), "size unknown");
    return status.st_size;
  }
  void empty() const {
    const bool done = ftruncate(file_.get(), 0) == 0 && lseek(file_.get(), 0, SEEK_SET) == 0;
    check_call(done, path_.string(), "cannot be emptied");
  }
  void append(std::span<const std::uint8_t> bytes) const { write_all(file_, bytes, path_); }
  // Flushed, under its final name.
  void rename_to(const std::filesystem::path& to) {
    const int code = fsync(file_.get());
    check_call(code == 0, path_.string(), "cannot be written to the disk");
    std::filesystem::rename(path_, to);
    renamed_ = true;
    const io::FileDescriptor folder(open(to.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder.open()) fsync(folder.get());  // not every file system supports this; the file itself is on the disk
  }

 private:
  bool is_at_path() const {
    struct stat mine {
    }, there{};
    return fstat(file_.get(), &mine) == 0 && lstat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino &&
           mine.st_dev == there.st_dev;
  }

  std::filesystem::path path_;
  io::FileDescriptor file_;
  bool renamed_ = false;
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

// Copies a local file. The copy tells the system's own reason where it fails, such as a full disk.
void copy(const std::string& from, const Part& part) {
  const io::FileDescriptor file(open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const std::string action = formatted("cannot be copied to {}", part.path().string());
  check_call(file.open(), from, "{}", action);
  struct stat status {};
  check(fstat(file.get(), &status) == 0 && S_ISREG(status.st_mode), from, "{}: it is not a regular file", action);
  std::vector<std::uint8_t> buffer(1 << 20);
  while (true) {
    const ssize_t got = read(file.get(), buffer.data(), buffer.size());
    check_call(got >= 0 || errno == EINTR, from, "{}", action);
    if (got == 0) break;
    part.append(std::span<const std::uint8_t>(buffer).first(static_cast<std::size_t>(got < 0 ? 0 : got)));
  }
}

// Returns what follows from a failure of curl for the user.
std::string consequence(int status, const Part& part) {
  constexpr int kWriteError = 23;
  std::error_code unknown;
  const std::filesystem::space_info disk = std::filesystem::space(part.path().parent_path(), unknown);
  std::string text;
  if (status == kWriteError && !unknown)
    text = formatted("; {} cannot be written, and its disk has {} bytes left: is it full?", part.path().string(),
                     disk.available);
  if (part.bytes() == 0) return text + "; no bytes arrived";
  return text + formatted("; the bytes that arrived stay in {}, and the next fetch continues from there",
                          part.path().string());
}

void fill(const std::string& from, const Part& part, bool resume) {
  if (!is_url(from)) {
    part.empty();
    try {
      copy(from, part);
    } catch (...) {
      part.empty();  // a part of a copy is of no use, and the disk may be full
      throw;
    }
    return;
  }
  int status = run_curl(from, part, resume);
  if (resume && cannot_resume(status)) {
    part.empty();
    status = run_curl(from, part, false);
  }
  check(status == 0, "fetch", "{}: curl ended with status {}{}", from, status,
        status == 0 ? "" : consequence(status, part));
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
  Part part(std::filesystem::path(to) += ".part");
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
    fail("fetch", "{}: not the expected file: {}", from, wrong);
  }
  part.rename_to(to);
}

}  // namespace lockstep::datasets
