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
Scalar relu(Scalar x) { return apply("relu", {x}); }
Scalar abs(Scalar x) { return apply("abs", {x}); }
Scalar constant(Scalar like, double value) { return like.expression().constant(value); }
Scalar zero(Scalar like) { return constant(like, 0); }

// If the operands are equal, each gets half of the gradient.
Scalar of_larger(Scalar mine, Scalar other, Scalar dy) {
  return select(mine - other, dy, select(other - mine, zero(dy), 0.5 * dy));
}

// e^x - 1 for x <= 0, to all digits near 0: with t = tanh(x / 2) it is 2 t / (1 - t).
Scalar exp_minus_one(Scalar x) {
  const Scalar t = apply("tanh", {0.5 * x});
  return 2 * t / (1 - t);
}

// log(1 + u) for 0 <= u <= 1, to all digits near 0: what is lost in w = 1 + u is made up for by u / (w - 1) (Goldberg,
// "What every computer scientist should know about floating-point arithmetic", 1991, theorem 4).
Scalar log_one_plus(Scalar u) {
  const Scalar w = 1 + u, rest = w - 1;
  return select(rest, log(w) * (u / rest), u);
}

// x where x is not positive, else 0: keeps exp() of a branch that is not taken from becoming infinite, in derivatives
// of every order.
Scalar not_positive(Scalar x) { return select(x, zero(x), x); }

// x between 0 and 6; the slope at both ends is 0.
Scalar between_0_and_6(Scalar x) { return apply("minimum", {relu(x), constant(x, 6)}); }
Scalar gate_between_0_and_6(Scalar x, Scalar dy) { return gate(x, gate(6 - x, dy)); }

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
    // Comparisons are 1 or 0 and have no slope.
    {.name = "greater",
     .operands = 2,
     .at = [](const double* x) { return x[0] > x[1] ? 1.0 : 0.0; },
     .code = Code::Greater,
     .gradient = [](const Scalar*, Scalar, Scalar, int) { return Scalar(); }},
    {.name = "greater_equal",
     .operands = 2,
     .at = [](const double* x) { return x[0] >= x[1] ? 1.0 : 0.0; },
     .code = Code::GreaterEqual,
     .gradient = [](const Scalar*, Scalar, Scalar, int) { return Scalar(); }},
    {.name = "equal",
     .operands = 2,
     .at = [](const double* x) { return x[0] == x[1] ? 1.0 : 0.0; },
     .code = Code::Equal,
     .gradient = [](const Scalar*, Scalar, Scalar, int) { return Scalar(); }},
    {.name = "less",
     .operands = 2,
     .value =
         [](const Scalar* x) {
           return apply("greater", {x[1], x[0]});
         }},
    {.name = "less_equal",
     .operands = 2,
     .value =
         [](const Scalar* x) {
           return apply("greater_equal", {x[1], x[0]});
         }},
    {.name = "not_equal",
     .operands = 2,
     .value =
         [](const Scalar* x) {
           return 1 - apply("equal", {x[0], x[1]});
         }},
    // The operand, as a constant: no gradient passes.
    {.name = "detach",
     .operands = 1,
     .value = [](const Scalar* x) { return x[0]; },
     .gradient = [](const Scalar*, Scalar, Scalar, int) { return Scalar(); }},
    // The second operand where the first one is not 0, else the third.
    {.name = "where", .operands = 3, .value = [](const Scalar* x) { return select(abs(x[0]), x[1], x[2]); }},
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
     .gradient =
         [](const Scalar* x, Scalar y, Scalar dy, int k) {
           // A constant, x^0, has no slope, also at 0; and 0^y is 0 for every y above 0.
           if (k == 0) return dy * select(abs(x[1]), x[1] * power(x[0], x[1] - 1), zero(dy));
           const Scalar is_zero = apply("equal", {x[0], zero(dy)}) * apply("greater_equal", {x[1], zero(dy)});
           return dy * select(is_zero, zero(dy), y * log(x[0]));
         }},
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
    {.name = "reciprocal",
     .operands = 1,
     .value = [](const Scalar* x) { return 1 / x[0]; },
     .gradient = [](const Scalar*, Scalar y, Scalar dy, int) { return -(dy * (y * y)); }},
    // (x, low, high), as torch.clamp: the slope is 1 at both ends, and where low > high the value is high.
    {.name = "clamp",
     .operands = 3,
     .value =
         [](const Scalar* x) {
           return apply("minimum", {apply("maximum", {x[0], x[1]}), x[2]});
         },
     .gradient =
         [](const Scalar* x, Scalar, Scalar dy, int k) {
           const Scalar below = x[1] - x[0], above = x[0] - x[2], none = zero(dy);
           if (k == 0) return select(below, none, select(above, none, dy));
           if (k == 1) return select(below, gate(x[2] - x[1], dy), none);
           return select(x[1] - x[2], dy, select(above, dy, none));
         }},
    // Elfwing et al., "Sigmoid-weighted linear units", 2017.
    {.name = "silu", .operands = 1, .value = [](const Scalar* x) { return x[0] * apply("sigmoid", {x[0]}); }},
    // (x, slope).
    {.name = "leaky_relu",
     .operands = 2,
     .value = [](const Scalar* x) { return select(x[0], x[0], x[0] * x[1]); },
     .gradient = [](const Scalar* x, Scalar, Scalar dy,
                    int k) { return k == 0 ? select(x[0], dy, dy * x[1]) : select(x[0], zero(dy), dy * x[0]); }},
    // Clevert et al., "Fast and accurate deep network learning by exponential linear units", 2015: (x, alpha).
    {.name = "elu",
     .operands = 2,
     .value = [](const Scalar* x) { return select(x[0], x[0], x[1] * exp_minus_one(not_positive(x[0]))); },
     .gradient =
         [](const Scalar* x, Scalar, Scalar dy, int k) {
           const Scalar below = not_positive(x[0]);
           return k == 0 ? select(x[0], dy, dy * (x[1] * exp(below))) : dy * exp_minus_one(below);
         }},
    // log(1 + e^(beta x)) / beta, and x itself where beta x is above the threshold, as PyTorch: (x, beta, threshold).
    {.name = "softplus",
     .operands = 3,
     .value =
         [](const Scalar* x) {
           const Scalar z = x[0] * x[1];
           return select(z - x[2], x[0], (relu(z) + log_one_plus(exp(-abs(z)))) / x[1]);
         },
     .gradient =
         [](const Scalar* x, Scalar y, Scalar dy, int k) {
           const Scalar z = x[0] * x[1], above = z - x[2], slope = apply("sigmoid", {z});
           if (k == 0) return select(above, dy, dy * slope);
           return k == 1 ? select(above, zero(dy), dy * ((x[0] * slope - y) / x[1])) : Scalar();
         }},
    {.name = "relu6",
     .operands = 1,
     .value = [](const Scalar* x) { return between_0_and_6(x[0]); },
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return gate_between_0_and_6(x[0], dy); }},
    // Howard et al., "Searching for MobileNetV3", 2019.
    {.name = "hard_sigmoid",
     .operands = 1,
     .value = [](const Scalar* x) { return between_0_and_6(x[0] + 3) / 6; },
     .gradient = [](const Scalar* x, Scalar, Scalar dy, int) { return gate_between_0_and_6(x[0] + 3, dy / 6); }},
    {.name = "hard_swish",
     .operands = 1,
     .value = [](const Scalar* x) { return x[0] * between_0_and_6(x[0] + 3) / 6; },
     .gradient =
         [](const Scalar* x, Scalar, Scalar dy, int) {
           const Scalar shifted = x[0] + 3;
           return gate(shifted, select(6 - shifted, dy * (x[0] / 3 + 0.5), dy));
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
