// For a program that links this library: looks at the process, and ends it where a library would wait for ever, before
// the constructors of libraries run.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "lockstep/host/before_libraries.h"

// There if the program is linked with OpenBLAS; 0 if that has no threads.
extern "C" [[gnu::weak]] int openblas_get_parallel();

namespace lockstep::host {
namespace {

// OpenBLAS 0.3.21 to 0.3.29 maps so many bytes for each thread while it is loaded, and tries again for ever without
// them.
constexpr std::size_t kBufferOfThread = std::size_t{128} << 20;
constexpr std::size_t kOthers = std::size_t{24} << 20;  // all libraries besides, while they are loaded: 21 MiB measured

bool ignored_hangup = false;

// A text of bounded length: nothing is initialised yet, so that only system calls and plain functions are at hand.
class Text {
 public:
  Text& operator<<(std::string_view more) {
    const std::size_t size = std::min(more.size(), text_.size() - size_);
    std::copy_n(more.data(), size, text_.data() + size_);
    size_ += size;
    return *this;
  }
  Text& operator<<(std::size_t number) {
    std::array<char, 24> digits{};
    const char* end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return *this << std::string_view(digits.data(), end);
  }
  void to_stderr() const {
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text_.data(), size_);  // a failure has no reader
  }

 private:
  std::array<char, 400> text_{};
  std::size_t size_ = 0;
};

std::size_t mapped_bytes() {
  std::array<char, 64> text{};
  const int file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t size = read(file, text.data(), text.size() - 1);
  close(file);
  return size <= 0 ? 0 : std::strtoull(text.data(), nullptr, 10) * static_cast<std::size_t>(getpagesize());
}

// The number of the first variable that OpenBLAS looks at, and at most the cores of this process.
std::size_t threads_of_blas(char** environment) {
  if (openblas_get_parallel() == 0) return 1;
  cpu_set_t mask;
  const bool known = sched_getaffinity(0, sizeof mask, &mask) == 0;  // not on a machine of more than 1,024
  const auto cores = static_cast<std::size_t>(known ? CPU_COUNT(&mask) : sysconf(_SC_NPROCESSORS_CONF));
  for (const std::string_view name : {"OPENBLAS_NUM_THREADS=", "GOTO_NUM_THREADS=", "OMP_NUM_THREADS="}) {
    for (char** variable = environment; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with(name)) continue;
      const std::size_t number = std::strtoull(*variable + name.size(), nullptr, 10);
      if (number > 0) return std::min(number, cores);
    }
  }
  return cores;
}

void refuse_too_little_address_space(char** environment) {
  rlimit limit{};
  if (openblas_get_parallel == nullptr || getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  const std::size_t mapped = mapped_bytes(), threads = threads_of_blas(environment);
  if (limit.rlim_cur >= mapped + threads * kBufferOfThread + kOthers) return;
  Text text;
  text << "lockstep: [memory] the address space of this process is limited to " << (limit.rlim_cur >> 20)
       << " MiB (ulimit -v), of which " << (mapped >> 20) << " MiB are in use before libraries start; OpenBLAS takes "
       << (kBufferOfThread >> 20) << " MiB more per thread, " << threads
       << " in number (OMP_NUM_THREADS), and would wait for ever; expected a higher limit, or none\n";
  text.to_stderr();
  _exit(1);
}

void look([[maybe_unused]] int argc, [[maybe_unused]] char** argv, char** environment) {
  struct sigaction hangup {};
  ignored_hangup = sigaction(SIGHUP, nullptr, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
  refuse_too_little_address_space(environment);
}

__attribute__((section(".preinit_array"), used)) void (*const kBeforeLibraries)(int, char**, char**) = look;

}  // namespace

void keep_hangup_ignored() {
  if (ignored_hangup) signal(SIGHUP, SIG_IGN);
}

}  // namespace lockstep::host
