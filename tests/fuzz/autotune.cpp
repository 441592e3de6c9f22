// The file of --autotune's choices: read, and written again with a machine more.
#include "lockstep/train/prepare/autotune_cache.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {bytes_of(R"({"cpu avx2": {"conv2d 1x3": "onednn", "relu": "native"}, "other": {"add": "generic"}})"),
          bytes_of(R"({"cpu avx2": ["x", 1, null], "other": 7})")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const auto file = fuzz::input_file("kernels.json", {data, size});
  fuzz::expect_answer([&] {
    train::KernelChoices choices = train::read_autotune_cache(file, "cpu avx2");
    choices["new"] = "native";
    train::write_autotune_cache(file, "cpu avx2", choices);
  });
  return 0;
}
