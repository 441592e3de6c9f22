// Elementary functions whose bits depend on nothing but their arguments: not on the processor nor on the system's
// libraries. Use them wherever a result reaches weights, samples or schedules. The error is at most 2 units in the last
// place; infinite, NaN and zero results are as in <cmath>. Any thread. The same formulas run on vectors in
// kernels/native.
#pragma once

namespace lockstep::math {

double exp(double x);
double log(double x);
double tanh(double x);
double sigmoid(double x);  // 1 / (1 + e^-x)
double erf(double x);
double sin(double x);
double cos(double x);
double pow(double x, double y);

}  // namespace lockstep::math
