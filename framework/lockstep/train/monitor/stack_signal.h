// A process that stands still can still show where: on a signal, its main thread writes its stack. For programs. Only a
// watchdog sends the signal, and only to processes that called answer_with_stack().
#pragma once

#include <filesystem>

namespace lockstep::train {

// Installs the handler, which writes to stderr. Call it once, in the main thread.
void answer_with_stack();
// Returns the signal to which this process answers; 0: none.
int stack_signal();
// Makes the handler append stacks to `file`; throws Error if the file cannot be written.
void write_stacks_to(const std::filesystem::path& file);

}  // namespace lockstep::train
