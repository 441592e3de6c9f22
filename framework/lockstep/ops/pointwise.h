// Arithmetic and functions of numbers, element by element. Shapes broadcast as in NumPy; throws Error where they do not
// fit. A bf16 operand beside another type is converted to this type. Each function can be differentiated any number of
// times.
#pragma once

#include "lockstep/ops/pointwise/pointwise_op.h"

namespace lockstep {

// Applies the function of this name, a row of the table in ops/pointwise/table.cpp; its last operands may be constants
// of the trace. Throws Error for an unknown name.
Value apply_pointwise(std::string_view function, std::vector<Value> operands,
                      const std::vector<double>& constants = {});

Value relu(Value x);
Value gate(Value y, Value d);  // 0 where y <= 0, else d
Value exp(Value x);
Value log(Value x);
Value sqrt(Value x);
Value tanh(Value x);
Value sigmoid(Value x);
Value log_sigmoid(Value x);  // log(1 / (1 + e^-x)), without overflow
Value erf(Value x);
Value gelu(Value x);       // x times the probability that a normal number is smaller
Value gelu_tanh(Value x);  // the approximation of gelu by tanh
Value sin(Value x);
Value cos(Value x);
Value square(Value x);
Value abs(Value x);
Value sign(Value x);  // 0 of 0 and of NaN
Value add(Value a, Value b);
Value subtract(Value a, Value b);
Value multiply(Value a, Value b);
Value divide(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value power(Value x, Value y);
Value power(Value x, double y);
Value reciprocal(Value x);

// Activations, with PyTorch's defaults.
Value relu6(Value x);  // 0 <= x <= 6
Value silu(Value x);   // x sigmoid(x)
Value leaky_relu(Value x, double slope = 0.01);
Value elu(Value x, double alpha = 1);                             // alpha (e^x - 1) where x <= 0
Value softplus(Value x, double beta = 1, double threshold = 20);  // log(1 + e^(beta x)) / beta; x for a large beta x
Value hard_sigmoid(Value x);                                      // (x + 3) / 6 between 0 and 1
Value hard_swish(Value x);                                        // x hard_sigmoid(x)

// Returns x with numbers below `low` or above `high` replaced by that bound; -infinity and infinity set no bound. The
// slope is 1 within the bounds and at them.
Value clamp(Value x, double low, double high);
Value clamp(Value x, Value low, Value high);

// Returns x as a constant: no gradient passes through it.
Value detach(Value x);

// Comparisons: 1 where the statement holds, else 0, of the operands' type; NaN is not equal to any number, and neither
// greater nor less. They have no slope.
Value greater(Value a, Value b);
Value greater(Value a, double b);
Value greater_equal(Value a, Value b);
Value greater_equal(Value a, double b);
Value less(Value a, Value b);
Value less(Value a, double b);
Value less_equal(Value a, Value b);
Value less_equal(Value a, double b);
Value equal(Value a, Value b);
Value equal(Value a, double b);
Value not_equal(Value a, Value b);
Value not_equal(Value a, double b);
// Returns a where `condition` is not 0, else b; gradients flow to the operand that was taken. The condition is the
// result of a comparison, or a mask or label of a batch (any integer type).
Value where(Value condition, Value a, Value b);
Value where(Value condition, Value a, double b);
Value where(Value condition, double a, Value b);

// Returns scale * x + shift; both are constants of the trace.
Value scale_shift(Value x, double scale, double shift = 0);

inline Value operator+(Value a, Value b) { return add(a, b); }
inline Value operator-(Value a, Value b) { return subtract(a, b); }
inline Value operator*(Value a, Value b) { return multiply(a, b); }
inline Value operator/(Value a, Value b) { return divide(a, b); }
// A number beside a Value is a constant of the trace.
inline Value operator+(Value x, double b) { return scale_shift(x, 1, b); }
inline Value operator+(double a, Value x) { return scale_shift(x, 1, a); }
inline Value operator-(Value x, double b) { return scale_shift(x, 1, -b); }
inline Value operator-(double a, Value x) { return scale_shift(x, -1, a); }
inline Value operator*(Value x, double b) { return scale_shift(x, b); }
inline Value operator*(double a, Value x) { return scale_shift(x, a); }
inline Value operator-(Value x) { return scale_shift(x, -1); }
Value operator/(Value x, double b);
Value operator/(double a, Value x);

}  // namespace lockstep
