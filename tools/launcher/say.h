// The lines of a launcher on stderr.
#pragma once

#include <functional>
#include <string>

namespace lockstep::launcher {

using Say = std::function<void(const std::string&)>;

// "lockstep launch: TEXT".
void say(const std::string& text);

}  // namespace lockstep::launcher
