#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/io/atomic_file.h"
#include "tools/commands.h"
#include "tools/report/page.h"
#include "tools/report/run_report.h"
#include "tools/usage.h"

namespace lockstep::tools {
namespace {

constexpr const char* kReportHelp = R"(Examples:
  lockstep report runs/a                              writes runs/a/report.html
  lockstep report runs/a runs/b --output compare.html  two runs in one page, and how they differ
  lockstep report runs/a --trace trace.json            with the times of each rank, of --trace of that run
  lockstep report runs/a --json                        the numbers of the page as JSON, on standard output
The page needs no other file and no network. Options and time by class of work are there for runs that wrote facts.json;
time by class of work also needs --profile of that run.)";

struct ReportOptions {
  std::vector<std::string> runs;
  std::string output, trace;
  bool json = false;
};

std::vector<RunReport> read_runs(const ReportOptions& o) {
  std::vector<RunReport> runs;
  for (const std::string& path : o.runs) {
    RunReport& run = runs.emplace_back(path);
    run.update();
  }
  if (o.trace.empty()) return runs;
  runs.front().add_trace(o.trace);
  return runs;
}

void check_options(const ReportOptions& o) {
  check(o.trace.empty() || o.runs.size() == 1, "report", "--trace with {} runs, expected one: the trace is of one run",
        o.runs.size());
  check(!o.json || o.output.empty(), "report",
        "--json with --output, expected one of them: JSON is written to standard output");
  check(o.json || o.runs.size() == 1 || !o.output.empty(), "report",
        "{} runs without --output, expected --output FILE.html", o.runs.size());
}

void write_report(const ReportOptions& o) {
  check_usage([&] { check_options(o); });
  const nlohmann::ordered_json document = report_document(read_runs(o), false);
  if (o.json) {
    fmt::print("{}\n", document_text(document));
    return;
  }
  const std::filesystem::path file =
      o.output.empty() ? std::filesystem::path(o.runs.front()) / "report.html" : std::filesystem::path(o.output);
  const std::string page = page_with(document);
  io::replace_file(file, page, "report");
  fmt::print("{}\n", printable(file.string()));
}

}  // namespace

void add_report_command(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("report", "Write an HTML page about runs: curves, rates, times, ranks, faults");
  auto o = std::make_shared<ReportOptions>();
  command->add_option("run", o->runs, "Folders of runs (their --output)")->required()->expected(1, 32);
  command->add_option("--output", o->output, "The file to write (of one run: RUN/report.html unless given)");
  command->add_option("--trace", o->trace, "A file that --trace of the run has written, for the times of each rank");
  command->add_flag("--json", o->json, "Print the numbers as JSON instead");
  command->footer(kReportHelp);
  command->callback([o] { write_report(*o); });
}

}  // namespace lockstep::tools
