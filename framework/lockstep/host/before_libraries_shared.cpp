// For a shared library: its code runs after the libraries that it needs were initialised.
#include "lockstep/host/before_libraries.h"

namespace lockstep::host {

void keep_hangup_ignored() {}

}  // namespace lockstep::host
