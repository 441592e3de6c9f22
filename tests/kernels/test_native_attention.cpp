// Native attention and cross entropy over a vocabulary beside the generic kernels in f64: their values, and the same
// bits with any number of workers and, but for products of bf16 pairs, at every level.
#include <numeric>

#include "lockstep/kernels/generic/attention.h"
#include "lockstep/kernels/generic/vocabulary_cross_entropy.h"
#include "lockstep/kernels/native/attention.h"
#include "lockstep/kernels/native/vocabulary.h"
#include "tests/kernels/native_support.h"

namespace lockstep::native {
namespace {

using kernels::Arguments;
using kernels::AttentionGeometry;
using kernels::AttentionProjections;
using kernels::AttentionRun;
using kernels::KernelRequest;
using kernels::VocabularyInputs;
using kernels::VocabularyShape;

template <class T>
constexpr DType kType = std::is_same_v<T, double>  ? DType::F64
                        : std::is_same_v<T, float> ? DType::F32
                                                   : DType::BF16;

template <class T>
std::vector<T> converted(const std::vector<double>& values) {
  std::vector<T> out;
  for (const double v : values) {
    if constexpr (std::is_same_v<T, double>) {
      out.push_back(v);
    } else {
      out.push_back(from_float<T>(static_cast<float>(v)));
    }
  }
  return out;
}
template <class T>
std::vector<double> widened(const std::vector<T>& values) {
  if constexpr (std::is_same_v<T, double>) {
    return values;
  } else {
    return as_double(values);
  }
}
template <class T>
std::vector<T> zeros(std::int64_t n) {
  return std::vector<T>(static_cast<std::size_t>(n));
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size());
  const std::vector<double> values = widened(got);
  double largest = 1;
  for (const double v : want) largest = std::isfinite(v) ? std::max(largest, std::abs(v)) : largest;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (values[i] == want[i]) continue;  // infinities
    ASSERT_NEAR(values[i], want[i], tolerance * largest) << what << ", element " << i;
  }
}

struct Case {
  const char* name;
  std::int64_t samples = 2, queries = 70, keys = 70, heads = 4, key_heads = 2, width = 24;
  AttentionAttributes attributes = {};
  std::vector<std::int32_t> ints = {};  // of the input that `attributes` say is there
};

std::vector<std::int32_t> segments(std::int64_t samples, std::int64_t keys, std::int64_t length) {
  std::vector<std::int32_t> ids;
  for (std::int64_t i = 0; i < samples * keys; ++i) ids.push_back(static_cast<std::int32_t>(i % keys / length));
  return ids;
}

std::vector<Case> cases() {
  return {
      {.name = "full", .keys = 300},
      {.name = "causal packed",
       .queries = 197,
       .keys = 197,
       .width = 33,
       .attributes = {.packed = true, .causal = true}},
      {.name = "window", .queries = 140, .keys = 140, .attributes = {.causal = true, .window = 45}},
      {.name = "alibi", .queries = 33, .heads = 6, .attributes = {.alibi = true}},
      {.name = "one query of a cache", .queries = 1, .attributes = {.causal = true, .offset = true}, .ints = {69, 3}},
      {.name = "lengths", .attributes = {.causal = true, .lengths = true}, .ints = {0, 41}},
      {.name = "segments",
       .queries = 150,
       .keys = 150,
       .attributes = {.causal = true, .segments = true},
       .ints = segments(2, 150, 40)},
      {.name = "dropout", .queries = 40, .keys = 141, .attributes = {.dropout = 0.3, .key = 77}},
      {.name = "dropout of fours", .queries = 40, .keys = 140, .attributes = {.dropout = 0.3, .key = 77}},
  };
}

// The arrays of one case in one type, with the results of a pass forward and a pass backward.
template <class T, class Sum>
struct Attention {
  explicit Attention(Case c) : what(std::move(c)) {
    AttentionAttributes& a = what.attributes;
    a.scale = 0.3;
    if (a.packed) a.heads = what.heads;
    const DType type = kType<T>;
    const Shape keys{what.samples, what.keys, what.key_heads, what.width};
    std::vector<Type> types{
        {Shape{what.samples, what.queries, what.heads, what.width}, type}, {keys, type}, {keys, type}};
    if (a.packed) types = {{Shape{what.samples, what.queries, what.heads + 2 * what.key_heads, what.width}, type}};
    for (std::size_t i = 0; i < types.size(); ++i) {
      // In bf16 for all, so that the references read the same numbers.
      x.push_back(converted<T>(as_double(random_elements<kernels::native::Bf16>(types[i].shape.elements(), 11 + i))));
      dx.push_back(zeros<T>(types[i].shape.elements()));
      pointers.push_back(x.back().data());
      gradients.push_back(dx.back().data());
    }
    const std::int64_t count = what.samples * what.queries * what.heads;
    result = zeros<T>(count * what.width);
    log_sums = zeros<Sum>(count);
    dresult = converted<T>(as_double(random_elements<kernels::native::Bf16>(count * what.width, 5)));
    ids = {1000, 1001};
    if (!what.ints.empty()) pointers.push_back(what.ints.data());
    if (a.dropout > 0) pointers.insert(pointers.end(), {&step, ids.data()});
    op = std::make_unique<AttentionOp>(a);
    geometry = std::make_unique<AttentionGeometry>(KernelRequest{.op = op.get(), .inputs = types, .outputs = {}}, a);
  }
  Attention(const Attention&) = delete;

  AttentionRun run() const { return {*geometry, Arguments{pointers.data(), nullptr, nullptr}}; }
  AttentionProjections<const T> inputs() const { return {*geometry, pointers.data()}; }
  AttentionProjections<T> outputs() const { return {*geometry, gradients.data()}; }

  Case what;
  std::vector<std::vector<T>> x, dx;
  std::vector<T> result, dresult;
  std::vector<Sum> log_sums;
  std::int64_t step = 9;
  std::vector<std::int64_t> ids;
  std::vector<const void*> pointers;
  std::vector<void*> gradients;
  std::unique_ptr<AttentionOp> op;
  std::unique_ptr<AttentionGeometry> geometry;
};

template <class T>
void run_native(Attention<T, float>& a, std::int64_t workers, const kernels::NativeKernels& level) {
  const AttentionGeometry& g = *a.geometry;
  const AttentionRun run = a.run();
  std::vector<float> scratch(std::max(kernels::native::attention_forward_scratch<T>(g, workers, level),
                                      kernels::native::attention_backward_scratch<T>(g, workers, level)) /
                                 sizeof(float),
                             std::numeric_limits<float>::quiet_NaN());
  kernels::native::attention_forward<T>(g, run, {a.inputs(), a.result.data(), a.log_sums.data()}, workers,
                                        scratch.data(), level);
  kernels::native::attention_backward<T>(
      g, run, {a.inputs(), a.result.data(), a.log_sums.data(), a.dresult.data(), a.outputs()}, workers, scratch.data(),
      level);
}

// Calls body(table) for each level, and for the products of bf16 pairs that it would not choose.
template <class Body>
void for_tables(const Body& body) {
  for_levels([&](const kernels::NativeKernels& level) {
    body(level);
    kernels::NativeKernels other = level;
    for (kernels::native::PairTable* pairs : {&other.pair_tiles, &other.pair_dots}) {
      if (kernels::native::pair_table(other) == nullptr) break;
      *pairs = {};
      body(other);
    }
  });
}
// Whether arrays of T have the same bits with both tables.
template <class T>
bool alike(const kernels::NativeKernels& a, const kernels::NativeKernels& b) {
  const auto adds = [](const kernels::NativeKernels& k) {
    const kernels::native::PairTable* const pairs = kernels::native::pair_table(k);
    return pairs != nullptr ? pairs->add : nullptr;
  };
  return std::is_same_v<T, float> || adds(a) == adds(b);
}

template <class T>
class NativeAttention : public ::testing::Test {};
TYPED_TEST_SUITE(NativeAttention, ElementTypes);

TYPED_TEST(NativeAttention, IsTheGenericOneAtEveryLevel) {
  using T = TypeParam;
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.name);
    Attention<double, double> want(c);
    kernels::generic::attention_forward<double>(*want.geometry, want.run(), want.inputs(), want.result.data(),
                                                want.log_sums.data());
    kernels::generic::attention_backward<double>(
        *want.geometry, want.run(),
        {want.inputs(), want.result.data(), want.log_sums.data(), want.dresult.data(), want.outputs()});
    const auto expect_want = [&](const Attention<T, float>& got) {
      constexpr double kTolerance = std::is_same_v<T, float> ? 3e-6 : 0x1p-7;
      expect_near(got.result, want.result, kTolerance, "result");
      expect_near(got.log_sums, want.log_sums, 1e-6, "log-sum-exp");
      for (std::size_t i = 0; i < want.dx.size(); ++i) expect_near(got.dx[i], want.dx[i], kTolerance, "gradient");
    };
    Attention<T, float> first(c);
    run_native(first, 1, kernels::native_kernels());
    expect_want(first);
    for_tables([&](const kernels::NativeKernels& level) {
      Attention<T, float> other(c);
      run_native(other, 3, level);
      if (!alike<T>(level, kernels::native_kernels())) return expect_want(other);
      EXPECT_EQ(other.result, first.result);
      EXPECT_EQ(other.log_sums, first.log_sums);
      EXPECT_EQ(other.dx, first.dx);
    });
  }
}

// A loss of `positions` positions with everything that it may have, and its gradients.
template <class T, class Sum>
struct Vocabulary {
  Vocabulary(std::int64_t positions, std::int64_t features, std::int64_t words, double smoothing = 0.1) {
    const auto number = [](std::int64_t n, std::uint64_t seed) {
      return as_double(random_elements<kernels::native::Bf16>(n, seed));
    };
    x = converted<T>(number(positions * features, 1));
    table = converted<Sum>(number(words * features, 2));
    bias = converted<Sum>(number(words, 3));
    for (std::int64_t m = 0; m < positions; ++m) {
      targets.push_back(m % 5 == 3 ? -100 : static_cast<std::int32_t>(m * 31 % words));
      weights.push_back(static_cast<Sum>(m % 7));
    }
    for (auto* values : {&log_sums, &losses}) *values = zeros<Sum>(positions);
    dx = zeros<T>(positions * features);
    dtable = zeros<Sum>(words * features);
    dbias = zeros<Sum>(words);
    pointers = {x.data(), table.data(), targets.data(), bias.data(), weights.data()};
    const VocabularyAttributes attributes{.options = {.label_smoothing = smoothing}, .bias = true, .weights = true};
    op = std::make_unique<VocabularyCrossEntropyOp>(attributes);
    const std::vector<Type> types{{Shape{positions, features}, kType<T>}, {Shape{words, features}, kType<Sum>}};
    shape =
        std::make_unique<VocabularyShape>(KernelRequest{.op = op.get(), .inputs = types, .outputs = {}}, attributes);
  }
  VocabularyInputs<T, Sum> inputs() const { return {*shape, Arguments{pointers.data(), nullptr, nullptr}}; }

  std::vector<T> x, dx;
  std::vector<Sum> table, bias, weights, log_sums, losses, dtable, dbias;
  std::vector<std::int32_t> targets;
  Sum loss = 0, weight_sum = 0;
  double correct = 0;
  std::vector<const void*> pointers;
  std::unique_ptr<VocabularyCrossEntropyOp> op;
  std::unique_ptr<VocabularyShape> shape;
};

template <class T>
void run_native(Vocabulary<T, float>& v, std::int64_t workers, const kernels::NativeKernels& level) {
  namespace native = kernels::native;
  std::vector<float> scratch(std::max(native::vocabulary_forward_scratch<T>(*v.shape, workers, level),
                                      native::vocabulary_backward_scratch<T>(*v.shape, workers, level)) /
                                 sizeof(float),
                             std::numeric_limits<float>::quiet_NaN());
  native::vocabulary_forward<T>(*v.shape, v.inputs(),
                                {&v.loss, &v.weight_sum, v.log_sums.data(), v.losses.data(), &v.correct}, workers,
                                scratch.data(), level);
  native::vocabulary_backward<T>(*v.shape, v.inputs(),
                                 {v.log_sums.data(), v.weight_sum, 2.0F, v.dx.data(), v.dtable.data(), v.dbias.data()},
                                 workers, scratch.data(), level);
}

template <class T>
void run_generic(Vocabulary<T, T>& v) {
  kernels::generic::vocabulary_forward<T>(*v.shape, v.inputs(),
                                          {&v.loss, &v.weight_sum, v.log_sums.data(), v.losses.data(), &v.correct});
}

template <class T>
class NativeVocabulary : public ::testing::Test {};
TYPED_TEST_SUITE(NativeVocabulary, ElementTypes);

TYPED_TEST(NativeVocabulary, IsTheGenericOneAtEveryLevel) {
  using T = TypeParam;
  struct Sizes {
    std::int64_t positions, features, words;
  };
  for (const Sizes s : {Sizes{300, 40, 300}, Sizes{5, 7, 3}, Sizes{33, 16, 1100}}) {
    SCOPED_TRACE(s.words);
    Vocabulary<double, double> want(s.positions, s.features, s.words);
    namespace generic = kernels::generic;
    run_generic(want);
    generic::vocabulary_backward<double>(
        *want.shape, want.inputs(),
        {want.log_sums.data(), want.weight_sum, 2.0, want.dx.data(), want.dtable.data(), want.dbias.data()});
    // In pairs slopes are rounded to bf16 before they are summed.
    const auto expect_want = [&](const Vocabulary<T, float>& got, bool pairs) {
      EXPECT_NEAR(got.loss, want.loss, 2e-6 * want.loss);
      EXPECT_EQ(got.weight_sum, want.weight_sum);
      EXPECT_EQ(got.correct, want.correct);
      expect_near(got.losses, want.losses, 1e-6, "losses");
      expect_near(got.dx, want.dx, std::is_same_v<T, float> ? 1e-6 : 0x1p-8, "dx");
      expect_near(got.dtable, want.dtable, pairs ? 0x1p-8 : 1e-6, "dtable");
      expect_near(got.dbias, want.dbias, pairs ? 0x1p-8 : 1e-6, "dbias");
    };
    const auto pairs = [](const kernels::NativeKernels& level) {
      return std::is_same_v<T, kernels::native::Bf16> && kernels::native::pair_table(level) != nullptr;
    };
    Vocabulary<T, float> first(s.positions, s.features, s.words);
    run_native(first, 1, kernels::native_kernels());
    expect_want(first, pairs(kernels::native_kernels()));
    for_tables([&](const kernels::NativeKernels& level) {
      Vocabulary<T, float> other(s.positions, s.features, s.words);
      run_native(other, 3, level);
      if (!alike<T>(level, kernels::native_kernels())) return expect_want(other, pairs(level));
      EXPECT_EQ(other.loss, first.loss);
      EXPECT_EQ(other.losses, first.losses);
      EXPECT_EQ(other.dx, first.dx);
      EXPECT_EQ(other.dtable, first.dtable);
      EXPECT_EQ(other.dbias, first.dbias);
    });
  }
}

// Words that no position has, as those that pad a vocabulary.
TYPED_TEST(NativeVocabulary, MayForbidAWordByItsBias) {
  Vocabulary<double, double> want(10, 8, 40, 0);
  Vocabulary<TypeParam, float> got(10, 8, 40, 0);
  std::ranges::replace_if(
      want.targets, [](std::int32_t t) { return t < 2 || t == 39; }, 5);
  got.targets = want.targets;
  for (const std::size_t forbidden : {0, 1, 39}) {
    want.bias[forbidden] = -std::numeric_limits<double>::infinity();
    got.bias[forbidden] = -std::numeric_limits<float>::infinity();
  }
  run_generic(want);
  run_native(got, 1, kernels::native_kernels());
  EXPECT_TRUE(std::isfinite(want.loss));
  EXPECT_NEAR(got.loss, want.loss, 2e-6 * want.loss);
  for (const std::size_t forbidden : {0, 1, 39}) EXPECT_EQ(got.dbias[forbidden], 0);
  for (const float slope : got.dbias) EXPECT_TRUE(std::isfinite(slope));
}

}  // namespace
}  // namespace lockstep::native
