#include "lockstep/onnx/c/c_helpers.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/onnx/c/c_helpers_elements.h"
#include "lockstep/onnx/c/c_helpers_products.h"
#include "lockstep/onnx/c/c_helpers_windows.h"
#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {
namespace {

struct Helper {
  std::string_view name;
  std::vector<std::string_view> needs;
  std::string_view text;
};

const std::vector<Helper>& helpers() {
  static const std::string reals = replaced(replaced(std::string(kMove), "NAME", "move"), "TYPE", "real");
  static const std::string wholes = replaced(replaced(std::string(kMove), "NAME", "move_ids"), "TYPE", "int32_t");
  static const std::vector<Helper> all{
      {"sigmoid", {}, kSigmoid},
      {"convolution", {}, kConvolution},
      {"lanes", {}, kLanes},
      {"convolve", {"convolution", "lanes"}, kConvolve},
      {"spread", {"convolution"}, kSpread},
      {"pool", {"convolution"}, kPool},
      {"resample", {}, kResample},
      {"linear", {"lanes"}, kLinear},
      {"multiply", {"lanes", "linear"}, kMultiply},
      {"take_rows", {}, kTakeRows},
      {"lstm", {"lanes", "linear", "sigmoid"}, kLstm},
      {"gru", {"lanes", "linear", "sigmoid"}, kGru},
      {"normalise", {}, kNormalise},
      {"scale_channels", {}, kScaleChannels},
      {"softmax", {}, kSoftmax},
      {"reduce", {}, kReduce},
      {"move", {}, reals},
      {"move_ids", {}, wholes},
      {"take_along", {}, kTakeAlong},
  };
  return all;
}

}  // namespace

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

std::string c_helpers(const std::set<std::string>& names) {
  std::set<std::string> needed;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(helpers(), name, &Helper::name);
    check(found != helpers().end(), kSite, "there is no helper {}", name);
    needed.insert(name);
    needed.insert(found->needs.begin(), found->needs.end());
  }
  std::string text;
  for (const Helper& helper : helpers()) {
    if (needed.contains(std::string(helper.name))) text += helper.text;
  }
  return text;
}

}  // namespace lockstep::onnx
