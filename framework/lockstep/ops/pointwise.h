// Arithmetic and functions of numbers, element by element. Shapes broadcast as in NumPy; throws Error where they do not
// fit. A bf16 operand beside another type is converted to this type. Each function can be differentiated any number of
// times.
#pragma once

#include "lockstep/ops/pointwise/pointwise_op.h"

namespace lockstep {

// Applies the function of this name, a row of the table in ops/pointwise/table.cpp. Throws Error for an unknown name.
Value apply_pointwise(std::string_view function, std::vector<Value> operands);

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
