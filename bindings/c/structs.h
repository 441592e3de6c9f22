// Structures that cross the C interface: both sides may have been compiled with another version of lockstep_c.h, so
// each structure says its size, and only the bytes that both sides know are read and written.
#pragma once

#include <lockstep_c.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>

#include "bindings/c/failure.h"

namespace lockstep::bindings {

// Returns the caller's structure, with `defaults` in the fields that the caller does not know.
template <class Struct>
Struct from_caller(const Struct& theirs, const std::type_identity_t<Struct>& defaults, const char* name) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  Struct mine = defaults;
  const std::size_t size = theirs.size;
  if (size < 2 * sizeof(std::size_t) || size > 64 * sizeof(Struct)) {
    throw CodedError(LOCKSTEP_ERROR_ARGUMENT,
                     formatted("[c] {}.size is {}, expected sizeof({}), {}: initialise the structure with its macro",
                               name, size, name, sizeof(Struct)));
  }
  std::memcpy(&mine, &theirs, std::min(size, sizeof(Struct)));
  return mine;
}

// Throws if to_caller() would. Null is allowed.
template <class Struct>
void check_caller(const Struct* theirs, const char* name) {
  if (theirs != nullptr) from_caller(*theirs, Struct{}, name);
}

// Writes the fields that the caller knows; the caller's size stays. Null is allowed.
template <class Struct>
void to_caller(Struct mine, Struct* theirs, const char* name) {
  if (theirs == nullptr) return;
  mine.size = from_caller(*theirs, mine, name).size;
  std::memcpy(theirs, &mine, std::min(mine.size, sizeof(Struct)));
}

}  // namespace lockstep::bindings
