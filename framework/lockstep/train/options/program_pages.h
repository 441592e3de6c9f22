// The hidden options --completion SHELL and --man, with which a program prints its own completion and man page.
#pragma once

#include <CLI/App.hpp>
#include <functional>
#include <string>

#include "lockstep/train/options/program_description.h"

namespace lockstep::train {

// Adds them to `app`. The parser then throws CLI::CallForVersion with the text, as for --version; `description` is
// called first. `version` is the answer to --version.
void offer_pages(CLI::App& app, const std::string& version, const std::function<ProgramDescription()>& description);

}  // namespace lockstep::train
