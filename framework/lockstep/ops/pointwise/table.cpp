// The table of pointwise functions. A new function needs a row here and a function of Values in ops/pointwise.h. A row
// is a formula of other rows, or has a code for which kernels/native/levels/pointwise.h has instructions.
#include <cmath>
#include <numbers>

#include "lockstep/core/error.h"
#include "lockstep/core/math.h"
#include "lockstep/ops/pointwise/function.h"

namespace lockstep::pointwise {
namespace {

Scalar exp(Scalar x) { return apply("exp", {x}); }
Scalar log(Scalar x) { return apply("log", {x}); }
Scalar power(Scalar x, Scalar y) { return apply("power", {x, y}); }
Scalar gate(Scalar y, Scalar d) { return apply("gate", {y, d}); }
Scalar select(Scalar c, Scalar a, Scalar b) { return apply("select", {c, a, b}); }
Scalar zero(Scalar like) { return like.expression().constant(0); }

// If the operands are equal, each gets half of the gradient.
Scalar of_larger(Scalar mine, Scalar other, Scalar dy) {
  return select(mine - other, dy, select(other - mine, zero(dy), 0.5 * dy));
}

constexpr Function kTable[] = {
    {.name = "copy",
     .operands = 1,
     .at = [](const double* x) { return x[0]; },
     .code = Code::Copy,
     .gradient = [](const Scalar*, Scalar, Scalar dy, int) { return dy; }},
    {.name = "add",
     .operands = 2,
     .at = [](const double* x) { return x[0] + x[1]; },
     .code = Code::Add,
     .gradient = [](const Scalar*, Scalar, Scalar dy, int) { return dy; }},
    {.name = "subtract",
     .operands = 2,
     .at = [](const double* x) { return x[0] - x[1]; },
     .code = Code::Subtract,
     .gradient = [](const Scalar*, Scalar, Scalar dy, int k) { return k == 0 ? dy : -dy; }},
    {.name = "multiply",
     .operands = 2,
     .at = [](const double* x) { return x[0] * x[1]; },
     .code = Code::Multiply,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int k) { return dy * x[1 - k]; }},
    {.name = "divide",
     .operands = 2,
     .at = [](const double* x) { return x[0] / x[1]; },
     .code = Code::Divide,
     .gradient = [](const Scalar* x, Scalar y, Scalar dy, int k) { return k == 0 ? dy / x[1] : -(dy * y / x[1]); }},
    {.name = "maximum",
     .operands = 2,
     .at = [](const double* x) { return x[0] != x[0]   ? x[0]
                                        : x[1] <= x[0] ? x[0]
                                                       : x[1]; },
     .code = Code::Maximum,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int k) { return of_larger(x[k], x[1 - k], dy); }},
    {.name = "minimum",
     .operands = 2,
     .at = [](const double* x) { return x[0] != x[0]   ? x[0]
                                        : x[1] >= x[0] ? x[0]
                                                       : x[1]; },
     .code = Code::Minimum,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int k) { return of_larger(x[1 - k], x[k], dy); }},
    {.name = "negate",
     .operands = 1,
     .at = [](const double* x) { return -x[0]; },
     .code = Code::Negate,
     .gradient = [](const Scalar*, Scalar, Scalar dy, int) { return -dy; }},
    {.name = "abs",
     .operands = 1,
     .at = [](const double* x) { return std::abs(x[0]); },
     .code = Code::Abs,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return dy * apply("sign", {x[0]}); }},
    {.name = "sign",
     .operands = 1,
     .at = [](const double* x) { return static_cast<double>(x[0] > 0) - static_cast<double>(x[0] < 0); },
     .code = Code::Sign,
     .gradient = [](const Scalar*, Scalar, Scalar, int) { return Scalar(); }},
    {.name = "relu",
     .operands = 1,
     .at = [](const double* x) { return x[0] < 0 ? 0 : x[0]; },
     .code = Code::Relu,
     .gradient = [](const Scalar*, Scalar y, Scalar dy, int) { return gate(y, dy); }},
    // 0 where the first operand is not positive, else the second: also where that is infinite, unlike a product.
    {.name = "gate",
     .operands = 2,
     .at = [](const double* x) { return x[0] <= 0 ? 0 : x[1]; },
     .code = Code::Gate,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int k) { return k == 0 ? Scalar() : gate(x[0], dy); }},
    {.name = "select",
     .operands = 3,
     .at = [](const double* x) { return x[0] > 0 ? x[1] : x[2]; },
     .code = Code::Select,
     .gradient =
         [](const Scalar* x, Scalar, Scalar dy, int k) {
           if (k == 0) return Scalar();
           return k == 1 ? select(x[0], dy, zero(dy)) : select(x[0], zero(dy), dy);
         }},
    {.name = "sqrt",
     .operands = 1,
     .at = [](const double* x) { return std::sqrt(x[0]); },
     .code = Code::Sqrt,
     .gradient = [](const Scalar*, Scalar y, Scalar dy, int) { return dy * (0.5 / y); }},
    {.name = "exp",
     .operands = 1,
     .at = [](const double* x) { return math::exp(x[0]); },
     .code = Code::Exp,
     .gradient = [](const Scalar*, Scalar y, Scalar dy, int) { return dy * y; }},
    {.name = "log",
     .operands = 1,
     .at = [](const double* x) { return math::log(x[0]); },
     .code = Code::Log,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return dy / x[0]; }},
    {.name = "tanh",
     .operands = 1,
     .at = [](const double* x) { return math::tanh(x[0]); },
     .code = Code::Tanh,
     .gradient = [](const Scalar*, Scalar y, Scalar dy, int) { return dy * ((1 - y) * (1 + y)); }},
    {.name = "sigmoid",
     .operands = 1,
     .at = [](const double* x) { return math::sigmoid(x[0]); },
     .code = Code::Sigmoid,
     .gradient = [](const Scalar*, Scalar y, Scalar dy, int) { return dy * (y * (1 - y)); }},
    // min(x, 0) - log(1 + e) with e = exp(-|x|). The logarithm times e / ((1 + e) - 1) corrects the rounding of 1 + e
    // (Goldberg, "What every computer scientist should know about floating-point arithmetic", 1991, theorem 4).
    {.name = "log_sigmoid",
     .operands = 1,
     .value =
         [](const Scalar* x) {
           const Scalar e = exp(-apply("abs", {x[0]})), above = (1 + e) - 1;
           const Scalar log_1p = select(above, log(1 + e) * (e / above), e);
           return apply("minimum", {x[0], zero(x[0])}) - log_1p;
         },
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return dy * apply("sigmoid", {-x[0]}); }},
    {.name = "erf",
     .operands = 1,
     .at = [](const double* x) { return math::erf(x[0]); },
     .code = Code::Erf,
     .gradient = [](const Scalar* x, Scalar, Scalar dy,
                    int) { return dy * (2 * std::numbers::inv_sqrtpi * exp(-(x[0] * x[0]))); }},
    {.name = "sin",
     .operands = 1,
     .at = [](const double* x) { return math::sin(x[0]); },
     .code = Code::Sin,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return dy * apply("cos", {x[0]}); }},
    {.name = "cos",
     .operands = 1,
     .at = [](const double* x) { return math::cos(x[0]); },
     .code = Code::Cos,
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return -(dy * apply("sin", {x[0]})); }},
    {.name = "power",
     .operands = 2,
     .at = [](const double* x) { return math::pow(x[0], x[1]); },
     .code = Code::Power,
     .gradient = [](const Scalar* x, Scalar y, Scalar dy,
                    int k) { return k == 0 ? dy * (x[1] * power(x[0], x[1] - 1)) : dy * (y * log(x[0])); }},
    {.name = "square",
     .operands = 1,
     .value = [](const Scalar* x) { return x[0] * x[0]; },
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return dy * (2 * x[0]); }},
    // Hendrycks and Gimpel, "Gaussian error linear units", 2016: x times the probability of a smaller normal number.
    {.name = "gelu",
     .operands = 1,
     .value = [](const Scalar* x) { return 0.5 * x[0] * (1 + apply("erf", {x[0] * (0.5 * std::numbers::sqrt2)})); }},
    // The approximation there, PyTorch's approximate="tanh".
    {.name = "gelu_tanh",
     .operands = 1,
     .value =
         [](const Scalar* x) {
           constexpr double kFactor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;
           return 0.5 * x[0] * (1 + apply("tanh", {kFactor * (x[0] + 0.044715 * (x[0] * x[0] * x[0]))}));
         }},
};

}  // namespace

std::span<const Function> functions() { return kTable; }

const Function& function(std::string_view name) {
  for (const Function& f : kTable) {
    if (f.name == name) return f;
  }
  fail("pointwise", "there is no function '{}'", name);
}

}  // namespace lockstep::pointwise
