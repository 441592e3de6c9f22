// The explicit table of implementations by op name, in named sets. A later set is asked first, so a user's kernel
// replaces a built-in one. A name belongs to one class of op: the library's by its tables, a user's when its first
// kernel is asked for; an op of another class with that name is refused, as it would get kernels that are not its own.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <type_traits>
#include <typeindex>
#include <vector>

#include "lockstep/kernels/kernel.h"

namespace lockstep::kernels {

// `factory` answers as a KernelFactory does, or with an optional offer.
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

// A row of a set's table: the kernel of the ops of one class, which have this name.
struct KernelRow {
  std::string_view op;
  std::type_index type;
  KernelFactory factory;
};
template <class T, class Factory>
KernelRow kernel_row(std::string_view op, Factory factory) {
  return {op, typeid(T), as_kernel_factory(std::move(factory))};
}

class KernelRegistry {
 public:
  // The one form in which the library's sets register: a table, whose names become the library's. `wrap` is applied to
  // every factory: it can name offers and turn requests down. The set's name is that of offers without a name.
  void add(std::string_view set, std::vector<KernelRow> table,
           const std::function<KernelFactory(KernelFactory)>& wrap = {});
  // A single kernel, of a user's op or for one of the library's.
  template <class Factory>
  void add(std::string_view set, std::string_view op, Factory factory) {
    insert(set, op, as_kernel_factory(std::move(factory)));
  }

  bool is_reserved(std::string_view op) const;

  // All offers for the request, the preferred one first; empty when nobody supports it. Throws Error where the name of
  // the op belongs to another class.
  std::vector<KernelOffer> offers(const KernelRequest& request, std::span<const Layout> offered) const;
  // The preferred one; throws Error naming op and types when nobody supports it.
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
  void reserve(std::string_view op, std::type_index type);  // the name is the library's, and stands for this class
  void insert(std::string_view set, std::string_view op, KernelFactory factory);
  void require_owner(const KernelRequest& request) const;

  std::map<std::string, std::vector<Entry>, std::less<>> entries_;
  mutable std::mutex mutex_;  // of owners_
  mutable std::map<std::string, Owner, std::less<>> owners_;
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
void register_native_kernels(KernelRegistry& registry);
bool has_onednn();
std::string onednn_version();  // with the instructions it uses, on which bits depend; "without oneDNN"

}  // namespace lockstep::kernels
