// metrics.jsonl and hashes.jsonl of a run that is resumed, and the hash log as `lockstep compare` reads it.
#include <optional>

#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/metrics.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {
      bytes_of(
          "{\"step\":1,\"epoch\":1,\"split\":\"train\",\"loss\":0.5}\n{\"step\":2,\"split\":\"eval\",\"loss\":null}\n"),
      bytes_of("{\"step\":0,\"tensors\":{\"model/fc.weight\":\"0123456789abcdef\"}}\n"
               "{\"step\":5,\"tensors\":{\"model/fc.weight\":\"fedcba9876543210\",\"b\":\"0000000000000000\"}}\n")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const auto log = fuzz::input_file("hashes.jsonl", {data, size});
  fuzz::input_file("metrics.jsonl", {data, size});
  fuzz::expect_answer([&] {
    train::HashLogReader reader(log);
    while (reader.next()) {
    }
  });
  fuzz::expect_answer([&] { train::MetricsWriter(log.parent_path(), 3); });
  fuzz::expect_answer([&] { train::HashLog(std::make_shared<io::Folder>(log.parent_path()), 1, 3); });
  return 0;
}
