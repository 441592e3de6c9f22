// Writes the traces of all ranks as one file in the Trace Event Format that Perfetto and chrome://tracing open: a
// process per rank, a thread per track, one clock.
#pragma once

#include <filesystem>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/trace.h"
#include "lockstep/io/file_descriptor.h"

namespace lockstep::train {

// Makes the file, empty, so that a path which cannot be written is known before the first step. What is written later
// goes into this file, also if the folder is moved meanwhile. Throws Error.
io::FileDescriptor open_trace(const std::filesystem::path& path);

// Collective; rank 0 writes, and says whether it could, with a warning if not. Clocks are aligned by messages to rank 0
// and back, to about half of the shortest round trip. `file` is what open_trace() gave rank 0, and is closed; `path` is
// for messages.
bool write_trace(const comm::Communicator& comm, Trace& trace, io::FileDescriptor file,
                 const std::filesystem::path& path);

}  // namespace lockstep::train
