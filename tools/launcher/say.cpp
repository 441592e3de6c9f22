#include "tools/launcher/say.h"

#include <fmt/format.h>
#include <unistd.h>

#include "lockstep/core/printable.h"
#include "lockstep/core/stream_writer.h"

namespace lockstep::launcher {

void say(const std::string& text) {
  write_patiently(STDERR_FILENO, fmt::format("lockstep launch: {}\n", printable_lines(text)));
}

}  // namespace lockstep::launcher
