// The page of `lockstep report` and `lockstep watch`: one HTML file with its style, its script and the library that
// plots (uPlot), which the build takes from tools/report/page. Nothing is loaded from a network. Any thread.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::tools {

// Returns the page with a document (report_document()) in it.
std::string page_with(const nlohmann::ordered_json& document);

// Returns a document as JSON; bytes that are no UTF-8 are replaced.
std::string document_text(const nlohmann::ordered_json& document);

// The policy of the page: it may load nothing, and may ask its own server alone.
inline constexpr const char* kPagePolicy =
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; "
    "form-action 'none'";

}  // namespace lockstep::tools
