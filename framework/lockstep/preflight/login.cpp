#include "lockstep/preflight/login.h"

#include "lockstep/core/error.h"

namespace lockstep::preflight {
namespace {

constexpr int kNotFound = 127, kNotExecutable = 126;

std::string last_line(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

Finding login_failure(const Login& login) {
  const std::string port = login.port == 0 ? "" : formatted(" -p {}", login.port);
  const std::string name = login.host.substr(login.host.find('@') + 1);
  // How known_hosts names a host with a port of its own.
  const std::string known = login.port == 0 || login.port == 22 ? name : formatted("[{}]:{}", name, login.port);
  const auto says = [&](const char* words) { return login.errors.find(words) != std::string::npos; };
  const auto red = [&](std::string what, std::string mend) {
    return Finding{
        .level = Level::Red, .what = std::move(what), .where = login.host, .mend = std::move(mend), .check = "login"};
  };
  if (says("Could not resolve hostname"))
    return red("the name does not resolve here", formatted("echo 'ADDRESS {}' >> /etc/hosts", name));
  if (says("REMOTE HOST IDENTIFICATION HAS CHANGED"))
    return red("its host key is another one than before",
               formatted("if the host was installed anew: ssh-keygen -R '{}' && ssh-keyscan{} {} >> ~/.ssh/known_hosts",
                         known, port, name));
  if (says("Host key verification failed"))
    return red("its host key is not known here",
               formatted("ssh-keyscan{} {} >> ~/.ssh/known_hosts, and compare its fingerprint", port, name));
  if (says("Permission denied"))
    return red("it refuses the key of this user", formatted("ssh-copy-id{} {}", port, login.host));
  if (says("Connection refused"))
    return red(formatted("no ssh server answers on port {}", login.port == 0 ? 22 : login.port),
               "start sshd there, or name its port: -p PORT");
  if (says("Connection timed out") || says("No route to host") || says("Operation timed out") || login.status < 0)
    return red(
        formatted("no answer to ssh ({})", login.errors.empty() ? "within the time" : last_line(login.errors)),
        formatted("is it up, and TCP port {} open in its firewall? ping {}", login.port == 0 ? 22 : login.port, name));
  if (login.status == kNotFound || login.status == kNotExecutable || says("error while loading shared libraries"))
    return red(formatted("{} cannot be started there: {}", login.program, last_line(login.errors)),
               "copy the build to the same path there, and its libraries: scripts/setup.sh");
  return red(formatted("ssh ended with status {}: {}", login.status, last_line(login.errors)),
             formatted("ssh{} {} true", port, login.host));
}

}  // namespace lockstep::preflight
