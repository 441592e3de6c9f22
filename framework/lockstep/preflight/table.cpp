#include "lockstep/preflight/checks/checks.h"
#include "lockstep/preflight/look.h"

namespace lockstep::preflight {
namespace {

// In the order of telling: what explains other findings comes first.
const Check* const kCheckTable[] = {
    &kFiles, &kProgram,   &kBuild,      &kMpi,          &kLibraries,    &kOptions,         &kArithmetic,
    &kData,  &kHostNames, &kCores,      &kSharedMemory, &kDirectCopies, &kLimits,          &kClocks,
    &kDisk,  &kNames,     &kInterfaces, &kPorts,        &kLinks,        &kMemoryBandwidth,
};

}  // namespace

std::span<const Check* const> all_checks() { return kCheckTable; }

}  // namespace lockstep::preflight
