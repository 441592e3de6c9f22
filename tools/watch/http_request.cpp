#include "tools/watch/http_request.h"

#include <algorithm>
#include <cctype>

namespace lockstep::tools {
namespace {

std::string lower_case(std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

}  // namespace

std::optional<HttpRequest> parse_request(std::string_view head) {
  const std::size_t line = head.find("\r\n");
  if (line == std::string_view::npos) return std::nullopt;
  const std::string_view first = head.substr(0, line);
  const std::size_t method = first.find(' '), path = first.rfind(' ');
  if (method == std::string_view::npos || path <= method + 1) return std::nullopt;
  if (!first.substr(path + 1).starts_with("HTTP/1.")) return std::nullopt;
  HttpRequest request{.method = std::string(first.substr(0, method))};
  const std::string_view target = first.substr(method + 1, path - method - 1);
  request.path = std::string(target.substr(0, target.find('?')));
  if (!request.path.starts_with('/')) return std::nullopt;
  std::string_view rest = head.substr(line + 2);
  for (std::size_t end = 0; (end = rest.find("\r\n")) != std::string_view::npos && end > 0;
       rest = rest.substr(end + 2)) {
    const std::string_view header = rest.substr(0, end);
    const std::size_t colon = header.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string name = lower_case(header.substr(0, colon));
    const std::string_view value = without_blanks(header.substr(colon + 1));
    if (name == "host" && !request.host.empty()) return std::nullopt;  // two Host fields are a known attack
    if (name == "host") request.host = std::string(value);
    if (name == "if-none-match") request.etag = std::string(value);
  }
  return request;
}

bool is_loopback_name(std::string_view host) {
  std::string_view name = host, port;
  if (const std::size_t colon = host.rfind(':'); colon != std::string_view::npos && !host.ends_with(']')) {
    name = host.substr(0, colon);
    port = host.substr(colon + 1);
    if (port.empty()) return false;
  }
  const bool digits = std::ranges::all_of(port, [](char c) { return c >= '0' && c <= '9'; });
  return digits && (name == "127.0.0.1" || lower_case(name) == "localhost" || name == "[::1]");
}

bool equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace lockstep::tools
