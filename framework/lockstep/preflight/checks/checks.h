// The checks, each in the file of its name.
#pragma once

#include "lockstep/preflight/check.h"

namespace lockstep::preflight {

extern const Check kProgram, kBuild, kOptions, kArithmetic, kData;  // same_subject.cpp
extern const Check kMpi, kLibraries;                                // mpi.cpp, libraries.cpp
extern const Check kFiles, kHostNames, kCores, kSharedMemory, kDirectCopies, kLimits, kClocks, kDisk;
extern const Check kNames, kInterfaces, kPorts, kLinks, kMemoryBandwidth;  // thorough

}  // namespace lockstep::preflight
