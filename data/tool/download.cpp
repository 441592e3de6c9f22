#include "data/tool/download.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
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

struct CurlResult {
  int status;         // curl's exit status
  std::string reply;  // the status of the server's last answer, as "404"; "000": there was none
};

std::vector<std::string> curl_words(const std::string& url, const Part& part, bool resume) {
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
                                 "--write-out",
                                 "%{http_code}",
                                 "--output",
                                 part.path().string()};
  if (resume) words.insert(words.end(), {"--continue-at", "-"});
  words.insert(words.end(), {"--url", url});
  return words;
}

// Starts a program of PATH whose standard output is `out`.
pid_t start_program(std::vector<std::string> words, const io::FileDescriptor& out) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out.get(), STDOUT_FILENO);
  pid_t child = 0;
  const int code = posix_spawnp(&child, arguments.front(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  check(code == 0, "fetch", "the program {} cannot be started: {}", words.front(), reason(code));
  return child;
}

std::string read_to_end(const io::FileDescriptor& file) {
  std::string text;
  std::array<char, 64> some{};
  while (true) {
    const ssize_t got = read(file.get(), some.data(), some.size());
    check_call(got >= 0 || errno == EINTR, "fetch", "the output of curl cannot be read");
    if (got == 0) return text;
    if (got > 0) text.append(some.data(), static_cast<std::size_t>(got));
  }
}

// Runs curl, which writes to `part` and reports errors on stderr.
CurlResult run_curl(const std::string& url, const Part& part, bool resume) {
  std::array<int, 2> ends{};
  check_call(pipe2(ends.data(), O_CLOEXEC) == 0, "fetch", "no pipe from curl");
  const io::FileDescriptor from(ends[0]);
  io::FileDescriptor to(ends[1]);
  const pid_t child = start_program(curl_words(url, part, resume), to);
  to = io::FileDescriptor();  // else the pipe would not end with curl
  CurlResult result{.status = 0, .reply = read_to_end(from)};
  int status = 0;
  while (waitpid(child, &status, 0) < 0) check(errno == EINTR, "fetch", "curl is lost: {}", reason(errno));
  check(WIFEXITED(status), "fetch", "{}: curl was ended by signal {}", url, WTERMSIG(status));
  result.status = WEXITSTATUS(status);
  return result;
}

// Whether the server answered that it has no bytes from there on, or cannot begin there: the part is not of this file,
// or can only be fetched whole. After any other failure the part is worth keeping.
bool cannot_resume(const CurlResult& result) {
  constexpr int kHttpError = 22, kNoRanges = 33, kBadResume = 36;  // exit statuses of curl
  return result.status == kNoRanges || result.status == kBadResume ||
         (result.status == kHttpError && result.reply == "416");
}

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
std::string consequence(const CurlResult& result, const Part& part) {
  constexpr int kWriteError = 23;
  std::error_code unknown;
  const std::filesystem::space_info disk = std::filesystem::space(part.path().parent_path(), unknown);
  std::string text;
  if (result.status == kWriteError && !unknown)
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
  CurlResult result = run_curl(from, part, resume);
  if (resume && cannot_resume(result)) {
    part.empty();
    result = run_curl(from, part, false);
  }
  check(result.status == 0, "fetch", "{}: curl ended with status {}{}", from, result.status,
        result.status == 0 ? "" : consequence(result, part));
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
