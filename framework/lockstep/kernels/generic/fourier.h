// Discrete Fourier transforms over the last axes of an array and sums of products of spectra, on kernels/native. They
// are of our own, as no library of the system fits: KissFFT's libraries for float and double define the same functions,
// so that a program can have one of them alone, its roots of unity depend on the C library, and it transforms one line
// at a time, where here the lanes of a register are lines. Threads divide lines, whose bits depend on nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "lockstep/kernels/native/tables.h"
#include "lockstep/ops/fourier.h"
#include "lockstep/ops/spectral_product.h"

namespace lockstep::kernels::generic {

// Radices and roots of unity of the transform of one axis, made once per shape. T is float or double.
template <class T>
class FourierPlan {
 public:
  using Table = native::FourierTable<T>;
  FourierPlan(native::FourierLine line, std::int64_t elements, bool inverse);
  // Valid while this object lives.
  typename Table::Plan view() const;

 private:
  std::int64_t length_;
  std::vector<std::int64_t> radices_;
  std::vector<T> roots_, half_roots_;
};

// One FourierOp on arrays of `batch` items in front of the transformed axes. Immutable; run() allocates nothing.
template <class T>
class FourierTransform {
 public:
  FourierTransform(const FourierOptions& options, std::int64_t batch);
  FourierTransform(const FourierTransform&) = delete;  // axes point into plans
  FourierTransform& operator=(const FourierTransform&) = delete;
  std::size_t workspace_bytes() const;
  void run(const T* x, T* y, T* workspace) const;

 private:
  using Pass = typename native::FourierTable<T>::Pass;
  struct Axis {  // with pointers left open
    Pass pass;
    std::int64_t outer, from, to;  // of one item: lines / inner, elements before and after
  };
  void add_axis(const FourierOptions& options, std::size_t axis);
  void run_items(std::int64_t begin, std::int64_t end, const T* x, T* y, T* memory) const;
  void run_lines(const T* x, T* y, T* workspace) const;
  std::int64_t lines(const Axis& axis) const { return axis.outer * axis.pass.inner; }

  std::int64_t batch_, scratch_ = 0, buffer_ = 0, chunk_ = 1, parts_ = 1;
  bool by_items_ = false;
  std::vector<FourierPlan<T>> plans_;
  std::vector<Axis> axes_;
};

struct SpectralShape {
  std::int64_t rows, columns, terms, modes;  // of the result: first and second dimension; what is summed
};
// The result of a SpectralProductOp from its operands a and b.
template <class T>
void spectral_product(const SpectralProductOptions& options, const SpectralShape& shape, const T* a, const T* b, T* y);

}  // namespace lockstep::kernels::generic
