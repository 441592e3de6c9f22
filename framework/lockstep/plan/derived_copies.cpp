#include "lockstep/plan/derived_copies.h"

#include <algorithm>

#include "lockstep/core/parallel_for.h"

namespace lockstep::plan {

int DerivedCopies::find(const Parameter* parameter, const Layout& layout, DType dtype) const {
  const auto is_same = [&](const Copy& c) {
    return c.parameter == parameter && c.layout == layout && c.dtype == dtype;
  };
  const auto found = std::ranges::find_if(copies_, is_same);
  return found == copies_.end() ? -1 : static_cast<int>(found - copies_.begin());
}

int DerivedCopies::add(const Source& source, const Layout& layout, DType dtype) {
  copies_.push_back({source.parameter, layout, dtype, source.value, source.in_bucket,
                     DerivedCopy(source.parameter->shape, {source.dtype, source.layout}, {dtype, layout})});
  return static_cast<int>(copies_.size()) - 1;
}

std::size_t DerivedCopies::bytes(const Copy& c) {
  const auto bytes = static_cast<std::size_t>(c.layout.storage_elements(c.parameter->shape)) * size_of(c.dtype);
  return whole_lines(bytes);
}

std::size_t DerivedCopies::bytes() const {
  std::size_t total = 0;
  for (const Copy& c : copies_) total += bytes(c);
  return total;
}

// The copies of the first plan are the same on all ranks, so ranks can share them. Later plans are for batches that
// only some ranks may have, so their further copies are private; copies of values that are not shared are private too.
void DerivedCopies::allocate() {
  std::size_t common = 0;
  for (Copy& c : copies_) {
    if (c.data != nullptr) continue;
    c.common = !memory_.shares() || (c.in_bucket && !has_common_);
    if (c.common) common += bytes(c);
  }
  std::byte* next = memory_.shares() && has_common_ ? nullptr : memory_.common(common).data();
  has_common_ = true;
  for (Copy& c : copies_) {
    if (c.data != nullptr) continue;
    if (c.common) {
      c.data = next;
      next += bytes(c);
    } else {
      c.data = heap_.common(bytes(c)).data();
      has_own_ = has_own_ || c.in_bucket;
    }
    refresh(c);
  }
}

void DerivedCopies::refresh(Copy& c) {
  if (c.data == nullptr || (c.common && !memory_.fills_common())) return;
  parallel_for(c.form.elements(), 1, [&](std::int64_t begin, std::int64_t end) {
    c.form.write({begin, end}, c.value, c.data);
  });
}

void DerivedCopies::refresh() {
  for (Copy& c : copies_) refresh(c);
}

void DerivedCopies::refresh(const Parameter* parameter) {
  for (Copy& c : copies_) {
    if (c.parameter == parameter) refresh(c);
  }
}

void DerivedCopies::refresh(std::size_t copy, Range range) {
  Copy& c = copies_[copy];
  if (!c.common || c.data == nullptr) return;
  c.form.write({std::max(range.begin, std::int64_t{0}), std::min(range.end, c.form.elements())}, c.value, c.data);
}

void DerivedCopies::refresh_own(std::uint64_t version) {
  for (Copy& c : copies_) {
    if (!c.common) refresh(c);
  }
  own_version_ = version;
}

}  // namespace lockstep::plan
