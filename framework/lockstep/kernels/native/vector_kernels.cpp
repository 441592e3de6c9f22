#include "lockstep/kernels/native/vector_kernels.h"

#include <cstdlib>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

const vector::Level& choose() {
  const char* wanted = std::getenv("LOCKSTEP_ISA");
  const vector::Level* best = nullptr;
  std::string usable;
  for (const vector::Level& level : vector::levels()) {
    if (!level.supported) continue;
    if (wanted == nullptr || level.name == wanted) best = &level;
    usable += usable.empty() ? "" : ", ";
    usable += level.name;
  }
  check(best != nullptr, "LOCKSTEP_ISA", "is \"{}\", expected one of what this machine can run: {}",
        wanted ? wanted : "", usable);
  return *best;
}

const vector::Level& chosen() {
  static const vector::Level& level = choose();
  return level;
}

}  // namespace

const VectorKernels& vector_kernels() { return *chosen().kernels; }

std::string_view vector_level() { return chosen().name; }

const VectorKernels* vector_kernels(std::string_view name) {
  for (const vector::Level& level : vector::levels()) {
    if (level.supported && level.name == name) return level.kernels;
  }
  return nullptr;
}

}  // namespace lockstep
