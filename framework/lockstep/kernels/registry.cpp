#include "lockstep/kernels/registry.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/core/error.h"

namespace lockstep {

void KernelRegistry::insert(std::string_view set, std::string_view op, KernelFactory factory) {
  entries_[std::string(op)].push_back({std::string(set), std::move(factory)});
}

std::vector<KernelOffer> KernelRegistry::offers(const KernelRequest& request, std::span<const Layout> offered) const {
  std::vector<KernelOffer> all;
  const auto found = entries_.find(request.op->name());
  if (found == entries_.end()) return all;
  const auto ask = [&](bool preferred) {
    for (auto entry = found->second.rbegin(); entry != found->second.rend(); ++entry) {
      if ((entry->set == request.options.prefer) != preferred) continue;
      for (KernelOffer& offer : entry->factory(request, offered)) all.push_back(std::move(offer));
    }
  };
  ask(true);
  ask(false);
  // Choices are remembered by name, so no two offers may share one.
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
  const std::string where = request.place.empty() ? "" : request.place + ": ";
  fail(request.op->name(), "{}no kernel is registered for inputs ({})", where, types);
}

std::vector<std::string> KernelRegistry::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, entries] : entries_) names.push_back(op);
  return names;
}

KernelRegistry& kernel_registry() {
  static KernelRegistry registry = [] {
    KernelRegistry built_in;
    register_generic_kernels(built_in);
    register_onednn_kernels(built_in);
    register_vector_kernels(built_in);
    return built_in;
  }();
  return registry;
}

void register_plain_kernel(std::string_view op, std::function<void(const KernelRequest&, const Arguments&)> run) {
  kernel_registry().add(
      "custom", op,
      [run = std::move(run)](const KernelRequest& request, std::span<const Layout>) -> std::optional<KernelOffer> {
        if (request.has_bf16()) return std::nullopt;  // the plan goes through f32
        KernelOffer offer;
        offer.implementation = "custom";
        offer.inputs.resize(request.inputs.size());
        offer.outputs.resize(request.outputs.size());
        offer.build = [run, request] { return make_kernel([run, request](const Arguments& a) { run(request, a); }); };
        return offer;
      });
}

}  // namespace lockstep
