// Option files (--config), and the checks of what they say.
#include <CLI/App.hpp>
#include <sstream>

#include "lockstep/train/options/command_line.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {
      bytes_of("lr = 0.05\noptimizer = \"adam\"\nmilestones = [3, 6.5]\nschedule = 'step'\nnesterov = false\n"),
      bytes_of("# a comment\nglobal-batch=256\nshards = 8\noutput = \"runs/a b\"\nlimit-train = 1000\nquiet = true\n"),
      bytes_of("seed = 18446744073709551615\nwarmup-epochs = 1e-3\naugment = on\n[section]\nkey = \"\"\"x\"\"\"\n")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const std::string file = fuzz::input_file("options.toml", {data, size}).string();
  train::Options options;
  train::CommandLine line(options, "fuzz", "reads an option file", "");
  const char* arguments[] = {"fuzz", "--config", file.c_str()};
  std::ostringstream out, err;
  fuzz::expect_answer([&] {
    if (line.parse(3, arguments, true, out, err).proceed) train::validate(options, 2);
  });
  return 0;
}
