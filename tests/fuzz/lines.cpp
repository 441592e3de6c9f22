// metrics.jsonl, metrics.csv, dllogger.json and hashes.jsonl of a run that is resumed, the hash log as `lockstep
// compare` reads it, log files as `lockstep logs` reads them, and what `lockstep report` and `lockstep watch` read.
#include <optional>
#include <vector>

#include "lockstep/train/report/csv_records.h"
#include "lockstep/train/report/dllogger.h"
#include "lockstep/train/report/hash_log.h"
#include "lockstep/train/report/log_merge.h"
#include "lockstep/train/report/metrics.h"
#include "tests/fuzz/harness.h"
#include "tools/report/metric_table.h"
#include "tools/report/run_report.h"
#include "tools/watch/http_request.h"

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
               "2026-11-22 18:04:06.120 warning: start 2\n2026-11-22 18:04"),
      bytes_of("step,epoch,split,loss\r\n1,1,train,0.5\r\n4,1,\"tr,ain\",nan\r\n5,1"),
      bytes_of(R"({"traceEvents":[{"ph":"M","pid":0,"name":"process_name","args":{"name":"rank 0 on a"}},)"
               R"({"ph":"X","pid":0,"tid":2,"name":"wait","ts":0,"dur":5}]})"),
      bytes_of("GET /0123/data.json?x HTTP/1.1\r\nHost: [::1]:80\r\nIf-None-Match: \"2\"\r\n\r\n")};
}

}  // namespace lockstep::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  const auto log = fuzz::input_file("hashes.jsonl", {data, size});
  const auto metrics = fuzz::input_file("metrics.jsonl", {data, size});
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
  fuzz::expect_answer([&] {
    tools::MetricTable table(metrics);
    table.update();
    table.series(4);
    table.totals();
  });
  fuzz::expect_answer([&] { tools::trace_times(metrics); });
  if (const auto request = tools::parse_request(fuzz::text_of(data, size))) tools::is_loopback_name(request->host);
  fuzz::input_file("metrics.csv", {data, size});
  fuzz::expect_answer([&] {
    train::CsvRecords(std::make_shared<io::Folder>(log.parent_path()), 3, true).begin(std::vector<MetricRule>{});
  });
  fuzz::input_file("dllogger.json", {data, size});
  fuzz::expect_answer([&] { train::DlloggerWriter(std::make_shared<io::Folder>(log.parent_path()), 3, true); });
  fuzz::expect_answer([&] { train::MetricsWriter(log.parent_path(), 3); });
  fuzz::expect_answer([&] { train::HashLog(std::make_shared<io::Folder>(log.parent_path()), 1, 3); });
  return 0;
}
