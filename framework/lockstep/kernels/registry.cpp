#include "lockstep/kernels/registry.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "lockstep/core/error.h"
#include "lockstep/core/tensor.h"
#include "lockstep/kernels/native/rows.h"

namespace lockstep::kernels {
namespace {

std::string class_name(const char* mangled) {
  int status = 0;
  const std::unique_ptr<char, FreeDeleter> name(abi::__cxa_demangle(mangled, nullptr, nullptr, &status));
  return status == 0 ? name.get() : mangled;
}

std::string site(const KernelRequest& request) { return request.path.empty() ? "" : request.path + ": "; }

}  // namespace

void KernelRequest::fail_class(const std::type_info& expected) const {
  const Op& actual = *op;
  fail(actual.name(), "{}the kernel of this name is for ops of the class {}, the op is a {}", site(*this),
       class_name(expected.name()), class_name(typeid(actual).name()));
}

void KernelRegistry::add(std::string_view set, std::vector<KernelRow> table,
                         const std::function<KernelFactory(KernelFactory)>& wrap) {
  for (KernelRow& row : table) {
    reserve(row.op, row.type);
    insert(set, row.op, wrap ? wrap(std::move(row.factory)) : std::move(row.factory));
  }
}

void KernelRegistry::reserve(std::string_view op, std::type_index type) {
  const std::scoped_lock lock(mutex_);
  const auto [found, is_new] = owners_.try_emplace(std::string(op), Owner{type, true});
  check(is_new || found->second.type == type, "kernels", "two of the library's ops are named '{}': {} and {}", op,
        class_name(found->second.type.name()), class_name(type.name()));
}

bool KernelRegistry::is_reserved(std::string_view op) const {
  const std::scoped_lock lock(mutex_);
  const auto found = owners_.find(op);
  return found != owners_.end() && found->second.reserved;
}

void KernelRegistry::require_owner(const KernelRequest& request) const {
  const Op& op = *request.op;
  const std::scoped_lock lock(mutex_);
  const auto [found, is_new] = owners_.try_emplace(std::string(op.name()), Owner{typeid(op), false});
  const Owner& owner = found->second;
  if (is_new || owner.type == typeid(op)) return;
  fail(op.name(),
       "{}the op is of the class {}, but the name '{}' belongs to {} {}; kernels are found by name: give the op "
       "another name",
       site(request), class_name(typeid(op).name()), op.name(), owner.reserved ? "the library's" : "the class",
       class_name(owner.type.name()));
}

void KernelRegistry::insert(std::string_view set, std::string_view op, KernelFactory factory) {
  entries_[std::string(op)].push_back({std::string(set), std::move(factory)});
}

std::vector<KernelOffer> KernelRegistry::offers(const KernelRequest& request, std::span<const Layout> offered) const {
  require_owner(request);
  std::vector<KernelOffer> all;
  const auto found = entries_.find(request.op->name());
  if (found == entries_.end()) return all;
  const auto ask = [&](bool preferred) {
    for (auto entry = found->second.rbegin(); entry != found->second.rend(); ++entry) {
      if ((entry->set == request.options.prefer) != preferred) continue;
      for (KernelOffer& offer : entry->factory(request, offered)) {
        if (request.wants_portable() && !offer.portable) continue;
        if (offer.implementation.empty()) offer.implementation = entry->set;
        all.push_back(std::move(offer));
      }
    }
  };
  ask(true);
  ask(false);
  // The cache of choices stores names, so no two offers may have the same name.
  for (std::size_t i = 1; i < all.size(); ++i) {
    const auto same =
        std::count_if(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(i), [&](const KernelOffer& o) {
          return o.implementation.substr(0, o.implementation.find('#')) == all[i].implementation;
        });
    if (same > 0) all[i].implementation += fmt::format("#{}", same + 1);
  }
  return all;
}

KernelOffer KernelRegistry::offer(const KernelRequest& request, std::span<const Layout> offered) const {
  auto all = offers(request, offered);
  if (all.empty()) fail_without_kernel(request);
  return std::move(all.front());
}

void fail_without_kernel(const KernelRequest& request) {
  std::string types;
  for (const Type& t : request.inputs) types += (types.empty() ? "" : ", ") + t.str();
  if (request.wants_portable()) {
    KernelRequest fast = request;
    fast.options.bits = KernelOptions::Bits::Fast;
    std::string names;
    for (const KernelOffer& offer : kernel_registry().offers(fast, std::vector<Layout>(request.inputs.size())))
      names += (names.empty() ? "" : ", ") + offer.implementation;
    check(
        names.empty(), request.op->name(),
        "{}with --bits portable no kernel promises the same bits on every processor for inputs ({}); without that "
        "promise there are: {}. Use --bits fast, another type or another layer; an offer of your own kernel that keeps "
        "the promise says `portable = true` (kernels/kernel.h)",
        site(request), types, names);
  }
  fail(request.op->name(), "{}no kernel is registered for inputs ({})", site(request), types);
}

std::vector<std::string> KernelRegistry::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, entries] : entries_) names.push_back(op);
  return names;
}

KernelRegistry& kernel_registry() {
  struct BuiltIn : KernelRegistry {
    BuiltIn() {
      native::register_products(*this, native::Place::Last);
      register_generic_kernels(*this);
      native::register_products(*this, native::Place::Behind);
      register_native_convolutions(*this);
      register_onednn_kernels(*this);
      register_native_kernels(*this);
    }
  };
  static BuiltIn registry;
  return registry;
}

void register_plain_kernel(std::string_view op, std::function<void(const KernelRequest&, const Arguments&)> run,
                           bool portable) {
  kernel_registry().add("custom", op,
                        [run = std::move(run), portable](const KernelRequest& request,
                                                         std::span<const Layout>) -> std::optional<KernelOffer> {
                          if (request.has_bf16()) return std::nullopt;  // the plan goes through f32
                          KernelOffer offer;
                          offer.portable = portable;
                          offer.implementation = "custom";
                          offer.inputs.resize(request.inputs.size());
                          offer.outputs.resize(request.outputs.size());
                          offer.build = [run, request] {
                            return make_kernel([run, request](const Arguments& a) { run(request, a); });
                          };
                          return offer;
                        });
}

}  // namespace lockstep::kernels
