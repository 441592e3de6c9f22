// The findings of the doctor, on stdout: a line for each finding and one for what mends it, or JSON.
#pragma once

#include <vector>

#include "lockstep/preflight/finding.h"

namespace lockstep::tools {

void print_findings(const std::vector<preflight::Finding>& findings, int ranks, bool as_json);

}  // namespace lockstep::tools
