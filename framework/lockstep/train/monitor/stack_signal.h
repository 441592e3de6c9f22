// A process that does not go on may still tell where it is: on a signal, its main thread writes its stack. For
// programs; only a watchdog sends the signal, and only to processes that said they would answer.
#pragma once

#include <filesystem>

namespace lockstep::train {

// Once, in the main thread: from now on the process answers, to stderr at first.
void answer_with_stack();
// The signal that makes this process answer; 0: it does not.
int stack_signal();
// Where stacks are appended to. Throws Error where that cannot be written.
void write_stacks_to(const std::filesystem::path& file);

}  // namespace lockstep::train
