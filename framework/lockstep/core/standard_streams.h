// The descriptors 0, 1 and 2 of a program. Where one is closed at the start (`program <&- >&- 2>&-`, some daemons), the
// next file that is opened gets its number, and what libraries print on stderr lands in that file. For programs, as the
// first call in main(); a library must not change its caller's descriptors.
#pragma once

namespace lockstep {

// Opens /dev/null in place of each of the three that is closed. Throws Error where that fails.
void open_standard_streams();

}  // namespace lockstep
