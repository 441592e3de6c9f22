// Writes the traces of all ranks to one file in the Trace Event Format, which Perfetto and chrome://tracing open: one
// process per rank, one thread per track, one clock.
#pragma once

#include <filesystem>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/trace.h"
#include "lockstep/io/file_descriptor.h"

namespace lockstep::train {

// Creates an empty file, so that an invalid path is an error before the first step. write_trace() writes to this file,
// also if its folder is moved meanwhile. Throws Error.
io::FileDescriptor open_trace(const std::filesystem::path& path);

// Writes the traces; rank 0 writes, and returns false with a warning if that fails. Clocks are aligned by messages to
// rank 0 and back, to about half of the shortest round trip. `file` is rank 0's result of open_trace() and is closed;
// `path` names it in messages. Collective.
bool write_trace(const comm::Communicator& comm, Trace& trace, io::FileDescriptor file,
                 const std::filesystem::path& path);

}  // namespace lockstep::train
