// The explicit table of implementations by op name, in named sets. A later set is asked first, so a user's kernel
// replaces a built-in one.
#pragma once

#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep {

class KernelRegistry {
 public:
  // `factory` answers as a KernelFactory does, or with an optional offer. The set's name begins the implementation's in
  // printed plans.
  template <class Factory>
  void add(std::string_view set, std::string_view op, Factory factory) {
    if constexpr (std::is_convertible_v<Factory, KernelFactory>) {
      insert(set, op, std::move(factory));
    } else {
      insert(set, op, [factory](const KernelRequest& request, std::span<const Layout> offered) {
        std::vector<KernelOffer> offers;
        if (auto offer = factory(request, offered)) offers.push_back(std::move(*offer));
        return offers;
      });
    }
  }

  // All offers for the request, the preferred one first; empty when nobody supports it.
  std::vector<KernelOffer> offers(const KernelRequest& request, std::span<const Layout> offered) const;
  // The preferred one; throws Error naming op and types when nobody supports it.
  KernelOffer offer(const KernelRequest& request, std::span<const Layout> offered) const;
  std::vector<std::string> ops() const;  // the names that have a kernel, sorted

 private:
  struct Entry {
    std::string set;
    KernelFactory factory;
  };
  void insert(std::string_view set, std::string_view op, KernelFactory factory);
  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
};

// The process's registry, with the built-in kernels in it. Add to it before tracing, from one thread.
KernelRegistry& kernel_registry();

// For custom ops: a kernel on plain f32 or f64 memory, `run(request, arguments)`; the plan inserts what reorders that
// takes.
void register_plain_kernel(std::string_view op, std::function<void(const KernelRequest&, const Arguments&)> run);

[[noreturn]] void fail_without_kernel(const KernelRequest& request);

// The back ends' tables.
void register_generic_kernels(KernelRegistry& registry);
void register_onednn_kernels(KernelRegistry& registry);
void register_vector_kernels(KernelRegistry& registry);
bool has_onednn();
std::string onednn_version();  // with the instructions it uses, on which bits depend; "without oneDNN"

}  // namespace lockstep
