#include "lockstep/checkpoint/state.h"

#include <algorithm>
#include <functional>

#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"

namespace lockstep::checkpoint {

std::vector<Destination> weight_destinations(plan::ParameterStore& store) {
  check(store.allocated(), "weights", "the model's parameters have no memory yet; compile a plan first");
  std::vector<Destination> destinations;
  for (const NamedParameter& p : store.parameters()) {
    destinations.push_back(
        {p.name, p.parameter, -1, [&store, name = p.name](const Tensor& tensor) { store.write(name, tensor); }});
  }
  return destinations;
}

TensorMatch match_weights(plan::ParameterStore& store, std::span<const io::TensorInfo> tensors,
                          const LoadOptions& options, const std::string& file) {
  const auto kept = [&](const std::string& name) {
    return std::ranges::find(options.keep, name) != options.keep.end();
  };
  std::vector<Destination> destinations = weight_destinations(store);
  std::erase_if(destinations, [&](const Destination& to) { return kept(to.name); });
  TensorMatch found = match_tensors(destinations, tensors, options.prefix);
  std::vector<std::string>& unexpected = found.report.unexpected;
  const auto skipped = std::stable_partition(unexpected.begin(), unexpected.end(), std::not_fn(kept));
  found.report.skipped.assign(skipped, unexpected.end());
  unexpected.erase(skipped, unexpected.end());
  if (options.strict) found.report.require_complete("weights", file);
  std::ranges::stable_sort(found.pairs, {}, [](const auto& pair) { return pair.second; });
  return found;
}

void write_weights(plan::ParameterStore& store, const TensorMatch& match, const io::TensorSource& tensors) {
  write_tensors(store, match, tensors);
  store.refresh();
}

LoadReport load_weights(plan::ParameterStore& store, const io::TensorSource& tensors, const LoadOptions& options,
                        const std::string& file) {
  const TensorMatch found = match_weights(store, tensors.infos, options, file);
  write_weights(store, found, tensors);
  return found.report;
}

LoadReport load_weights(plan::ParameterStore& store, std::span<const io::NamedTensor> tensors,
                        const LoadOptions& options) {
  return load_weights(store, io::source_of(tensors), options, "");
}

LoadReport load_weights(plan::ParameterStore& store, const std::filesystem::path& file, const LoadOptions& options) {
  WeightsFile stored(file);
  return load_weights(store, stored.tensors(), options, file.string());
}

std::vector<io::NamedTensor> weights(const plan::ParameterStore& store, const std::string& prefix) {
  std::vector<io::NamedTensor> tensors;
  for (const NamedParameter& p : store.parameters()) tensors.push_back({prefix + p.name, store.read(p.name)});
  return tensors;
}

}  // namespace lockstep::checkpoint
