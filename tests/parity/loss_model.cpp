#include "tests/parity/loss_model.h"

#include <functional>
#include <map>

#include "lockstep/core/error.h"
#include "lockstep/losses/classification.h"
#include "lockstep/losses/regression.h"

namespace lockstep::parity {
namespace {

using nlohmann::json;

LossWeights weights_of(const json& r, const plan::Inputs& in) {
  if (!r.value("weighted", false)) return {};
  return {.sample = in["weight"], .mask = in["mask"]};
}

using Make = std::function<Loss(const json& r, Value x, const plan::Inputs& in)>;

const std::map<std::string, Make>& losses() {
  static const std::map<std::string, Make> all{
      {"l1_loss", [](auto& r, Value x, auto& in) { return l1_loss(x, in["target"], weights_of(r, in)); }},
      {"mean_squared_error",
       [](auto& r, Value x, auto& in) { return mean_squared_error(x, in["target"], weights_of(r, in)); }},
      {"huber_loss",
       [](auto& r, Value x, auto& in) {
         return huber_loss(x, in["target"], {.delta = r.value("delta", 1.0)}, weights_of(r, in));
       }},
      {"smooth_l1_loss",
       [](auto& r, Value x, auto& in) {
         return smooth_l1_loss(x, in["target"], {.beta = r.value("beta", 1.0)}, weights_of(r, in));
       }},
      {"relative_l2_loss",
       [](auto& r, Value x, auto& in) { return relative_l2_loss(x, in["target"], {}, weights_of(r, in)); }},
      {"gaussian_nll_loss",
       [](auto& r, Value x, auto& in) {
         return gaussian_nll_loss(x, in["target"], in["variance"], {.full = r.value("full", false)}, weights_of(r, in));
       }},
      {"binary_cross_entropy_with_logits",
       [](auto& r, Value x, auto& in) {
         return binary_cross_entropy_with_logits(x, in["target"], {.pos_weight = r.value("pos_weight", 1.0)},
                                                 weights_of(r, in));
       }},
      {"sigmoid_focal_loss",
       [](auto& r, Value x, auto& in) {
         return sigmoid_focal_loss(x, in["target"], {.alpha = r.value("alpha", 0.25), .gamma = r.value("gamma", 2.0)},
                                   weights_of(r, in));
       }},
      {"kl_div",
       [](auto& r, Value x, auto& in) {
         return kl_div(x, in["target"], {.log_target = r.value("log_target", false)}, weights_of(r, in));
       }},
      {"dice_loss", [](auto& r, Value x, auto& in) { return dice_loss(x, in["target"], {}, weights_of(r, in)); }},
      {"cosine_embedding_loss",
       [](auto& r, Value x, auto& in) {
         return cosine_embedding_loss(x, in["other"], in["target"], {.margin = r.value("margin", 0.0)});
       }},
      {"cross_entropy",
       [](auto& r, Value x, auto& in) {
         return cross_entropy(x, in[r.value("soft", false) ? "target" : "label"], loss_options(r), weights_of(r, in));
       }},
  };
  return all;
}

}  // namespace

CrossEntropyOptions loss_options(const json& request) {
  return {.label_smoothing = request.value("label_smoothing", 0.0),
          .class_weights = request.value("class_weights", std::vector<double>{}),
          .ignore_index = request.value("ignore_index", -100)};
}

bool is_loss(const json& request) { return losses().contains(request.at("op").get<std::string>()); }

Loss loss_of(const json& request, Value x, const plan::Inputs& in) {
  return losses().at(request.at("op").get<std::string>())(request, x, in);
}

}  // namespace lockstep::parity
