// Replaces kernels/onednn/ in a build without oneDNN.
#include "lockstep/kernels/registry.h"

namespace lockstep::kernels {

void register_onednn_kernels(KernelRegistry&) {}
bool has_onednn() { return false; }
std::string onednn_version() { return "without oneDNN"; }

}  // namespace lockstep::kernels
