#include "lockstep/kernels/registry.h"

#include "lockstep/core/error.h"

namespace lockstep {

void KernelRegistry::add(std::string op, KernelFactory factory) {
  factories_[std::move(op)].push_back(std::move(factory));
}

KernelOffer KernelRegistry::offer(const KernelRequest& request, std::span<const Layout> offered) const {
  const std::string_view op = request.op->name();
  if (const auto found = factories_.find(op); found != factories_.end()) {
    for (auto factory = found->second.rbegin(); factory != found->second.rend(); ++factory) {
      if (auto offer = (*factory)(request, offered)) return std::move(*offer);
    }
  }
  std::string types;
  for (const Type& t : request.inputs) types += (types.empty() ? "" : ", ") + t.str();
  fail(op, "no kernel is registered for inputs ({})", types);
}

std::vector<std::string> KernelRegistry::ops() const {
  std::vector<std::string> names;
  for (const auto& [op, factories] : factories_) names.push_back(op);
  return names;
}

KernelRegistry& kernel_registry() {
  static KernelRegistry registry = [] {
    KernelRegistry built_in;
    register_generic_kernels(built_in);
    register_onednn_kernels(built_in);
    return built_in;
  }();
  return registry;
}

void register_plain_kernel(std::string op, std::function<void(const KernelRequest&, const Arguments&)> run) {
  kernel_registry().add(std::move(op), [run = std::move(run)](const KernelRequest& request, std::span<const Layout>) {
    KernelOffer offer;
    offer.implementation = "custom";
    offer.inputs.resize(request.inputs.size());
    offer.outputs.resize(request.outputs.size());
    offer.build = [run, request] { return make_kernel([run, request](const Arguments& a) { run(request, a); }); };
    return offer;
  });
}

}  // namespace lockstep
