// A step of LSTM and GRU layers for table.cpp: product.h works out the sums of a few rows and one panel of hidden
// features, and gates, states or gradients are made of these sums before the next ones begin.
#pragma once

#include "lockstep/kernels/native/levels/gates.h"
#include "lockstep/kernels/native/levels/product.h"

namespace lockstep::kernels::native::LOCKSTEP_LEVEL {
namespace {

// The hidden features of one register, from `at` on. The row has only the first `count` of them unless kWhole is set;
// the features behind them are 0, and their memory is not touched.
template <class T, bool kWhole>
struct Features {
  using V = typename NativeOf<T>::Type;
  std::int64_t at, count;

  LOCKSTEP_INLINE V load(const T* row) const {
    if constexpr (kWhole) return load_native(row + at);
    T values[kWidth<T>] = {};
    for (std::int64_t l = 0; l < kWidth<T> && l < count; ++l) values[l] = row[at + l];
    return load_native(values);
  }
  LOCKSTEP_INLINE void store(T* row, V v) const {
    if constexpr (kWhole) return store_native(row + at, v);
    T values[kWidth<T>];
    store_native(values, v);
    for (std::int64_t l = 0; l < kWidth<T> && l < count; ++l) row[at + l] = values[l];
  }
};

template <class T>
LOCKSTEP_INLINE T* row_of(const Strided<T>& a, std::int64_t row) {
  return a.data + row * a.stride;
}

// Rows of a step that are worked out together, and the first of their hidden features.
struct Block {
  std::int64_t row, rows, first;
};

// Asks for a block's part of an array, `vectors` times kLanes features of each row, while another block is worked on:
// the processor's own prefetching does not see that the next block is in other rows.
template <class T>
LOCKSTEP_INLINE void fetch(const Strided<T>& a, const Block& block, std::int64_t column, int vectors) {
  for (std::int64_t r = 0; a.data && r < block.rows; ++r) {
    const char* from = reinterpret_cast<const char*>(row_of(a, block.row + r) + column + block.first);
    for (std::size_t at = 0; at < vectors * kLanes * sizeof(T); at += 64) __builtin_prefetch(from + at);
  }
}

template <class T>
struct Recurrent {
  using V = typename NativeOf<T>::Type;
  using Forward = typename RecurrentTable<T>::Forward;
  using Backward = typename RecurrentTable<T>::Backward;

  // Calls body(row, Features, sums) for each register of kVectors vectors of features in each row of a block. `sums`
  // are the row's, [kSums][kLanes], from the first of these features on.
  template <bool kWhole, int kVectors, int kSums, class Body>
  LOCKSTEP_INLINE static void for_features(const Block& block, std::int64_t hidden, T* sums, Body body) {
    for (std::int64_t r = 0; r < block.rows; ++r) {
      for (int at = 0; at < kVectors * kLanes; at += kWidth<T>)
        body(block.row + r, Features<T, kWhole>{block.first + at, hidden - block.first - at},
             sums + r * kSums * kLanes + at);
    }
  }

  // The values with which the sums begin: the products of the input, or the bias.
  template <bool kWhole, int kGates>
  [[gnu::noinline]] static void start(const Forward& f, const Block& block, T* sums) {
    for_features<kWhole, 1, kGates>(block, f.hidden, sums, [&f](std::int64_t row, auto features, T* own) {
      const T* from = kGates == 4 ? row_of(f.product, row) : f.bias;
      for (int g = 0; g < kGates; ++g) store_native(own + g * kLanes, from ? features.load(from + g * f.hidden) : V{});
    });
  }

  template <bool kWhole>
  [[gnu::noinline]] static void lstm_cells(const Forward& f, const Block& block, T* sums) {
    for_features<kWhole, 1, 4>(block, f.hidden, sums, [&f](std::int64_t row, auto features, const T* own) {
      const V i = logistic(load_native(own)), forget = logistic(load_native(own + kLanes));
      const V g = hyperbolic_tangent(load_native(own + 2 * kLanes)), o = logistic(load_native(own + 3 * kLanes));
      T *c = row_of(f.own_c, row) + features.at, *gates = row_of(f.gates, row);
      const V next = forget * load_native(c) + i * g, h = o * hyperbolic_tangent(next);
      store_native(c, next);
      store_native(row_of(f.own_after, row) + features.at, h);
      features.store(gates, i);
      features.store(gates + f.hidden, forget);
      features.store(gates + 2 * f.hidden, g);
      features.store(gates + 3 * f.hidden, o);
      features.store(row_of(f.kept, row), next);
      features.store(row_of(f.y, row), h);
    });
  }

  template <bool kWhole>
  [[gnu::noinline]] static void gru_cells(const Forward& f, const Block& block, T* sums) {
    for_features<kWhole, 1, 3>(block, f.hidden, sums, [&f](std::int64_t row, auto features, const T* own) {
      const T* product = row_of(f.product, row);
      T* gates = row_of(f.gates, row);
      const V r = logistic(features.load(product) + load_native(own));
      const V z = logistic(features.load(product + f.hidden) + load_native(own + kLanes));
      const V kept = load_native(own + 2 * kLanes);
      const V n = hyperbolic_tangent(features.load(product + 2 * f.hidden) + r * kept);
      const V h = f.own_before.data ? load_native(row_of(f.own_before, row) + features.at) : V{};
      const V next = (1 - z) * n + z * h;
      store_native(row_of(f.own_after, row) + features.at, next);
      features.store(gates, r);
      features.store(gates + f.hidden, z);
      features.store(gates + 2 * f.hidden, n);
      features.store(row_of(f.kept, row), kept);
      features.store(row_of(f.y, row), next);
    });
  }

  // Calls body(block, next) for at most kMost rows and kFeatures features at a time.
  template <int kMost, int kFeatures, class Body>
  LOCKSTEP_INLINE static void for_blocks(std::int64_t rows, std::int64_t hidden, Body body) {
    const std::int64_t blocks = (rows + kMost - 1) / kMost, panels = (hidden + kFeatures - 1) / kFeatures;
    const auto block = [=](std::int64_t i) {
      const std::int64_t b = i % blocks, row = b * rows / blocks;
      return Block{row, i < blocks * panels ? (b + 1) * rows / blocks - row : 0, i / blocks * kFeatures};
    };
    for (std::int64_t i = 0; i < blocks * panels; ++i) body(block(i), block(i + 1));
  }

  template <bool kWhole, int kGates>
  LOCKSTEP_INLINE static void forward_block(const Forward& f, const Block& block, const Block& next, T* sums) {
    start<kWhole, kGates>(f, block, sums);
    for (int g = 0; g < kGates; ++g) fetch(f.product, next, g * f.hidden, 1);
    fetch(f.kept, next, 0, 1);
    fetch(f.y, next, 0, 1);
    if (f.own_before.data)
      add_product<kGates>(block.rows, f.hidden, row_of(f.own_before, block.row), f.own_before.stride,
                          f.weights + block.first * f.hidden * kGates, sums);
    kGates == 4 ? lstm_cells<kWhole>(f, block, sums) : gru_cells<kWhole>(f, block, sums);
  }
  template <int kGates>
  static void forward(const Forward& f) {
    for_blocks<kMostSums / kGates, kLanes>(f.rows, f.hidden, [&f](const Block& block, const Block& next) {
      alignas(64) T sums[kMostSums * kLanes];
      const bool whole = block.first + kLanes <= f.hidden;
      whole ? forward_block<true, kGates>(f, block, next, sums) : forward_block<false, kGates>(f, block, next, sums);
    });
  }

  template <bool kWhole>
  [[gnu::noinline]] static void lstm_gradients(const Backward& b, const Block& block, T* sums) {
    for_features<kWhole, 2, 2>(block, b.hidden, sums, [&b](std::int64_t row, auto features, const T* own) {
      const auto& saved = b.saved;
      const T* gates = row_of(saved.gates, row);
      const V i = features.load(gates), forget = features.load(gates + b.hidden);
      const V g = features.load(gates + 2 * b.hidden), o = features.load(gates + 3 * b.hidden);
      const V t = hyperbolic_tangent(features.load(row_of(saved.kept, row)));
      const V c = saved.c.data ? features.load(row_of(saved.c, row)) : V{};
      const V h = saved.h.data ? features.load(row_of(saved.h, row)) : V{};
      V dh = load_native(own);
      if (saved.dy.data) dh += features.load(row_of(saved.dy, row));
      T *dc = row_of(b.own_dc, row) + features.at, *dsums = row_of(b.own_sums, row);
      const V total = load_native(dc) + dh * o * (1 - t * t);
      const V d[] = {total * g * (i * (1 - i)), total * c * (forget * (1 - forget)), total * i * (1 - g * g),
                     dh * t * (o * (1 - o))};
      T* product = row_of(b.gradients.product, row);
#pragma GCC unroll 4
      for (int gate = 0; gate < 4; ++gate) {
        features.store(dsums + gate * b.hidden, d[gate]);
        features.store(product + gate * b.hidden, d[gate]);
      }
      features.store(row_of(b.gradients.before, row), h);
      store_native(dc, total * forget);
      store_native(row_of(b.own_dh, row) + features.at, V{});
    });
  }

  template <bool kWhole>
  [[gnu::noinline]] static void gru_gradients(const Backward& b, const Block& block, T* sums) {
    for_features<kWhole, 2, 2>(block, b.hidden, sums, [&b](std::int64_t row, auto features, const T* own) {
      const auto& saved = b.saved;
      const T* gates = row_of(saved.gates, row);
      const V r = features.load(gates), z = features.load(gates + b.hidden), n = features.load(gates + 2 * b.hidden);
      const V kept = features.load(row_of(saved.kept, row));
      const V h = saved.h.data ? features.load(row_of(saved.h, row)) : V{};
      V dh = load_native(own);
      if (saved.dy.data) dh += features.load(row_of(saved.dy, row));
      const V by_n = dh * (1 - z) * (1 - n * n), by_r = by_n * kept * (r * (1 - r));
      const V by_z = dh * (h - n) * (z * (1 - z));
      T* product = row_of(b.gradients.product, row);
      features.store(product, by_r);
      features.store(product + b.hidden, by_z);
      features.store(product + 2 * b.hidden, by_n);
      T* const by_hidden[] = {row_of(b.gradients.hidden, row), row_of(b.own_sums, row)};
      for (T* hidden : by_hidden) {
        features.store(hidden, by_r);
        features.store(hidden + b.hidden, by_z);
        features.store(hidden + 2 * b.hidden, by_n * r);
      }
      features.store(row_of(b.gradients.before, row), h);
      store_native(row_of(b.own_dh, row) + features.at, dh * z);
    });
  }

  // Asks for what the next block reads and writes, in as many parts as there are gates.
  template <int kGates>
  LOCKSTEP_INLINE static void fetch_next(const Backward& b, const Block& next, int part) {
    const std::int64_t column = part * b.hidden;
    fetch(b.saved.gates, next, column, 2);
    if (b.saved.gates.data && b.gradients.product.data != b.saved.gates.data)
      fetch(b.gradients.product, next, column, 2);
    if (kGates == 3 && b.saved.gates.data) fetch(b.gradients.hidden, next, column, 2);
    if (part == 0) {
      fetch(b.saved.kept, next, 0, 2);
      fetch(b.saved.c, next, 0, 2);
    } else if (part == 1) {
      fetch(b.saved.h, next, 0, 2);
      fetch(b.gradients.before, next, 0, 2);
    } else if (part == 2) {
      fetch(b.saved.dy, next, 0, 2);
    }
  }

  template <bool kWhole, int kGates>
  LOCKSTEP_INLINE static void gradient_block(const Backward& b, const Block& block, const Block& next, T* sums) {
    for_features<true, 2, 2>(block, b.hidden, sums, [&b](std::int64_t row, auto features, T* own) {
      store_native(own, features.load(row_of(b.own_dh, row)));
    });
    for (int g = 0; g < kGates; ++g) {
      fetch_next<kGates>(b, next, g);
      if (b.own_after.data)
        add_product<2>(block.rows, b.hidden, row_of(b.own_after, block.row) + g * b.hidden, b.own_after.stride,
                       b.weights + (block.first * kGates + g * 2 * kLanes) * b.hidden, sums);
    }
    if (!b.saved.gates.data) {
      for_features<true, 2, 2>(block, b.hidden, sums, [&b](std::int64_t row, auto features, const T* own) {
        features.store(row_of(b.own_dh, row), load_native(own));
      });
    } else {
      kGates == 4 ? lstm_gradients<kWhole>(b, block, sums) : gru_gradients<kWhole>(b, block, sums);
    }
  }
  template <int kGates>
  static void gradient(const Backward& b) {
    for_blocks<kMostSums / 2, 2 * kLanes>(b.rows, b.hidden, [&b](const Block& block, const Block& next) {
      alignas(64) T sums[kMostSums * kLanes];
      const bool whole = block.first + 2 * kLanes <= b.hidden;
      whole ? gradient_block<true, kGates>(b, block, next, sums) : gradient_block<false, kGates>(b, block, next, sums);
    });
  }

  static constexpr RecurrentTable<T> table{forward<4>, forward<3>, gradient<4>, gradient<3>};
};

}  // namespace
}  // namespace lockstep::kernels::native::LOCKSTEP_LEVEL
