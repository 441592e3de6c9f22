// Text of unknown origin (names of files, classes, tensors, hosts, keys of option files; messages that quote them) as a
// terminal may show it: bytes that would move the cursor, change colours or hide text are written out instead.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

// Printable UTF-8 as it is. Tab, newline and return as \t, \n, \r; other control characters (C0, DEL, C1), the marks
// that turn the direction of text, and bytes that are no UTF-8 as \x1b, byte for byte.
std::string printable(std::string_view text);

// The same, but lines stay lines.
std::string printable_lines(std::string_view text);

// The last line of what a program has said, without its end; line ends that follow it do not count.
std::string last_line(std::string_view text);

bool is_utf8(std::string_view text);  // RFC 3629

}  // namespace lockstep
