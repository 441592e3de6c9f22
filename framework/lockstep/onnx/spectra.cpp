// Fourier transforms as products with their matrices, one axis after the other, and products of spectra: version 13 of
// ONNX's operators has no transform, and of a Fourier operator's layer few frequencies are kept. A complex value is a
// pair of real ones here.
#include <numbers>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/math.h"
#include "lockstep/onnx/node_writer.h"
#include "lockstep/onnx/numbers.h"
#include "lockstep/ops/fourier.h"
#include "lockstep/ops/spectral_product.h"

namespace lockstep::onnx {
namespace {

using FourierKind = FourierOptions::Kind;

struct ComplexName {
  std::string re, im;
};

// The parts of (..., 2), each of the shape `dims`.
ComplexName parts_of(const NodeWriter& w, const std::string& name, std::int64_t axis, const Numbers& dims) {
  Document& d = w.document;
  const auto part = [&](std::int64_t at) {
    const std::string own = d.add("Slice", {name, d.list({at}), d.list({at + 1}), d.list({axis})});
    return d.add("Reshape", {own, d.list(dims)});
  };
  return {part(0), part(1)};
}

// a b, with `product` for two real values.
template <class Product>
ComplexName complex_product(Document& d, const ComplexName& a, const ComplexName& b, Product product) {
  return {d.add("Sub", {product(a.re, b.re), product(a.im, b.im)}),
          d.add("Add", {product(a.re, b.im), product(a.im, b.re)})};
}

// The matrix (from, to) of an axis: factor(frequency) e^(+-2 pi i j frequency / n), in two parts.
struct AxisMatrix {
  Numbers rows, columns;  // positions j and frequencies, or the other way round
  std::int64_t n;
  double sign;
};

template <class Factor>
ComplexName matrix_of(const NodeWriter& w, const AxisMatrix& m, Factor factor) {
  std::vector<double> re, im;
  for (const std::int64_t row : m.rows) {
    for (const std::int64_t column : m.columns) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(row * column % m.n) / static_cast<double>(m.n);
      re.push_back(factor(row, column) * math::cos(angle));
      im.push_back(factor(row, column) * m.sign * math::sin(angle));
    }
  }
  const Shape shape{static_cast<std::int64_t>(m.rows.size()), static_cast<std::int64_t>(m.columns.size())};
  const auto constant = [&](const std::vector<double>& values) {
    return w.document.constant(Tensor::from<double>(shape, values).to(w.dtype()));
  };
  return {constant(re), constant(im)};
}

Numbers positions(std::int64_t count) {
  Numbers numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

// The low frequencies of an axis of n: those from 0 on, then the negative ones.
Numbers low_frequencies(std::int64_t n, std::int64_t kept) {
  Numbers numbers = positions(kept);
  for (std::int64_t i = (kept + 1) / 2; i < kept; ++i) numbers[static_cast<std::size_t>(i)] += n - kept;
  return numbers;
}

class FourierWriter {
 public:
  FourierWriter(const NodeWriter& w, const FourierOptions& options)
      : w_(w), o_(options), to_spectrum_(options.kind != FourierKind::FromHalf) {}

  void write() {
    const int last = o_.sizes.rank() - 1;
    const Shape& in = w_.types[0].shape;
    rank_ = in.rank() - (o_.kind == FourierKind::ToHalf ? 0 : 1);
    if (o_.kind == FourierKind::ToHalf) {
      const ComplexName matrix = half_matrix();
      value_ = {along(w_.inputs[0], last, matrix.re), along(w_.inputs[0], last, matrix.im)};
    } else {
      value_ = parts_of(w_, w_.inputs[0], rank_, Numbers(in.dims().begin(), in.dims().end() - 1));
    }
    for (int axis = 0; axis <= last; ++axis) {
      if (axis < last || o_.kind == FourierKind::Complex) transform(axis);
    }
    if (o_.kind == FourierKind::FromHalf) {
      const ComplexName matrix = half_matrix();
      w_.document.add("Sub", {along(value_.re, last, matrix.re), along(value_.im, last, matrix.im)}, {}, w_.output);
    } else {
      join();
    }
  }

 private:
  double sign() const { return o_.inverse ? 1 : -1; }

  // `name` times a matrix along an axis of the transform.
  std::string along(const std::string& name, int axis, const std::string& matrix) const {
    Numbers order = positions(rank_);
    const int position = rank_ - o_.sizes.rank() + axis;
    std::swap(order[static_cast<std::size_t>(position)], order.back());
    Document& d = w_.document;
    const std::string last = d.add("Transpose", {name}, {{"perm", order}});
    return d.add("Transpose", {d.add("MatMul", {last, matrix})}, {{"perm", order}});
  }

  // Of the axis of which half the frequencies are there; it has the factors of the whole transform.
  ComplexName half_matrix() const {
    const int last = o_.sizes.rank() - 1;
    const std::int64_t n = o_.sizes[last];
    const Numbers j = positions(n), frequencies = positions(o_.kept[last]);
    const auto factor = [&](std::int64_t row, std::int64_t column) {
      const std::int64_t frequency = to_spectrum_ ? column : row;
      if (frequency == 0 || 2 * frequency == n) return o_.scale;
      return o_.scale * o_.middle * (to_spectrum_ ? 1 : 2);  // the conjugate frequency is not there
    };
    return matrix_of(w_, {to_spectrum_ ? j : frequencies, to_spectrum_ ? frequencies : j, n, sign()}, factor);
  }

  void transform(int axis) {
    const std::int64_t n = o_.sizes[axis];
    const Numbers j = positions(n), frequencies = low_frequencies(n, o_.kept[axis]);
    const double scale = o_.kind == FourierKind::Complex && axis == 0 ? o_.scale : 1;
    const ComplexName matrix =
        matrix_of(w_, {to_spectrum_ ? j : frequencies, to_spectrum_ ? frequencies : j, n, sign()},
                  [scale](std::int64_t, std::int64_t) { return scale; });
    value_ = complex_product(w_.document, value_, matrix,
                             [&](const std::string& a, const std::string& b) { return along(a, axis, b); });
  }

  void join() const {
    Document& d = w_.document;
    Numbers dims = w_.shape().dims();
    dims.back() = 1;
    const std::string shape = d.list(dims);
    d.add("Concat", {d.add("Reshape", {value_.re, shape}), d.add("Reshape", {value_.im, shape})},
          {{"axis", std::int64_t{rank_}}}, w_.output);
  }

  const NodeWriter& w_;
  const FourierOptions& o_;
  bool to_spectrum_;
  int rank_ = 0;  // of values without the pair
  ComplexName value_;
};

// Per mode a product of matrices: (modes, N, I) (modes, I, O).
void write_spectral_product(const NodeWriter& w, const SpectralProductOp& op) {
  const SpectralProductOptions& o = op.options();
  w.require(o.result == SpectralProductOptions::Result::Output && !o.conjugate_first && !o.conjugate_second,
            "a product of spectra for a gradient");
  Document& d = w.document;
  const std::int64_t samples = w.shape()[0], out = w.shape()[1], in = w.types[0].shape[1];
  const std::int64_t modes = w.shape().elements() / (2 * samples * out);
  const auto by_mode = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    const std::string flat = d.add("Reshape", {name, d.list({rows, columns, modes, 2})});
    return parts_of(w, d.add("Transpose", {flat}, {{"perm", Numbers{3, 2, 0, 1}}}), 0, {modes, rows, columns});
  };
  const ComplexName y = complex_product(d, by_mode(w.inputs[0], samples, in), by_mode(w.inputs[1], in, out),
                                        [&](const std::string& a, const std::string& b) {
                                          return d.add("MatMul", {a, b});
                                        });
  const std::string shape = d.list({1, modes, samples, out});
  const std::string joined =
      d.add("Concat", {d.add("Reshape", {y.re, shape}), d.add("Reshape", {y.im, shape})}, {{"axis", std::int64_t{0}}});
  const std::string last = d.add("Transpose", {joined}, {{"perm", Numbers{2, 3, 1, 0}}});
  d.add("Reshape", {last, d.list(w.shape().dims())}, {}, w.output);
}

}  // namespace

bool write_spectra(const NodeWriter& w) {
  const Op* op = w.node.op.get();
  if (const auto* fourier = dynamic_cast<const FourierOp*>(op)) {
    FourierWriter(w, fourier->options()).write();
  } else if (const auto* product = dynamic_cast<const SpectralProductOp*>(op)) {
    write_spectral_product(w, *product);
  } else {
    return false;
  }
  return true;
}

}  // namespace lockstep::onnx
