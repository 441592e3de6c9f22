#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "tools/commands.h"
#include "tools/report/page.h"
#include "tools/report/run_report.h"
#include "tools/watch/http_server.h"

namespace lockstep::tools {
namespace {

constexpr const char* kWatchHelp = R"(Examples:
  lockstep watch runs/a                 prints an address, which a browser on this machine opens
  lockstep watch runs/a runs/b          two runs in one page
  ssh -L 8000:127.0.0.1:8000 node1 lockstep watch --port 8000 /shared/runs/a
                                        a run on another machine, in the browser of this one
The address has a secret: a user on this machine who knows it sees the page. The command runs until Ctrl-C ends it.)";

struct WatchOptions {
  std::vector<std::string> runs;
  int port = 0;
};

// The document of the watched runs, written anew when one of them has changed.
class WatchedRuns {
 public:
  explicit WatchedRuns(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) runs_.emplace_back(path);
  }

  HttpAnswer answer(const std::string& path, const HttpRequest& request) {
    if (path == "/") return {.type = "text/html; charset=utf-8", .body = page()};
    if (path != "/data.json") return {.status = 404, .body = "There is no such page.\n"};
    update();
    if (request.etag == etag()) return {.status = 304, .etag = etag()};
    return {.type = "application/json", .body = text_, .etag = etag()};
  }

 private:
  void update() {
    for (RunReport& run : runs_) changed_ = run.update() || changed_;  // kept if another run's update() throws
    if (!changed_) return;
    text_ = document_text(report_document(runs_, true));
    changed_ = false;
    ++version_;
  }
  std::string page() {
    update();
    return page_with(report_document(runs_, true));
  }
  std::string etag() const { return fmt::format("\"{}\"", version_); }

  std::vector<RunReport> runs_;
  std::string text_;
  bool changed_ = true;  // since text_ was made
  int version_ = 0;
};

void watch(const WatchOptions& o) {
  WatchedRuns runs(o.runs);
  HttpServer server(o.port,
                    [&](const std::string& path, const HttpRequest& request) { return runs.answer(path, request); });
  fmt::print("{}\n", server.url());
  if (std::fflush(stdout) != 0) return;  // the caller reports it
  server.serve([] { return true; });
}

}  // namespace

void add_watch_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("watch", "Show runs in a browser while they train, on this machine alone");
  auto o = std::make_shared<WatchOptions>();
  command->add_option("run", o->runs, "Folders of runs (their --output)")->required()->expected(1, 32);
  command->add_option("--port", o->port, "The port of 127.0.0.1; 0: a free one")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->footer(kWatchHelp);
  command->callback([o] { watch(*o); });
}

}  // namespace lockstep::tools
