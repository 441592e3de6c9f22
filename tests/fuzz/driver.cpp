// fuzz_READER [--mutants N] [--key K] [--from I] [--limit SECONDS] [--write DIR] [FOLDER...]: reads the harness's seeds
// and the files in the folders as they are, then N mutants of them. Each has a limit of time and all together one of
// memory; what does not survive is said with its number, so that --from I --mutants 1 repeats it.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <exception>
#include <fstream>

#include "lockstep/core/error.h"
#include "tests/fuzz/mutator.h"

// Of the sanitizers, where the program is built with one.
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*)());  // NOLINT: its name

namespace lockstep::fuzz {
namespace {

constexpr rlim_t kMemory = rlim_t{1} << 30;  // bytes beyond what is mapped at the start

volatile std::sig_atomic_t current = -1;  // mutant

// Of a process that dies: only what a signal handler may do.
void say_which() {
  std::array<char, 64> text{};
  int at = 0;
  for (const char c : std::string_view("\nfailed: mutant ")) text[static_cast<std::size_t>(at++)] = c;
  int value = current, scale = 1;
  if (value < 0) text[static_cast<std::size_t>(at++)] = '-';
  value = value < 0 ? -value : value;
  while (value / scale >= 10) scale *= 10;
  for (; scale > 0; scale /= 10) text[static_cast<std::size_t>(at++)] = static_cast<char>('0' + value / scale % 10);
  text[static_cast<std::size_t>(at++)] = '\n';
  const ssize_t written = write(STDERR_FILENO, text.data(), static_cast<std::size_t>(at));
  static_cast<void>(written);
}

void die(int signal) {
  say_which();
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void watch_for_death() {
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(say_which);
  } else {
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, die);
    // A sanitizer maps terabytes for itself, and has a limit of its own (ASAN_OPTIONS=max_allocation_size_mb=...).
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kMemory;
    const rlimit limit{most, most};
    check(setrlimit(RLIMIT_AS, &limit) == 0, "fuzz", "the limit of memory cannot be set");
  }
  std::signal(SIGALRM, die);
}

struct Settings {
  int mutants = 300, from = 0;
  unsigned limit = 60;  // seconds for one input
  std::uint64_t key = 1;
  std::string write{};
  std::vector<std::string> folders{};
};

void run(const Bytes& input, const Settings& settings) {
  alarm(settings.limit);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
}

int fuzz(const Settings& settings) {
  std::vector<Bytes> inputs = seeds();
  for (const std::string& folder : settings.folders) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const auto& file : files) inputs.push_back(content_of(file));
  }
  for (std::size_t i = 0; !settings.write.empty() && i < inputs.size(); ++i) {
    std::ofstream out(std::filesystem::path(settings.write) / fmt::format("seed-{}", i), std::ios::binary);
    out.write(reinterpret_cast<const char*>(inputs[i].data()), static_cast<std::streamsize>(inputs[i].size()));
  }
  watch_for_death();
  for (const Bytes& input : inputs) {
    run(input, settings);
    current = current - 1;  // seeds count down from -1
  }
  const Mutator mutator(inputs, settings.key);
  for (int number = settings.from; number < settings.from + settings.mutants; ++number) {
    current = number;
    run(mutator.mutant(static_cast<std::uint64_t>(number)), settings);
  }
  fmt::print("{} inputs and {} mutants of key {}: no crash, no hang\n", inputs.size(), settings.mutants, settings.key);
  return 0;
}

}  // namespace
}  // namespace lockstep::fuzz

int main(int argc, char** argv) {
  lockstep::fuzz::Settings settings;
  CLI::App app("Reads mutants of good inputs");
  app.add_option("--mutants", settings.mutants, "how many");
  app.add_option("--key", settings.key, "of the random numbers");
  app.add_option("--from", settings.from, "number of the first");
  app.add_option("--limit", settings.limit, "seconds for one input");
  app.add_option("--write", settings.write, "folder for the inputs, as a corpus for other fuzzers");
  app.add_option("folders", settings.folders, "further inputs");
  CLI11_PARSE(app, argc, argv);
  return lockstep::fuzz::fuzz(settings);
}
