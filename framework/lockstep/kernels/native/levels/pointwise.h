// The primitives of the pointwise algebra on blocks of elements, for table.cpp: f32 (which serves bf16, too) and f64.
#pragma once

#include "lockstep/kernels/native/levels/single.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

template <class T>
struct NativeOf;
template <>
struct NativeOf<float> {
  using Type = NativeF32;
};
template <>
struct NativeOf<double> {
  using Type = NativeF64;
};

// y = f(a, b, c), a register of the level at a time; pointers to operands that f does not take are not read.
template <int kOperands, class T, class F>
LOCKSTEP_INLINE void block(std::int64_t n, const T* a, const T* b, const T* c, T* y, F f) {
  using V = typename NativeOf<T>::Type;
  constexpr std::int64_t kWidth = sizeof(V) / sizeof(T);
  const auto value = [f](V u, V v, V w) {
    if constexpr (kOperands == 1) return f(u);
    if constexpr (kOperands == 2) return f(u, v);
    if constexpr (kOperands == 3) return f(u, v, w);
  };
  std::int64_t i = 0;
#pragma GCC unroll 4
  for (; i + kWidth <= n; i += kWidth) {
    V u = load_native(a + i), v{}, w{};
    if constexpr (kOperands > 1) v = load_native(b + i);
    if constexpr (kOperands > 2) w = load_native(c + i);
    store_native(y + i, value(u, v, w));
  }
  if (i == n) return;
  T u[kWidth] = {}, v[kWidth] = {}, w[kWidth] = {}, out[kWidth];
  for (std::int64_t l = 0; l < n - i; ++l) {
    u[l] = a[i + l];
    if constexpr (kOperands > 1) v[l] = b[i + l];
    if constexpr (kOperands > 2) w[l] = c[i + l];
  }
  store_native(out, value(load_native(u), load_native(v), load_native(w)));
  for (std::int64_t l = 0; l < n - i; ++l) y[i + l] = out[l];
}

// Functions that compute in f64; f32 rounds the result once.
#define LOCKSTEP_FORMULA(name)                                                                  \
  struct name {                                                                                 \
    LOCKSTEP_INLINE NativeF64 operator()(NativeF64 x) const { return formulas::name<Full>(x); } \
    LOCKSTEP_INLINE NativeF32 operator()(NativeF32 x) const {                                   \
      return in_doubles([](NativeF64 v) { return formulas::name<Short>(v); }, x);               \
    }                                                                                           \
  };
namespace function {
LOCKSTEP_FORMULA(log)
LOCKSTEP_FORMULA(sigmoid)
LOCKSTEP_FORMULA(sin)
LOCKSTEP_FORMULA(cos)
struct pow {
  LOCKSTEP_INLINE NativeF64 operator()(NativeF64 x, NativeF64 y) const { return formulas::pow<Full>(x, y); }
  LOCKSTEP_INLINE NativeF32 operator()(NativeF32 x, NativeF32 y) const {
    return in_doubles([](NativeF64 u, NativeF64 v) { return formulas::pow<Short>(u, v); }, x, y);
  }
};
}  // namespace function
#undef LOCKSTEP_FORMULA

// Functions with formulas of their own for f32.
#define LOCKSTEP_FORMULAS(name)                                                                 \
  struct name {                                                                                 \
    LOCKSTEP_INLINE NativeF64 operator()(NativeF64 x) const { return formulas::name<Full>(x); } \
    LOCKSTEP_INLINE NativeF32 operator()(NativeF32 x) const { return single::name(x); }         \
  };
namespace function {
LOCKSTEP_FORMULAS(exp)
LOCKSTEP_FORMULAS(tanh)
LOCKSTEP_FORMULAS(erf)
}  // namespace function
#undef LOCKSTEP_FORMULAS

template <class T>
struct Pointwise {
  using V = typename NativeOf<T>::Type;
  using Function = typename PointwiseTable<T>::Function;

  template <int kOperands, class F>
  static void run(std::int64_t n, const T* a, const T* b, const T* c, T* y) {
    block<kOperands>(n, a, b, c, y, F{});
  }

  struct Copy {
    LOCKSTEP_INLINE V operator()(V a) const { return a; }
  };
  struct Add {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a + b; }
  };
  struct Subtract {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a - b; }
  };
  struct Multiply {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a * b; }
  };
  struct Divide {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a / b; }
  };
  struct Maximum {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a != a ? a : (b <= a ? a : b); }
  };
  struct Minimum {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a != a ? a : (b >= a ? a : b); }
  };
  struct Negate {
    LOCKSTEP_INLINE V operator()(V a) const { return -a; }
  };
  struct Abs {
    LOCKSTEP_INLINE V operator()(V a) const {
      using I = decltype(a < a);
      return (V)((I)a & ~(I)(-V{}));  // all but the sign
    }
  };
  struct Sign {
    LOCKSTEP_INLINE V operator()(V a) const { return a > 0 ? V{} + T(1) : (a < 0 ? V{} - T(1) : V{}); }
  };
  struct Relu {
    LOCKSTEP_INLINE V operator()(V a) const { return a < 0 ? V{} : a; }
  };
  struct Gate {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a <= 0 ? V{} : b; }
  };
  struct Select {
    LOCKSTEP_INLINE V operator()(V a, V b, V c) const { return a > 0 ? b : c; }
  };
  struct Greater {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a > b ? V{} + T(1) : V{}; }
  };
  struct GreaterEqual {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a >= b ? V{} + T(1) : V{}; }
  };
  struct Equal {
    LOCKSTEP_INLINE V operator()(V a, V b) const { return a == b ? V{} + T(1) : V{}; }
  };
  struct Sqrt {
    LOCKSTEP_INLINE V operator()(V a) const { return root(a); }
  };

  // In the order of pointwise::Code.
  static constexpr PointwiseTable<T> table{{
      run<1, Copy>,
      run<2, Add>,
      run<2, Subtract>,
      run<2, Multiply>,
      run<2, Divide>,
      run<2, Maximum>,
      run<2, Minimum>,
      run<1, Negate>,
      run<1, Abs>,
      run<1, Sign>,
      run<1, Relu>,
      run<2, Gate>,
      run<3, Select>,
      run<2, Greater>,
      run<2, GreaterEqual>,
      run<2, Equal>,
      run<1, Sqrt>,
      run<1, function::exp>,
      run<1, function::log>,
      run<1, function::tanh>,
      run<1, function::sigmoid>,
      run<1, function::erf>,
      run<1, function::sin>,
      run<1, function::cos>,
      run<2, function::pow>,
  }};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
