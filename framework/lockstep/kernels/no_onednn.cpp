// Stands in for kernels/onednn/ where the library is built without it.
#include "lockstep/kernels/registry.h"

namespace lockstep::kernels {

void register_onednn_kernels(KernelRegistry&) {}
bool has_onednn() { return false; }
std::string onednn_version() { return "without oneDNN"; }

}  // namespace lockstep::kernels
