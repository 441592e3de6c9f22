#include "lockstep/train/options/program_pages.h"

#include <CLI/Error.hpp>
#include <CLI/Option.hpp>
#include <CLI/Validators.hpp>
#include <vector>

#include "lockstep/train/options/completion.h"
#include "lockstep/train/options/man_page.h"

namespace lockstep::train {

void offer_pages(CLI::App& app, const std::string& version, const std::function<ProgramDescription()>& description) {
  app.add_flag_callback("--man", [=] { throw CLI::CallForVersion(man_page(description(), version), 0); })
      ->configurable(false)
      ->group("");
  app.add_option_function<std::string>(
         "--completion",
         [=](const std::string& shell) { throw CLI::CallForVersion(completion(description(), shell_named(shell)), 0); })
      ->check(CLI::IsMember(std::vector<std::string>(kShellNames.begin(), kShellNames.end())))
      ->configurable(false)
      ->group("");
}

}  // namespace lockstep::train
