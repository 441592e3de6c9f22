// Of a shared library, whose code runs when the libraries that it needs have been initialised.
#include "lockstep/host/address_space.h"

namespace lockstep::host {

bool refuses_at_start() { return false; }

}  // namespace lockstep::host
