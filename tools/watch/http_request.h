// The head of an HTTP/1.1 request as the server of `lockstep watch` reads it. Plain data; any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace lockstep::tools {

struct HttpRequest {
  std::string method, path;  // the path without the part after '?'
  std::string host;          // the header Host; empty: missing
  std::string etag;          // the header If-None-Match; empty: none
};

// Reads a whole head, which ends with an empty line; empty: it is no request.
std::optional<HttpRequest> parse_request(std::string_view head);

// Whether a header Host names this machine's loopback: a page of another site that a browser has been made to take for
// this server (DNS rebinding) sends its own name. The port may be any, as `ssh -L` forwards another one.
bool is_loopback_name(std::string_view host);

// Whether two texts are equal, in a time that does not depend on where they differ.
bool equal_secrets(std::string_view a, std::string_view b);

}  // namespace lockstep::tools
