#include "lockstep/kernels/native/native_kernels.h"

#include <cstdlib>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep::kernels {
namespace {

const native::Level& choose() {
  const char* wanted = std::getenv("LOCKSTEP_ISA");
  const native::Level* best = nullptr;
  std::string usable;
  for (const native::Level& level : native::levels()) {
    if (!level.supported) continue;
    if (wanted == nullptr || level.name == wanted) best = &level;
    usable += usable.empty() ? "" : ", ";
    usable += level.name;
  }
  check(best != nullptr, "LOCKSTEP_ISA", "is \"{}\", expected a level that this machine supports: {}",
        wanted ? wanted : "", usable);
  return *best;
}

const native::Level& chosen() {
  static const native::Level& level = choose();
  return level;
}

}  // namespace

const NativeKernels& native_kernels() { return *chosen().kernels; }

std::string_view native_level() { return chosen().name; }

bool native_fused() { return chosen().fused; }

std::string_view native_pairs() {
  const native::PairTable* const table = native::pair_table(native_kernels());
  if (table == nullptr) return "none";
  return table == &native_kernels().pair_tiles ? "tiles" : "dots";
}

const NativeKernels* native_kernels(std::string_view name) {
  for (const native::Level& level : native::levels()) {
    if (level.supported && level.name == name) return level.kernels;
  }
  return nullptr;
}

}  // namespace lockstep::kernels
