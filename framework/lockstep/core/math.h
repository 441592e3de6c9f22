// Elementary functions whose bits depend on nothing but their arguments: not on the processor nor on the system's
// libraries. For what reaches weights, samples or schedules. At most 2 units in the last place from the true value;
// what is infinite, NaN or zero is as in <cmath>. The same formulas run on vectors in kernels/native.
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
