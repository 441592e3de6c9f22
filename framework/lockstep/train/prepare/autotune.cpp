#include "lockstep/train/prepare/autotune.h"

#include <fmt/format.h>
#include <omp.h>
#include <xxhash.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lockstep/comm/agreement.h"
#include "lockstep/host/threads.h"
#include "lockstep/kernels/native/native_kernels.h"
#include "lockstep/kernels/registry.h"
#include "lockstep/train/prepare/autotune_cache.h"

namespace lockstep::train {
namespace {

using Choices = KernelChoices;

std::string machine() {
  return fmt::format("{} {} {} threads {} {}", host::cpu_info().model, host::cpu_info().instructions,
                     omp_get_max_threads(), kernels::native_level(), kernels::onednn_version());
}

std::size_t index_of(const Choices& choices, const kernels::KernelRequest& request,
                     std::span<const kernels::KernelOffer> offers) {
  const auto found = choices.find(kernels::choice_key(request));
  if (found == choices.end()) return offers.size();
  for (std::size_t i = 0; i < offers.size(); ++i) {
    if (offers[i].implementation == found->second) return i;
  }
  return offers.size();
}

// Makes rank 0's choices for the requests of `compile`, and no others: takes those in the cache, and measures the rest.
Choices measured(const std::filesystem::path& cache,
                 const std::function<void(const kernels::KernelChooser&)>& compile) {
  const Choices known = read_autotune_cache(cache, machine());
  Choices choices;
  compile([&](const kernels::KernelRequest& request, std::span<const kernels::KernelOffer> offers) {
    if (!kernels::is_measured(request)) return std::size_t{0};
    std::size_t index = index_of(choices, request, offers);
    if (index == offers.size()) index = index_of(known, request, offers);
    if (index == offers.size()) index = kernels::measure_fastest(request, offers);
    choices[kernels::choice_key(request)] = offers[index].implementation;
    return index;
  });
  Choices all = choices;
  all.insert(known.begin(), known.end());
  if (all != known) write_autotune_cache(cache, machine(), all);
  return choices;
}

}  // namespace

std::filesystem::path autotune_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache != '\0')
    return std::filesystem::path(cache) / "lockstep" / "kernels.json";
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache" / "lockstep" / "kernels.json";
}

Autotuned autotune(const comm::Communicator& comm, const std::filesystem::path& cache,
                   const std::function<void(const kernels::KernelChooser&)>& compile) {
  std::string text;
  comm::collectively(comm, [&] {
    if (comm.is_root()) text = nlohmann::json(measured(cache, compile)).dump();
  });
  text = comm.broadcast_string(text);
  const Choices choices = nlohmann::json::parse(text).get<Choices>();
  const auto choose = [choices](const kernels::KernelRequest& request, std::span<const kernels::KernelOffer> offers) {
    const std::size_t index = index_of(choices, request, offers);
    return index < offers.size() ? index : 0;
  };
  return {choose, XXH3_64bits(text.data(), text.size())};
}

}  // namespace lockstep::train
