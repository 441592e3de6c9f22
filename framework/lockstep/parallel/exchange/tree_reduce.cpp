#include "lockstep/parallel/exchange/tree_reduce.h"

#include <vector>

#include "lockstep/comm/combine.h"
#include "lockstep/core/error.h"
#include "lockstep/parallel/tree/tree_blocks.h"

namespace lockstep::parallel {
namespace {

using comm::Element, comm::ReduceOp;

template <ReduceOp op>
struct Step {
  static constexpr bool kRoundsRoot = false;
  template <class T>
  static T join(T a, T b) {
    return comm::combined<op>(a, b);
  }
  template <class T>
  static T root(T value) {
    return value;
  }
};

// The same pointers with their type. The vector is thread-local, so that a reduction allocates nothing.
template <class T>
struct Pointers {
  std::vector<const T*> in;
  std::vector<T*> out;

  static const Pointers& of(std::span<const void* const> operands, std::span<void* const> outs) {
    thread_local Pointers pointers;
    pointers.in.clear();
    pointers.out.clear();
    for (const void* o : operands) pointers.in.push_back(static_cast<const T*>(o));
    for (void* o : outs) pointers.out.push_back(static_cast<T*>(o));
    return pointers;
  }
};

template <class T, ReduceOp op>
void reduce(const TreeReduction& r, std::span<const void* const> operands, std::int64_t n,
            std::span<void* const> outs) {
  const Pointers<T>& p = Pointers<T>::of(operands, outs);
  tree_blocks::reduce<Step<op>, T>(p.in, r.merges, n, p.out, false, r.threads);
}

template <class T>
void reduce_type(const TreeReduction& r, std::span<const void* const> operands, std::int64_t n,
                 std::span<void* const> outs) {
  switch (r.op) {
    case ReduceOp::Sum:
      return reduce<T, ReduceOp::Sum>(r, operands, n, outs);
    case ReduceOp::Product:
      return reduce<T, ReduceOp::Product>(r, operands, n, outs);
    case ReduceOp::Min:
      return reduce<T, ReduceOp::Min>(r, operands, n, outs);
    case ReduceOp::Max:
      return reduce<T, ReduceOp::Max>(r, operands, n, outs);
  }
}

}  // namespace

void tree_reduce(const TreeReduction& r, std::span<const void* const> operands, std::int64_t n,
                 std::span<void* const> outs) {
  if (r.wire != Wire::Exact) {
    check(r.element == Element::F32 && r.op == ReduceOp::Sum, "reduction",
          "a {} of {} with a narrow wire, expected a sum of f32", name_of(r.op), name_of(r.element));
    const Pointers<float>& p = Pointers<float>::of(operands, outs);
    return tree_sum<float>(p.in, r.merges, n, p.out, {.wire = r.wire, .root = r.root, .threads = r.threads});
  }
  switch (r.element) {
    case Element::Byte:
      fail("reduction", "bytes are opaque: reduce u8 or a wider type");
    case Element::U8:
      return reduce_type<std::uint8_t>(r, operands, n, outs);
    case Element::I8:
      return reduce_type<std::int8_t>(r, operands, n, outs);
    case Element::U16:
      return reduce_type<std::uint16_t>(r, operands, n, outs);
    case Element::I16:
      return reduce_type<std::int16_t>(r, operands, n, outs);
    case Element::F16:
      return reduce_type<Float16>(r, operands, n, outs);
    case Element::BF16:
      return reduce_type<BFloat16>(r, operands, n, outs);
    case Element::U32:
      return reduce_type<std::uint32_t>(r, operands, n, outs);
    case Element::I32:
      return reduce_type<std::int32_t>(r, operands, n, outs);
    case Element::F32:
      return reduce_type<float>(r, operands, n, outs);
    case Element::U64:
      return reduce_type<std::uint64_t>(r, operands, n, outs);
    case Element::I64:
      return reduce_type<std::int64_t>(r, operands, n, outs);
    case Element::F64:
      return reduce_type<double>(r, operands, n, outs);
  }
}

}  // namespace lockstep::parallel
