// The explicit table of implementations by op name. A later entry is asked first, so a user's kernel replaces a
// built-in one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep {

class KernelRegistry {
 public:
  void add(std::string op, KernelFactory factory);
  // The first offer for the request; throws Error naming op and types when nobody supports it.
  KernelOffer offer(const KernelRequest& request, std::span<const Layout> offered) const;
  std::vector<std::string> ops() const;  // the names that have a kernel, sorted

 private:
  std::map<std::string, std::vector<KernelFactory>, std::less<>> factories_;
};

// The process's registry, with the built-in kernels in it. Add to it before tracing, from one thread.
KernelRegistry& kernel_registry();

// For custom ops: a kernel on plain f32 or f64 memory, `run(request, arguments)`; the plan inserts what reorders that
// takes.
void register_plain_kernel(std::string op, std::function<void(const KernelRequest&, const Arguments&)> run);

// The back ends' tables.
void register_generic_kernels(KernelRegistry& registry);
void register_onednn_kernels(KernelRegistry& registry);
bool has_onednn();

}  // namespace lockstep
