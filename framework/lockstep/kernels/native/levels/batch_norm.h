// The passes of batch norm over a strip, for table.cpp.
#pragma once

#include "lockstep/kernels/native/levels/lanes.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// Calls body(index of the first element, how many follow it in a row).
template <class Body>
LOCKSTEP_INLINE void for_runs(const Strip& s, Body body) {
  std::int64_t left = s.end - s.begin, at = left > 0 ? s.begin % s.segment : 0;
  for (std::int64_t sample = left > 0 ? s.begin / s.segment : 0; left > 0; ++sample, at = 0) {
    const std::int64_t run = left < s.segment - at ? left : s.segment - at;
    body(sample * s.stride + at, run);
    left -= run;
  }
}

struct Pair {
  Lanes first, second;
};
LOCKSTEP_INLINE Pair operator+(Pair a, Pair b) { return {a.first + b.first, a.second + b.second}; }
template <class Position>
LOCKSTEP_INLINE Pair keep(Position position, Pair p) {
  return {position.keep(p.first), position.keep(p.second)};
}

// Adds to sums [2][16] the sums of term(position), a Pair.
template <class Term>
LOCKSTEP_INLINE void two_sums(const Strip& strip, double* sums, Term term) {
  const Pair zero{broadcast(0), broadcast(0)};
  Pair a = zero, b = zero, c = zero, d = zero;  // four chains: an addition takes longer than the loads of the next
  std::int64_t pending = 0;
  const auto count = [&](std::int64_t additions) {
    pending += additions;
    if (pending < kFold) return;
    const Pair total = (a + b) + (c + d);
    add_to(sums, total.first);
    add_to(sums + kLanes, total.second);
    a = b = c = d = zero;
    pending = 0;
  };
  for_runs(strip, [&](std::int64_t at, std::int64_t n) {
    while (n >= 4 * kLanes) {
      const std::int64_t room = kFold - pending, steps = n / (4 * kLanes) < room ? n / (4 * kLanes) : room;
      for (std::int64_t k = 0; k < steps; ++k, at += 4 * kLanes) {
        a = a + term(Whole{at});
        b = b + term(Whole{at + kLanes});
        c = c + term(Whole{at + 2 * kLanes});
        d = d + term(Whole{at + 3 * kLanes});
      }
      n -= steps * 4 * kLanes;
      count(steps);
    }
    for (; n >= kLanes; n -= kLanes, at += kLanes) {
      a = a + term(Whole{at});
      count(1);
    }
    if (n > 0) {
      b = b + keep(Part{at, n}, term(Part{at, n}));
      count(1);
    }
  });
  count(kFold);
}

enum class Mask { None, FromX, FromY };

template <class T>
struct BatchNorm {
  using Normalise = typename BatchNormTable<T>::Normalise;
  using Gradient = typename BatchNormTable<T>::Gradient;

  static void moments(const Strip& strip, const T* x, const float* pivot, double* sums) {
    const Lanes centre = load(pivot);
    two_sums(strip, sums, [=](auto position) {
      const Lanes d = position.load(x) - centre;
      return Pair{d, d * d};
    });
  }

  enum class Residual { None, AsItIs, Normalised };

  template <Residual kResidual, bool kRelu>
  LOCKSTEP_INLINE static void normalise_as(const Strip& strip, const Normalise& n, const NormaliseLanes& lanes,
                                           const NormaliseLanes& other) {
    const Lanes mean = load(lanes.mean), scale = load(lanes.scale), shift = load(lanes.shift);
    const Lanes other_mean = load(other.mean), other_scale = load(other.scale), other_shift = load(other.shift);
    for_runs(strip, [=](std::int64_t at, std::int64_t count) {
      for_positions(at, count, [=](auto position) {
        Lanes y = (position.load(n.x) - mean) * scale + shift;
        if constexpr (kResidual == Residual::AsItIs) y = y + position.load(n.residual);
        if constexpr (kResidual == Residual::Normalised)
          y = y + ((position.load(n.residual) - other_mean) * other_scale + other_shift);
        if constexpr (kRelu) y = relu(y);
        position.store(n.y, y);
      });
    });
  }
  template <Residual kResidual>
  static void normalise_with(const Strip& strip, const Normalise& n, const NormaliseLanes& lanes,
                             const NormaliseLanes& other) {
    n.relu ? normalise_as<kResidual, true>(strip, n, lanes, other)
           : normalise_as<kResidual, false>(strip, n, lanes, other);
  }
  static void normalise(const Strip& strip, const Normalise& n, const NormaliseLanes& lanes,
                        const NormaliseLanes* of_residual) {
    if (!n.residual) {
      normalise_with<Residual::None>(strip, n, lanes, lanes);
    } else if (of_residual == nullptr) {
      normalise_with<Residual::AsItIs>(strip, n, lanes, lanes);
    } else {
      normalise_with<Residual::Normalised>(strip, n, lanes, *of_residual);
    }
  }

  // The same roundings as normalise_as, so the mask is the one that forward applied.
  template <Mask kMask, class Position>
  LOCKSTEP_INLINE static Lanes masked(const Gradient& g, Position position, Lanes centred, Lanes scale, Lanes shift) {
    const Lanes dy = position.load(g.dy);
    if constexpr (kMask == Mask::FromX) return gate(centred * scale + shift, dy);
    if constexpr (kMask == Mask::FromY) return gate(position.load(g.y), dy);
    return dy;
  }

  template <Mask kMask>
  LOCKSTEP_INLINE static void sums_as(const Strip& strip, const Gradient& g, const NormaliseLanes& lanes,
                                      double* sums) {
    const Lanes mean = load(lanes.mean), scale = load(lanes.scale), shift = load(lanes.shift);
    two_sums(strip, sums, [=](auto position) {
      const Lanes centred = position.load(g.x) - mean;
      const Lanes d = masked<kMask>(g, position, centred, scale, shift);
      return Pair{d, d * centred};
    });
  }
  // Sums what is stored: the bits are those of an addition before this function.
  template <bool kAdd>
  LOCKSTEP_INLINE static void stored_sums(const Strip& strip, const Gradient& g, const NormaliseLanes& lanes,
                                          double* sums) {
    const Lanes mean = load(lanes.mean);
    two_sums(strip, sums, [=](auto position) {
      Lanes d = position.load(g.dy);
      if constexpr (kAdd) d = d + position.load(g.addend);
      position.store(g.masked, gate(position.load(g.y), d));
      d = position.load(g.masked);
      return Pair{d, d * (position.load(g.x) - mean)};
    });
  }
  static void gradient_sums(const Strip& strip, const Gradient& g, const NormaliseLanes& lanes, double* sums) {
    if (!g.relu) {
      sums_as<Mask::None>(strip, g, lanes, sums);
    } else if (!g.y) {
      sums_as<Mask::FromX>(strip, g, lanes, sums);
    } else if (!g.masked) {
      sums_as<Mask::FromY>(strip, g, lanes, sums);
    } else {
      g.addend ? stored_sums<true>(strip, g, lanes, sums) : stored_sums<false>(strip, g, lanes, sums);
    }
  }

  template <Mask kMask>
  LOCKSTEP_INLINE static void gradient_as(const Strip& strip, const Gradient& g, const NormaliseLanes& lanes,
                                          const GradientLanes& factors) {
    const Lanes mean = load(lanes.mean), scale = load(lanes.scale), shift = load(lanes.shift);
    const Lanes by_dy = load(factors.dy), by_x = load(factors.x), constant = load(factors.constant);
    for_runs(strip, [=](std::int64_t at, std::int64_t count) {
      for_positions(at, count, [=](auto position) {
        const Lanes centred = position.load(g.x) - mean;
        const Lanes d = masked<kMask>(g, position, centred, scale, shift);
        position.store(g.dx, d * by_dy + (centred * by_x + constant));
      });
    });
  }
  static void gradient(const Strip& strip, const Gradient& g, const NormaliseLanes& lanes,
                       const GradientLanes& factors) {
    if (g.masked) {
      Gradient from = g;
      from.dy = g.masked;
      gradient_as<Mask::None>(strip, from, lanes, factors);
    } else if (!g.relu) {
      gradient_as<Mask::None>(strip, g, lanes, factors);
    } else if (!g.y) {
      gradient_as<Mask::FromX>(strip, g, lanes, factors);
    } else {
      gradient_as<Mask::FromY>(strip, g, lanes, factors);
    }
  }

  static constexpr BatchNormTable<T> table{moments, normalise, gradient_sums, gradient};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
