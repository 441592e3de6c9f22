#include "tools/picture/graphviz.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/io/file_descriptor.h"
#include "tools/picture/texts.h"

namespace lockstep::tools {
namespace {

constexpr const char* kPictureSite = "inspect";

// Files in memory: no pipe can fill up, and nothing is left on a disk.
io::FileDescriptor memory_file(const char* name) {
  io::FileDescriptor file(memfd_create(name, MFD_CLOEXEC));
  check(file.open(), kPictureSite, "no file in memory for dot: {}", std::strerror(errno));
  return file;
}

void write_all(const io::FileDescriptor& file, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t bytes = write(file.get(), text.data() + done, text.size() - done);
    check(bytes > 0 || errno == EINTR, kPictureSite, "the graph cannot be written for dot: {}", std::strerror(errno));
    if (bytes > 0) done += static_cast<std::size_t>(bytes);
  }
  check(lseek(file.get(), 0, SEEK_SET) == 0, kPictureSite, "the graph cannot be read by dot: {}", std::strerror(errno));
}

std::string read_all(const io::FileDescriptor& file) {
  check(lseek(file.get(), 0, SEEK_SET) == 0, kPictureSite, "dot's picture cannot be read: {}", std::strerror(errno));
  std::string text;
  std::array<char, 65536> block{};
  while (true) {
    const ssize_t bytes = read(file.get(), block.data(), block.size());
    check(bytes >= 0 || errno == EINTR, kPictureSite, "dot's picture cannot be read: {}", std::strerror(errno));
    if (bytes == 0) return text;
    if (bytes > 0) text.append(block.data(), static_cast<std::size_t>(bytes));
  }
}

// With this status a child ends if posix_spawn returned before its program could be started (POSIX.1), or if the
// program lacks a library.
constexpr int kNotStarted = 127;

void run_dot(const io::FileDescriptor& in, const io::FileDescriptor& out) {
  std::array<std::string, 2> words{"dot", "-Tsvg"};
  std::array<char*, 3> arguments{words[0].data(), words[1].data(), nullptr};
  posix_spawn_file_actions_t actions;
  int code = posix_spawn_file_actions_init(&actions);
  check(code == 0, kPictureSite, "dot cannot be started: {}", std::strerror(code));
  code = posix_spawn_file_actions_adddup2(&actions, in.get(), 0);
  if (code == 0) code = posix_spawn_file_actions_adddup2(&actions, out.get(), 1);
  pid_t child = -1;
  if (code == 0) code = posix_spawnp(&child, "dot", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  check(code != ENOENT, kPictureSite,
        "the program dot, which draws the picture, is not in PATH: install the package graphviz; or write --svg "
        "FILE.gv, and call dot -Tsvg FILE.gv on a machine that has it");
  check(code == 0, kPictureSite, "dot cannot be started: {}", std::strerror(code));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    check(errno == EINTR, kPictureSite, "waiting for dot failed: {}", std::strerror(errno));
  check(!WIFSIGNALED(status), kPictureSite, "dot was ended by signal {}", WTERMSIG(status));
  check(WEXITSTATUS(status) != kNotStarted, kPictureSite,
        "dot, which draws the picture, could not be started (status {}): it is not in PATH, or lacks a library that is "
        "named above; install the package graphviz; or write --svg FILE.gv, and call dot -Tsvg FILE.gv on a machine "
        "that has it",
        kNotStarted);
  check(WEXITSTATUS(status) == 0, kPictureSite, "dot ended with status {}; it says why above", WEXITSTATUS(status));
}

}  // namespace

std::string svg_of(const std::string& dot_text, const PictureTexts& texts) {
  const io::FileDescriptor in = memory_file("plan.gv"), out = memory_file("plan.svg");
  write_all(in, dot_text);
  run_dot(in, out);
  std::string svg = read_all(out);
  constexpr std::string_view kRoot = "<svg ";
  const std::size_t root = svg.find(kRoot), end = root == svg.npos ? svg.npos : svg.find('>', root);
  check(end != svg.npos, kPictureSite, "dot wrote no SVG, expected an element svg: is it Graphviz's program?");
  svg.insert(end + 1, fmt::format("\n<title id=\"title\">{}</title>\n<desc id=\"description\">{}</desc>",
                                  escaped(texts.title), escaped(texts.description)));
  svg.insert(root + kRoot.size(),
             "role=\"graphics-document\" aria-labelledby=\"title\" aria-describedby=\"description\" ");
  return svg;
}

}  // namespace lockstep::tools
