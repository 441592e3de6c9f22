// metrics.jsonl, dllogger.json and hashes.jsonl of a run that is resumed, the hash log as `lockstep compare` reads it,
// and log files as `lockstep logs` reads them.
#include <optional>

#include "lockstep/train/report/dllogger.h"
#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/log_merge.h"
#include "lockstep/train/report/metrics.h"
#include "tests/fuzz/harness.h"

namespace lockstep::fuzz {

std::vector<Bytes> seeds() {
  return {
      bytes_of(
          "{\"step\":1,\"epoch\":1,\"split\":\"train\",\"loss\":0.5}\n{\"step\":2,\"split\":\"eval\",\"loss\":null}\n"),
      bytes_of("{\"step\":0,\"tensors\":{\"model/fc.weight\":\"0123456789abcdef\"}}\n"
               "{\"step\":5,\"tensors\":{\"model/fc.weight\":\"fedcba9876543210\",\"b\":\"0000000000000000\"}}\n"),
      bytes_of("DLLL {\"type\": \"METADATA\", \"metric\": \"lr\"}\n"
               "DLLL {\"type\": \"LOG\", \"step\": [0, 2], \"data\": {\"val.loss\": 1.5, \"global_step\": 2}}\n"),
      bytes_of("2026-11-22 18:04:06.123 node1 rank 3 info: epoch 1\n  /lib/x.so(main+0x12) [0x7f]\n"
               "2026-11-22 18:04:06.120 warning: start 2\n2026-11-22 18:04")};
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
  const auto lines = fuzz::input_file("rank-0000.log", {data, size});
  fuzz::expect_answer([&] {
    train::LogFiles files(lines);
    while (const auto line = files.next()) line->str();
    for (const auto& line : files.rest()) line.str();
  });
  fuzz::input_file("dllogger.json", {data, size});
  fuzz::expect_answer([&] { train::DlloggerWriter(std::make_shared<io::Folder>(log.parent_path()), 3, true); });
  fuzz::expect_answer([&] { train::MetricsWriter(log.parent_path(), 3); });
  fuzz::expect_answer([&] { train::HashLog(std::make_shared<io::Folder>(log.parent_path()), 1, 3); });
  return 0;
}
