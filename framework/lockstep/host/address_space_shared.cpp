// For a shared library: its code runs after the libraries that it needs were initialised, which is too late.
#include "lockstep/host/address_space.h"

namespace lockstep::host {

bool refuses_at_start() { return false; }

}  // namespace lockstep::host
