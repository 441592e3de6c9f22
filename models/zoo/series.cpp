#include "models/zoo/series.h"

#include "lockstep/core/error.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/reshape.h"
#include "lockstep/ops/slice.h"

namespace lockstep::models {
namespace {

template <class Recurrent>
constexpr const char* kName = std::is_same_v<Recurrent, nn::LSTM> ? "lstm" : "gru";

Value last_state(const nn::LSTM::Output& output) { return output.states.back().h; }
Value last_state(const nn::GRU::Output& output) { return output.states.back(); }

std::int64_t blocks_that_see(std::int64_t steps, std::int64_t kernel) {
  std::int64_t blocks = 1;
  for (std::int64_t seen = 1 + 2 * (kernel - 1); seen < steps; ++blocks) seen += 2 * (kernel - 1) << blocks;
  return blocks;
}

}  // namespace

Shape series_shape(std::string_view site, const Shape& input) {
  check(input.rank() == 1 || input.rank() == 2, site, "a sample's input is {}, expected (time, features) or (time)",
        input.str());
  return {input[0], input.rank() == 2 ? input[1] : 1};
}

template <class Recurrent>
Forecaster<Recurrent>::Forecaster(const ForecasterConfig& c)
    : series_(series_shape(kName<Recurrent>, c.input)),
      output_(c.output),
      recurrent_(this, kName<Recurrent>,
                 nn::RecurrentConfig{.in = series_[1], .hidden = c.width, .layers = c.depth, .dropout = c.dropout}),
      head_(this, "head", {.in = c.width, .out = c.output.elements()}) {}

template <class Recurrent>
Value Forecaster<Recurrent>::operator()(Value input) const {
  const std::int64_t samples = input.shape()[0];
  return reshape(head_(last_state(recurrent_(reshape(input, series_.batched(samples))))), output_.batched(samples));
}

template class Forecaster<nn::LSTM>;
template class Forecaster<nn::GRU>;

// x + conv2(relu(conv1(x))), each with a ReLU behind, at the steps that lie `dilation` apart.
class TemporalCnn::Block : public nn::Module {
 public:
  struct BlockConfig {
    std::int64_t in, out, kernel, dilation;
    double dropout;
  };

  explicit Block(const BlockConfig& c)
      : past_((c.kernel - 1) * c.dilation),
        conv1_(this, "conv1", {.in = c.in, .out = c.out, .kernel = c.kernel, .dilation = c.dilation}),
        conv2_(this, "conv2", {.in = c.out, .out = c.out, .kernel = c.kernel, .dilation = c.dilation}),
        dropout1_(this, "dropout1", c.dropout),
        dropout2_(this, "dropout2", c.dropout) {
    if (c.in != c.out) {
      project_ = std::make_unique<nn::Child<nn::Conv1d>>(this, "project",
                                                         nn::Conv1dConfig{.in = c.in, .out = c.out, .kernel = 1});
    }
  }

  Value operator()(Value x) const {  // (N, in, T) -> (N, out, T)
    Value y = dropout1_(relu(conv1_(pad(x, {past_, 0}))));
    y = dropout2_(relu(conv2_(pad(y, {past_, 0}))));
    return relu((project_ ? (*project_)(x) : x) + y);
  }

 private:
  std::int64_t past_;  // steps in front of the first one, which are zeros
  nn::Child<nn::Conv1d> conv1_, conv2_;
  std::unique_ptr<nn::Child<nn::Conv1d>> project_;
  nn::Child<nn::Dropout> dropout1_, dropout2_;
};

TemporalCnn::TemporalCnn(const TemporalCnnConfig& c)
    : series_(series_shape("tcn", c.input)),
      output_(c.output),
      blocks_(blocks(c)),
      head_(this, "head", {.in = c.width, .out = c.output.elements()}) {}

TemporalCnn::~TemporalCnn() = default;

TemporalCnn::Blocks TemporalCnn::blocks(const TemporalCnnConfig& c) {
  check(c.width >= 1 && c.depth >= 0 && c.depth <= 30 && c.kernel >= 2, "tcn",
        "width {}, {} blocks, kernel {}: expected at least 1, 0 to 30, at least 2", c.width, c.depth, c.kernel);
  const std::int64_t depth = c.depth > 0 ? c.depth : blocks_that_see(series_[0], c.kernel);
  Blocks all;
  for (std::int64_t i = 0; i < depth; ++i) {
    const Block::BlockConfig block{.in = i == 0 ? series_[1] : c.width,
                                   .out = c.width,
                                   .kernel = c.kernel,
                                   .dilation = std::int64_t{1} << i,
                                   .dropout = c.dropout};
    all.push_back(std::make_unique<nn::Child<Block>>(this, formatted("block{}", i), block));
  }
  return all;
}

Value TemporalCnn::operator()(Value input) const {
  const std::int64_t samples = input.shape()[0];
  Value x = transpose(reshape(input, series_.batched(samples)), 1, 2);  // (N, features, T)
  for (const auto& block : blocks_) x = (*block)(x);
  return reshape(head_(select(x, 2, -1)), output_.batched(samples));
}

namespace {

template <class Recurrent>
FieldModelEntry forecaster_entry(const char* layers) {
  return {.name = kName<Recurrent>,
          .description = formatted("series (time, features) to next values by {}; width 64, depth 1 layer", layers),
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            ForecasterConfig config{.input = c.input, .output = c.output, .dropout = c.dropout};
            if (c.width > 0) config.width = c.width;
            if (c.depth > 0) config.depth = c.depth;
            return std::make_unique<Forecaster<Recurrent>>(config);
          },
          .needs_series = true,
          .reads = {"dropout"}};
}

}  // namespace

FieldModelEntry lstm_entry() { return forecaster_entry<nn::LSTM>("an LSTM"); }
FieldModelEntry gru_entry() { return forecaster_entry<nn::GRU>("a GRU"); }

FieldModelEntry tcn_entry() {
  return {.name = "tcn",
          .description =
              "series (time, features) to next values by a causal 1-D CNN; width 64, depth as many blocks as it takes "
              "to see all steps",
          .build = [](const FieldModelConfig& c) -> std::unique_ptr<FieldModel> {
            TemporalCnnConfig config{.input = c.input, .output = c.output, .depth = c.depth, .dropout = c.dropout};
            if (c.width > 0) config.width = c.width;
            return std::make_unique<TemporalCnn>(config);
          },
          .needs_series = true,
          .reads = {"dropout"}};
}

}  // namespace lockstep::models
