// LSTM and GRU layers.
#include "lockstep/kernels/generic/recurrent.h"
#include "lockstep/kernels/generic/rows.h"

namespace lockstep::kernels::generic {
namespace {

// Hands out a node's inputs or outputs in their order.
template <class T>
class Reader {
 public:
  explicit Reader(const Arguments& a) : a_(a) {}
  const T* in() { return a_.in<T>(input_++); }
  const T* in_if(bool there) { return there ? in() : nullptr; }
  T* out() { return a_.out<T>(output_++); }
  T* out_if(bool there) { return there ? out() : nullptr; }

 private:
  const Arguments& a_;
  std::size_t input_ = 0, output_ = 0;
};

template <class T>
RecurrentForward<T> forward_arrays(const RecurrentOptions& o, const Arguments& a) {
  Reader<T> next(a);
  RecurrentForward<T> arrays{};
  for (int d = 0; d < o.directions; ++d) {
    arrays.direction[d].product = next.in();
    arrays.direction[d].weight = next.in();
    arrays.direction[d].bias = next.in_if(o.bias);
  }
  arrays.initial_h = next.in_if(o.initial);
  arrays.initial_c = next.in_if(o.initial && o.lstm());
  arrays.y = next.out();
  arrays.h = next.out();
  arrays.c = next.out_if(o.lstm());
  for (int d = 0; d < o.directions; ++d) arrays.direction[d].gates = next.out();
  arrays.kept = next.out();
  return arrays;
}

template <class T>
RecurrentBackward<T> backward_arrays(const RecurrentOptions& o, const RecurrentGradientOp::Given& given,
                                     const Arguments& a) {
  Reader<T> next(a);
  RecurrentBackward<T> arrays{};
  for (int d = 0; d < o.directions; ++d) {
    auto& own = arrays.direction[d];
    own.weight = next.in();
    own.gates = next.in();
    own.by_product = next.out();
    own.by_hidden = o.lstm() ? own.by_product : next.out();
    own.before = next.out();
  }
  arrays.y = next.in();
  arrays.kept = next.in();
  arrays.initial_h = next.in_if(o.initial);
  arrays.initial_c = next.in_if(o.initial && o.lstm());
  arrays.dy = next.in_if(given.y);
  arrays.dh = next.in_if(given.h);
  arrays.dc = next.in_if(given.c);
  arrays.by_initial_h = next.out_if(o.initial);
  arrays.by_initial_c = next.out_if(o.initial && o.lstm());
  return arrays;
}

RecurrentShape shape_of(const RecurrentOptions& options, const Shape& gates) {
  return {.options = options, .samples = gates[1], .steps = gates[0], .hidden = gates[2] / options.gates()};
}

template <class T>
std::size_t bytes_of(std::int64_t elements) {
  return static_cast<std::size_t>(elements) * sizeof(T);
}

std::optional<KernelOffer> recurrent_kernel(const KernelRequest& r, std::span<const Layout>) {
  const RecurrentShape shape = shape_of(r.as<RecurrentOp>().options(), r.inputs[0].shape);
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 0;  // the first direction's gates take the place of its products
  offer.in_place_output = shape.options.lstm() ? 3 : 2;
  offer.build = [shape, dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [shape](const Arguments& a) {
            recurrent_forward(shape, forward_arrays<T>(shape.options, a), a.scratch<T>());
          },
          bytes_of<T>(recurrent_forward_scratch(shape)));
    });
  };
  return offer;
}

std::optional<KernelOffer> recurrent_gradient_kernel(const KernelRequest& r, std::span<const Layout>) {
  const auto& op = r.as<RecurrentGradientOp>();
  const RecurrentShape shape = shape_of(op.options(), r.inputs[1].shape);
  KernelOffer offer = plain_offer(r);
  offer.in_place_input = 1;  // the first direction's gates make room for the gradients of their products
  offer.build = [shape, given = op.given(), dtype = r.dtype()] {
    return build_typed(dtype, [&](auto tag) {
      using T = decltype(tag);
      return make_kernel(
          [shape, given](const Arguments& a) {
            recurrent_backward(shape, backward_arrays<T>(shape.options, given, a), a.scratch<T>());
          },
          bytes_of<T>(recurrent_backward_scratch(shape)));
    });
  };
  return offer;
}

}  // namespace

std::vector<KernelRow> recurrent_rows() {
  return {
      kernel_row<RecurrentOp>("lstm", recurrent_kernel),
      kernel_row<RecurrentGradientOp>("lstm_gradient", recurrent_gradient_kernel),
      kernel_row<RecurrentOp>("gru", recurrent_kernel),
      kernel_row<RecurrentGradientOp>("gru_gradient", recurrent_gradient_kernel),
  };
}

}  // namespace lockstep::kernels::generic
