#include "bindings/c/arrays.h"

#include <algorithm>
#include <cstring>

#include "bindings/c/failure.h"
#include "bindings/c/structs.h"

namespace lockstep::bindings {
namespace {

template <class... Args>
void require(bool condition, const char* name, FormatFor<std::type_identity_t<Args>...> format, const Args&... args) {
  if (condition) return;
  const std::string text = format_arguments(format.text(), {args...});
  throw CodedError(LOCKSTEP_ERROR_ARGUMENT, formatted("[array] '{}': {}", name, text));
}

DType type_of(const lockstep_array& array, const char* name) {
  if (array.type == LOCKSTEP_F32) return DType::F32;
  if (array.type == LOCKSTEP_F64) return DType::F64;
  // What bindings of other languages say of an array that they cannot describe.
  require(array.type != 0, name,
          "the array cannot be described, expected f32, f64 or i32 whose neighbours are whole elements apart");
  require(array.type == LOCKSTEP_I32, name, "type is {}, expected LOCKSTEP_F32, LOCKSTEP_F64 or LOCKSTEP_I32",
          array.type);
  return DType::I32;
}

// The strides of a dense row-major array of these extents.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> strides(extents.size(), 1);
  for (std::size_t d = extents.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<std::int64_t>(extents[d], 1);
  return strides;
}

// Removes extents of 1 behind the first one, and their strides.
void squeeze(std::vector<std::int64_t>& extents, std::vector<std::int64_t>& strides) {
  std::size_t kept = 1;
  for (std::size_t d = 1; d < extents.size(); ++d) {
    if (extents[d] == 1) continue;
    extents[kept] = extents[d];
    strides[kept++] = strides[d];
  }
  extents.resize(kept);
  strides.resize(kept);
}

// Gives the array the dimensions of `wanted`, which has the same extents but for those of 1.
std::vector<std::int64_t> strides_in(const Shape& wanted, const std::vector<std::int64_t>& squeezed) {
  std::vector<std::int64_t> strides{squeezed[0]};
  std::size_t next = 1;
  for (int d = 1; d < wanted.rank(); ++d) strides.push_back(wanted[d] == 1 ? 1 : squeezed[next++]);
  return strides;
}

// Calls f(element of the array, number of the element in row-major order) for all elements.
template <class F>
void for_each_element(const View& view, const F& f) {
  const std::int64_t total = view.shape.elements();
  if (total == 0) return;
  const int last = view.shape.rank() - 1;
  const std::int64_t inner = view.shape[last], step = view.stride[static_cast<std::size_t>(last)];
  std::vector<std::int64_t> index(static_cast<std::size_t>(last), 0);
  std::int64_t offset = 0;
  for (std::int64_t done = 0; done < total; done += inner) {
    for (std::int64_t i = 0; i < inner; ++i) f(offset + i * step, done + i);
    for (int d = last - 1; d >= 0; --d) {  // the next row
      const auto at = static_cast<std::size_t>(d);
      offset += view.stride[at];
      if (++index[at] < view.shape[d]) break;
      offset -= view.shape[d] * view.stride[at];
      index[at] = 0;
    }
  }
}

template <class From, class To>
void gather(const View& view, Tensor& to) {
  const auto* from = static_cast<const From*>(view.data);
  To* out = to.data<To>().data();
  for_each_element(view, [&](std::int64_t at, std::int64_t i) { out[i] = static_cast<To>(from[at]); });
}

template <class From, class To>
void scatter(const Tensor& from, const View& view) {
  const From* in = from.data<From>().data();
  auto* out = static_cast<To*>(view.data);
  for_each_element(view, [&](std::int64_t at, std::int64_t i) { out[at] = static_cast<To>(in[i]); });
}

void require_conversion(const View& view, DType type) {
  require(view.type == type || (is_floating(view.type) && is_floating(type)), view.name, "elements are {}, expected {}",
          name_of(view.type), is_floating(type) ? "f32 or f64" : name_of(type));
}

}  // namespace

bool View::is_dense() const {
  const std::vector<std::int64_t> dense = dense_strides(shape.dims());
  for (int d = 0; d < shape.rank(); ++d) {
    const auto at = static_cast<std::size_t>(d);
    if (shape[d] > 1 && stride[at] != dense[at]) return false;
  }
  return true;
}

View view_of(const lockstep_array* array, const char* name, const Shape& sample) {
  require(array != nullptr, name, "the array is null, expected an address of a lockstep_array");
  const lockstep_array a = from_caller(*array, LOCKSTEP_ARRAY_INIT, "lockstep_array");
  require(a.rank >= 1 && a.rank <= LOCKSTEP_MAX_RANK, name, "rank is {}, expected 1 to {}", a.rank,
          static_cast<int>(LOCKSTEP_MAX_RANK));
  require(a.order >= LOCKSTEP_ROW_MAJOR && a.order <= LOCKSTEP_STRIDED, name,
          "order is {}, expected LOCKSTEP_ROW_MAJOR, LOCKSTEP_COLUMN_MAJOR or LOCKSTEP_STRIDED", a.order);
  std::vector<std::int64_t> extents(a.extent, a.extent + a.rank);
  if (a.order == LOCKSTEP_COLUMN_MAJOR) std::ranges::reverse(extents);
  const Shape whole(extents);
  require(std::ranges::all_of(extents, [](std::int64_t e) { return e >= 0; }), name,
          "extents are {}, expected no negative one", whole.str());
  std::vector<std::int64_t> strides = dense_strides(extents);
  if (a.order == LOCKSTEP_STRIDED) strides.assign(a.stride, a.stride + a.rank);
  const Shape wanted = sample.batched(extents[0]);
  std::vector<std::int64_t> expected = wanted.dims(), ignored(expected.size(), 0);
  squeeze(extents, strides);
  squeeze(expected, ignored);
  require(extents == expected, name,
          "the array is {} (samples first), expected {} samples of shape {}; in a Fortran array samples are last",
          whole.str(), whole[0], sample.str());
  View view{
      .name = name, .data = a.data, .type = type_of(a, name), .shape = wanted, .stride = strides_in(wanted, strides)};
  require(a.data != nullptr || wanted.elements() == 0, name, "data is null, expected the address of {} elements",
          wanted.elements());
  const auto address = reinterpret_cast<std::uintptr_t>(a.data);
  require(address % size_of(view.type) == 0, name, "data is not aligned for elements of {} bytes", size_of(view.type));
  return view;
}

Tensor tensor_of(const View& view, DType type) {
  require_conversion(view, type);
  if (view.type == type && view.is_dense()) return Tensor::over(view.shape, type, view.data);
  Tensor copy(view.shape, type);
  if (type == DType::I32) {
    gather<std::int32_t, std::int32_t>(view, copy);
  } else if (type == DType::F32) {
    view.type == DType::F32 ? gather<float, float>(view, copy) : gather<double, float>(view, copy);
  } else {
    view.type == DType::F32 ? gather<float, double>(view, copy) : gather<double, double>(view, copy);
  }
  return copy;
}

void write_to(const View& view, const Tensor& tensor) {
  require_conversion(view, tensor.dtype());
  require(tensor.shape() == view.shape, view.name, "the array is {}, the result {}", view.shape.str(),
          tensor.shape().str());
  if (view.type == tensor.dtype() && view.is_dense()) {
    if (tensor.bytes() > 0) std::memcpy(view.data, tensor.raw(), tensor.bytes());
  } else if (tensor.dtype() == DType::F32) {
    view.type == DType::F32 ? scatter<float, float>(tensor, view) : scatter<float, double>(tensor, view);
  } else {
    view.type == DType::F32 ? scatter<double, float>(tensor, view) : scatter<double, double>(tensor, view);
  }
}

void check_samples(const View& a, const View& b) {
  require(a.samples() == b.samples(), b.name, "the array has {} samples, '{}' has {}; expected equal numbers",
          b.samples(), a.name, a.samples());
}

}  // namespace lockstep::bindings
