// The parts of the page; the build writes their texts from tools/report/page (page_parts.cpp.in).
#pragma once

#include <string_view>

namespace lockstep::tools {

extern const std::string_view kPageTemplate, kPageStyle, kPageScript, kPlotStyle, kPlotScript, kPlotLicence;

}  // namespace lockstep::tools
