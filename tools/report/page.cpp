#include "tools/report/page.h"

#include <string_view>

#include "tools/report/page_parts.h"

namespace lockstep::tools {
namespace {

// Puts `value` in the place of `mark`, which the template has once.
void put_text(std::string& page, std::string_view mark, std::string_view value) {
  const std::size_t at = page.find(mark);
  if (at != std::string::npos) page.replace(at, mark.size(), value);
}

}  // namespace

std::string document_text(const nlohmann::ordered_json& document) {
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string page_with(const nlohmann::ordered_json& document) {
  // Inside a script, text of a log must not end it: "<" is written as JSON allows too.
  std::string data;
  for (const char c : document_text(document)) {
    if (c == '<')
      data += "\\u003c";
    else
      data += c;
  }
  std::string page(kPageTemplate);
  put_text(page, "/*POLICY*/", kPagePolicy);
  put_text(page, "/*PLOT_STYLE*/", kPlotStyle);
  put_text(page, "/*STYLE*/", kPageStyle);
  put_text(page, "/*PLOT_LICENCE*/", kPlotLicence);
  put_text(page, "/*PLOT_SCRIPT*/", kPlotScript);
  put_text(page, "/*SCRIPT*/", kPageScript);
  put_text(page, "/*DATA*/", data);
  return page;
}

}  // namespace lockstep::tools
