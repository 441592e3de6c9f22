#include "lockstep/preflight/login.h"

#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::preflight {
namespace {

constexpr int kNotFound = 127, kNotExecutable = 126;  // of the shell there
constexpr int kOfSsh = 255;                           // of ssh itself

Finding red(const Login& login, std::string what, std::string mend) {
  return {.level = Level::Red, .what = std::move(what), .where = login.host, .mend = std::move(mend), .check = "login"};
}

std::string port_option(const Login& login) { return login.port == 0 ? "" : formatted(" -p {}", login.port); }

Finding no_answer(const Login& login, const std::string& name) {
  return red(
      login, formatted("no answer to ssh ({})", login.errors.empty() ? "within the time" : last_line(login.errors)),
      formatted("is it up, and TCP port {} open in its firewall? ping {}", login.port == 0 ? 22 : login.port, name));
}

// What ssh's own words mean; nothing: they are not known.
std::optional<Finding> failure_of_ssh(const Login& login, const std::string& name) {
  const std::string port = port_option(login);
  // How known_hosts names a host with a port of its own.
  const std::string known = login.port == 0 || login.port == 22 ? name : formatted("[{}]:{}", name, login.port);
  const auto says = [&](const char* words) { return login.errors.find(words) != std::string::npos; };
  if (says("Could not resolve hostname"))
    return red(login, "the name does not resolve here", formatted("echo 'ADDRESS {}' >> /etc/hosts", name));
  if (says("REMOTE HOST IDENTIFICATION HAS CHANGED"))
    return red(login, "its host key is another one than before",
               formatted("if the host was installed anew: ssh-keygen -R '{}' && ssh-keyscan{} {} >> ~/.ssh/known_hosts",
                         known, port, name));
  if (says("Host key verification failed"))
    return red(login, "its host key is not known here",
               formatted("ssh-keyscan{} {} >> ~/.ssh/known_hosts, and compare its fingerprint", port, name));
  if (says("Permission denied"))
    return red(login, "it refuses the key of this user", formatted("ssh-copy-id{} {}", port, login.host));
  if (says("Connection refused"))
    return red(login, formatted("no ssh server answers on port {}", login.port == 0 ? 22 : login.port),
               "start sshd there, or name its port: -p PORT");
  if (says("Connection timed out") || says("No route to host") || says("Operation timed out"))
    return no_answer(login, name);
  return std::nullopt;
}

}  // namespace

Finding login_failure(const Login& login) {
  const std::string name = login.host.substr(login.host.find('@') + 1);
  // A shell or a program may have words in common with ssh: "Permission denied" is also what a shell says of a file.
  if (login.status == kNotFound || login.status == kNotExecutable ||
      login.errors.find("error while loading shared libraries") != std::string::npos)
    return red(login, formatted("{} cannot be started there: {}", login.program, last_line(login.errors)),
               login.status == kNotExecutable
                   ? formatted("chmod +x {} there, and look whether its file system is mounted noexec", login.program)
                   : "copy the build to the same path there, and its libraries: scripts/setup.sh");
  if (login.status < 0) return no_answer(login, name);
  if (login.status == kOfSsh) {
    if (auto found = failure_of_ssh(login, name)) return *std::move(found);
  }
  return red(login, formatted("ssh ended with status {}: {}", login.status, last_line(login.errors)),
             formatted("ssh{} {} true", port_option(login), login.host));
}

}  // namespace lockstep::preflight
