#include "lockstep/ops/recurrent.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/cast.h"
#include "lockstep/ops/linear.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reduce.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/shape_axes.h"

namespace lockstep {
namespace {

// Where inputs and outputs of RecurrentOp lie; see its comment.
struct RecurrentPlaces {
  explicit RecurrentPlaces(const RecurrentOptions& o)
      : per_direction(o.bias ? 3 : 2),
        directions(static_cast<std::size_t>(o.directions)),
        states(o.lstm() ? 2 : 1),
        inputs(directions * per_direction + (o.initial ? states : 0)) {}
  std::size_t product(std::size_t d) const { return d * per_direction; }
  std::size_t weight(std::size_t d) const { return d * per_direction + 1; }
  std::size_t bias(std::size_t d) const { return d * per_direction + 2; }
  std::size_t initial(std::size_t state) const { return directions * per_direction + state; }
  std::size_t gates(std::size_t d) const { return 1 + states + d; }
  std::size_t kept() const { return 1 + states + directions; }

  std::size_t per_direction, directions, states, inputs;
};

std::string_view cell_name(const RecurrentOptions& o) { return o.lstm() ? "lstm" : "gru"; }

void check_recurrent_type(std::string_view site, std::string_view path, std::string_view what, const Type& got,
                          const Type& want) {
  check(got == want, site, "{}: {} is {}, expected {}", path, what, got.str(), want.str());
}

// (rows, columns) of all steps: products do not care which step a row belongs to.
Value steps_as_rows(Value x) {
  const Shape& s = x.shape();
  return reshape(x, {s[0] * s[1], s[2]});
}

RecurrentOutputs recurrent(Value x, RecurrentOptions options, std::span<const RecurrentWeights> directions,
                           std::span<const Value> states) {
  const std::string_view site = cell_name(options);
  check(x.shape().rank() == 3, site, "{}: input is {}, expected (steps, samples, features)", axes::path(x),
        x.type().str());
  check(directions.size() == 1 || directions.size() == 2, site, "{}: weights of {} directions, expected 1 or 2",
        axes::path(x), directions.size());
  const Shape shape = x.shape();  // a copy, as nodes move when others are added
  options.directions = static_cast<int>(directions.size());
  options.initial = !states.empty();
  options.bias = !options.lstm() && static_cast<bool>(directions[0].bias_hh);
  std::vector<Value> inputs;
  for (const RecurrentWeights& w : directions) {
    check(static_cast<bool>(w.bias_ih) == static_cast<bool>(directions[0].bias_hh) &&
              static_cast<bool>(w.bias_hh) == static_cast<bool>(directions[0].bias_hh),
          site, "{}: some biases are missing, expected all of them or none", axes::path(x));
    const Value bias = options.lstm() && w.bias_ih ? w.bias_ih + w.bias_hh : w.bias_ih;
    const Value product = cast(linear(steps_as_rows(x), w.weight_ih, bias), w.weight_ih.dtype());
    inputs.push_back(reshape(product, {shape[0], shape[1], product.shape()[1]}));
    inputs.push_back(w.weight_hh);
    if (options.bias) inputs.push_back(w.bias_hh);
  }
  for (const Value s : states) inputs.push_back(cast(s, directions[0].weight_hh.dtype()));
  const auto outputs = x.graph().apply(std::make_shared<RecurrentOp>(options), std::move(inputs));
  return {.y = outputs[0], .h = outputs[1], .c = options.lstm() ? outputs[2] : Value()};
}

// A layer, which takes and gives steps first, over x with the samples first.
template <class Layer>
RecurrentOutputs samples_first(std::string_view site, Value x, Layer layer) {
  check(x.shape().rank() == 3, site, "{}: input is {}, expected (samples, steps, features)", axes::path(x),
        x.type().str());
  RecurrentOutputs outputs = layer(transpose(x, 0, 1));
  outputs.y = transpose(outputs.y, 0, 1);
  return outputs;
}

double recurrence_flops(const Type& products, const Type& weight, int directions) {
  return 2.0 * static_cast<double>(products.shape.elements()) * static_cast<double>(weight.shape[1]) * directions;
}

}  // namespace

std::vector<Type> RecurrentOp::infer(std::string_view path, std::span<const Type> inputs) const {
  const RecurrentPlaces at(options_);
  check(inputs.size() == at.inputs, name(), "{}: {} inputs, expected {}", path, inputs.size(), at.inputs);
  const Type &x = inputs[0], &w = inputs[1];
  check(x.shape.rank() == 3 && w.shape.rank() == 2, name(),
        "{}: products of the input are {} and weight_hh {}, expected (steps, samples, {} hidden) and ({} hidden, "
        "hidden)",
        path, x.str(), w.str(), options_.gates(), options_.gates());
  check(x.dtype == DType::F32 || x.dtype == DType::F64, name(), "{}: input is {}, expected f32 or f64", path, x.str());
  const std::int64_t steps = x.shape[0], n = x.shape[1], hidden = w.shape[1], d = options_.directions;
  const Type products{Shape{steps, n, options_.gates() * hidden}, x.dtype}, state{Shape{n, d * hidden}, x.dtype};
  check(steps >= 1 && hidden >= 1, name(), "{}: {} steps of {} hidden features, expected at least 1", path, steps,
        hidden);
  for (std::size_t k = 0; k < at.directions; ++k) {
    check_recurrent_type(name(), path, "weight_hh", inputs[at.weight(k)],
                         {Shape{options_.gates() * hidden, hidden}, x.dtype});
    check_recurrent_type(name(), path, "the product of the input and weight_ih", inputs[at.product(k)], products);
    if (options_.bias)
      check_recurrent_type(name(), path, "bias_hh", inputs[at.bias(k)], {Shape{options_.gates() * hidden}, x.dtype});
  }
  for (std::size_t k = 0; options_.initial && k < at.states; ++k)
    check_recurrent_type(name(), path, k == 0 ? "the initial h" : "the initial c", inputs[at.initial(k)], state);
  const Type y{Shape{steps, n, d * hidden}, x.dtype};
  std::vector<Type> outputs{y};
  outputs.insert(outputs.end(), at.states, state);
  outputs.insert(outputs.end(), at.directions, products);
  outputs.push_back(y);
  return outputs;
}

std::vector<Value> RecurrentOp::gradient(const Request& r) const {
  const RecurrentPlaces at(options_);
  const bool lstm = options_.lstm();
  std::vector<Value> inputs;
  for (std::size_t d = 0; d < at.directions; ++d) {
    inputs.push_back(r.inputs[at.weight(d)]);
    inputs.push_back(r.outputs[at.gates(d)]);
  }
  inputs.push_back(r.outputs[0]);
  inputs.push_back(r.outputs[at.kept()]);
  for (std::size_t k = 0; options_.initial && k < at.states; ++k) inputs.push_back(r.inputs[at.initial(k)]);
  const RecurrentGradientOp::Given given{.y = static_cast<bool>(r.gradients[0]),
                                         .h = static_cast<bool>(r.gradients[1]),
                                         .c = lstm && static_cast<bool>(r.gradients[2])};
  for (std::size_t k = 0; k < 1 + at.states; ++k) {
    if (r.gradients[k]) inputs.push_back(r.gradients[k]);
  }
  const auto d = r.inputs[0].graph().apply(std::make_shared<RecurrentGradientOp>(options_, given), std::move(inputs));

  std::vector<Value> result(r.inputs.size());
  const std::size_t per_direction = lstm ? 2 : 3;
  for (std::size_t k = 0; k < at.directions; ++k) {
    const Value by_input = d[k * per_direction], by_hidden = d[k * per_direction + (lstm ? 0 : 1)];
    const Value before = d[k * per_direction + per_direction - 1];
    result[at.product(k)] = by_input;
    const bool weight = r.needed[at.weight(k)], bias = options_.bias && r.needed[at.bias(k)];
    if (weight) {  // (T N, H), (T N, G) -> (G, H), [(G)]
      const auto sums =
          before.graph().apply(std::make_shared<LinearBackwardWeightsOp>(bias),
                               {cast_for_product(steps_as_rows(before)), cast_for_product(steps_as_rows(by_hidden))});
      result[at.weight(k)] = sums[0];
      if (bias) result[at.bias(k)] = sums[1];
    } else if (bias) {
      result[at.bias(k)] = channel_sum(steps_as_rows(by_hidden));
    }
  }
  for (std::size_t k = 0; options_.initial && k < at.states; ++k)
    result[at.initial(k)] = d[at.directions * per_direction + k];
  return result;
}

double RecurrentOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return recurrence_flops(inputs[0], inputs[1], options_.directions);
}

std::string RecurrentOp::attributes() const {
  std::string text = options_.directions == 2 ? "both directions" : "forward";
  if (options_.bias) text += ", bias";
  if (options_.initial) text += ", initial states";
  return text;
}

std::vector<Type> RecurrentGradientOp::infer(std::string_view, std::span<const Type> inputs) const {
  const Type &w = inputs[0], &gates = inputs[1];
  const std::int64_t hidden = w.shape[1], n = gates.shape[1], d = options_.directions;
  const Type before{Shape{gates.shape[0], n, hidden}, gates.dtype}, state{Shape{n, d * hidden}, gates.dtype};
  std::vector<Type> outputs;
  for (int k = 0; k < options_.directions; ++k) {
    outputs.insert(outputs.end(), options_.lstm() ? 1 : 2, gates);
    outputs.push_back(before);
  }
  if (options_.initial) outputs.insert(outputs.end(), options_.lstm() ? 2 : 1, state);
  return outputs;
}

double RecurrentGradientOp::flops(std::span<const Type> inputs, std::span<const Type>) const {
  return recurrence_flops(inputs[1], inputs[0], options_.directions);
}

std::string RecurrentGradientOp::attributes() const {
  std::string text = options_.directions == 2 ? "both directions, by" : "forward, by";
  if (given_.y) text += " y";
  if (given_.h) text += " h";
  if (given_.c) text += " c";
  if (options_.initial) text += ", initial states";
  return text;
}

RecurrentOutputs lstm_steps_first(Value x, std::span<const RecurrentWeights> directions, Value h, Value c) {
  check(static_cast<bool>(h) == static_cast<bool>(c), "lstm",
        "{}: one of the initial states h and c is missing, expected both or none", axes::path(x));
  const Value states[] = {h, c};
  return recurrent(x, {.cell = RecurrentCell::Lstm}, directions, std::span(states, h ? 2 : 0));
}

RecurrentOutputs gru_steps_first(Value x, std::span<const RecurrentWeights> directions, Value h) {
  return recurrent(x, {.cell = RecurrentCell::Gru}, directions, std::span(&h, h ? 1 : 0));
}

RecurrentOutputs lstm(Value x, std::span<const RecurrentWeights> directions, Value h, Value c) {
  return samples_first("lstm", x, [&](Value steps) { return lstm_steps_first(steps, directions, h, c); });
}

RecurrentOutputs gru(Value x, std::span<const RecurrentWeights> directions, Value h) {
  return samples_first("gru", x, [&](Value steps) { return gru_steps_first(steps, directions, h); });
}

}  // namespace lockstep
