// A small HTTP server for one person: it listens on this machine's loopback alone, and answers GET and HEAD of paths
// below a secret token. A request without the token, or whose Host names another machine, is refused. Each connection
// has one request. A library would bring threads, TLS and files of the disk, none of which is wanted here. One thread.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/io/file_descriptor.h"
#include "tools/watch/http_request.h"

namespace lockstep::tools {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8", body{};
  std::string etag{};  // empty: none
};

class HttpServer {
 public:
  // Returns the answer to a request below the token; `path` is what follows it: "/", "/data.json".
  using Handler = std::function<HttpAnswer(const std::string& path, const HttpRequest& request)>;

  // Listens at this port of 127.0.0.1; 0: a free one. Throws Error with the port and the system's reason.
  HttpServer(int port, Handler handler);

  int port() const;
  // Returns the address of a path, with the token.
  std::string url() const;
  // Answers requests until the process is ended, or until `goes_on`, which is asked at least each second, returns
  // false.
  void serve(const std::function<bool()>& goes_on);

 private:
  using Clock = std::chrono::steady_clock;
  struct Client {
    io::FileDescriptor socket;
    Clock::time_point deadline;
    std::string head, answer{};  // what came, and what is still to be sent
  };
  void accept_clients();
  bool go_on_with(Client& client);  // returns false: the connection is over
  bool receive(Client& client);
  bool send(Client& client);
  std::string answer_to(std::string_view head) const;
  HttpAnswer handle(const HttpRequest& request) const;

  Handler handler_;
  std::string token_;
  io::FileDescriptor listener_;
  std::vector<Client> clients_;
};

// Returns 32 hexadecimal digits that nobody can guess; throws Error if the system gives no random numbers.
std::string new_token();

}  // namespace lockstep::tools
