#include "tools/launcher/messages.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "lockstep/core/error.h"

namespace lockstep::launcher {

// In the namespace of the structures, where the library looks for them.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Join, nodes, node, ranks, host, version, mpi, words, program, problem, network)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Welcome, supervised)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Run, host, command, variables)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Done, status, reason, again)

namespace {

using Json = nlohmann::json;

// Words of a command line and the output of programs may hold any byte; those that are no UTF-8 become U+FFFD.
Message message_of(Kind kind, const Json& body) {
  return {kind, body.dump(-1, ' ', false, Json::error_handler_t::replace)};
}

template <class Body>
Body read(const Message& message) {
  try {
    return Json::parse(message.body).get<Body>();
  } catch (const Json::exception& error) {
    fail("launch", "a message of kind {} is not of the expected form: {}", static_cast<int>(message.kind),
         error.what());
  }
}

}  // namespace

Message to_message(const Join& join) { return message_of(Kind::Join, join); }
Message to_message(const Welcome& welcome) { return message_of(Kind::Welcome, welcome); }
Message to_message(const Run& run) { return message_of(Kind::Run, run); }
Message to_message(const Done& done) { return message_of(Kind::Done, done); }
Message refused(const std::string& reason) { return message_of(Kind::Refused, reason); }
Message output(const std::string& text) { return message_of(Kind::Output, text); }
Message ended(int status) { return message_of(Kind::Ended, status); }
Message signal(int number) { return message_of(Kind::Signal, number); }

Join read_join(const Message& message) { return read<Join>(message); }
Welcome read_welcome(const Message& message) { return read<Welcome>(message); }
Run read_run(const Message& message) { return read<Run>(message); }
Done read_done(const Message& message) { return read<Done>(message); }
std::string read_text(const Message& message) { return read<std::string>(message); }
int read_number(const Message& message) { return read<int>(message); }

}  // namespace lockstep::launcher
