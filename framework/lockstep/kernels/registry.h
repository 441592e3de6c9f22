// The table of kernels by op name, in named sets. The set that was added last is asked first, so a user's kernel
// replaces a built-in one. A name belongs to one class of op: for ops of the library since their table was added, for a
// user's op since the first request for its kernel. An op of another class with the same name is refused, as it would
// run kernels of the wrong class.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels {

// Returns `factory` as a KernelFactory; it may return offers, or an optional offer.
template <class Factory>
KernelFactory as_kernel_factory(Factory factory) {
  if constexpr (std::is_convertible_v<Factory, KernelFactory>) {
    return factory;
  } else {
    return [factory = std::move(factory)](const KernelRequest& request, std::span<const Layout> offered) {
      std::vector<KernelOffer> offers;
      if (auto offer = factory(request, offered)) offers.push_back(std::move(*offer));
      return offers;
    };
  }
}

// A row of a set's table: the kernel factory for the ops of one class, all of which have this name.
struct KernelRow {
  std::string_view op;
  std::type_index type;
  KernelFactory factory;
};
template <class T, class Factory>
KernelRow kernel_row(std::string_view op, Factory factory) {
  return {op, typeid(T), as_kernel_factory(std::move(factory))};
}

// Add kernels from one thread, before models are compiled. Queries may come from any thread.
class KernelRegistry {
 public:
  // Adds a set of the library as a table; its op names become reserved. `wrap` is applied to every factory; it can name
  // offers and refuse requests. An offer without a name gets the name of the set. Throws Error if a name is reserved
  // for another class.
  void add(std::string_view set, std::vector<KernelRow> table,
           const std::function<KernelFactory(KernelFactory)>& wrap = {});
  // Adds a single kernel, for a user's op or for an op of the library.
  template <class Factory>
  void add(std::string_view set, std::string_view op, Factory factory) {
    insert(set, op, as_kernel_factory(std::move(factory)));
  }

  // Whether the name belongs to an op of the library.
  bool is_reserved(std::string_view op) const;

  // Returns all offers for the request, the preferred one first; none if no set supports it. If the request wants
  // portable bits, only offers that promise them count. Throws Error if the name of the op belongs to another class.
  std::vector<KernelOffer> offers(const KernelRequest& request, std::span<const Layout> offered) const;
  // Returns the preferred offer. Throws Error that names op and types if no set supports the request.
  KernelOffer offer(const KernelRequest& request, std::span<const Layout> offered) const;
  std::vector<std::string> ops() const;  // the names that have a kernel, sorted

 private:
  struct Entry {
    std::string set;
    KernelFactory factory;
  };
  struct Owner {
    std::type_index type;
    bool reserved;
  };
  void reserve(std::string_view op, std::type_index type);  // from now on the name belongs to this class of the library
  void insert(std::string_view set, std::string_view op, KernelFactory factory);
  void require_owner(const KernelRequest& request) const;

  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
  mutable std::mutex mutex_;  // of owners_
  mutable std::map<std::string, Owner, std::less<>> owners_;
};

// The registry of the process; it contains the built-in kernels and lives until the process ends.
KernelRegistry& kernel_registry();

// Registers a kernel for a custom op: `run(request, arguments)` computes on memory in plain layout, f32 or f64. The
// plan inserts the reorders and casts that this needs. `portable`: the function keeps KernelOffer::portable's promise.
// Call it from one thread, before models are compiled.
void register_plain_kernel(std::string_view op, std::function<void(const KernelRequest&, const Arguments&)> run,
                           bool portable = false);

// Throws the Error for a request that no set supports, or that none supports with portable bits.
[[noreturn]] void fail_without_kernel(const KernelRequest& request);

// These add the tables of the built-in sets.
void register_generic_kernels(KernelRegistry& registry);
void register_onednn_kernels(KernelRegistry& registry);
void register_native_kernels(KernelRegistry& registry);
void register_native_convolutions(KernelRegistry& registry);  // those that oneDNN's come before, where there are any
// Whether the library was built with oneDNN.
bool has_onednn();
// The version of oneDNN and the instruction set that it uses, as bits depend on both; or "without oneDNN".
std::string onednn_version();

}  // namespace lockstep::kernels
