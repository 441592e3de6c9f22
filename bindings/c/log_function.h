// A function of the program as the library's log (core/log.h). One thread.
#pragma once

#include <lockstep_c.h>

namespace lockstep::bindings {

// See lockstep_set_log(). Throws CodedError for a level that does not exist.
void set_log_function(lockstep_log_function function, int least, void* user);

}  // namespace lockstep::bindings
