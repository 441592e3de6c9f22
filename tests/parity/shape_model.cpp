#include "tests/parity/shape_model.h"

#include <functional>
#include <map>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/ops/concat.h"
#include "lockstep/ops/embedding.h"
#include "lockstep/ops/index_select.h"
#include "lockstep/ops/pad.h"
#include "lockstep/ops/permute.h"
#include "lockstep/ops/pointwise.h"
#include "lockstep/ops/slice.h"

namespace lockstep::parity {
namespace {

using nlohmann::json;
using Numbers = std::vector<std::int64_t>;

Numbers numbers(const json& r, const char* name) { return r.at(name).get<Numbers>(); }
std::vector<int> axes_of(const json& r) { return r.at("axes").get<std::vector<int>>(); }
int axis_of_request(const json& r) { return r.value("axis", 0); }

Value index_of(const json& r, Value x) {
  return x.graph().input("index", {Shape(numbers(r, "index_shape")), DType::I32});
}

PadMode mode_of(const std::string& name) {
  for (const PadMode mode : {PadMode::Constant, PadMode::Reflect, PadMode::Replicate, PadMode::Circular}) {
    if (name_of(mode) == name) return mode;
  }
  fail("parity", "there is no padding mode '{}'", name);
}

std::vector<AxisRange> ranges_of(const json& r) {
  std::vector<AxisRange> ranges;
  for (const Numbers& n : r.at("ranges").get<std::vector<Numbers>>()) ranges.push_back({n.at(0), n.at(1), n.at(2)});
  return ranges;
}

std::optional<std::int64_t> padding_of(const json& r) {
  if (!r.contains("padding_idx")) return {};
  return r.at("padding_idx").get<std::int64_t>();
}

using Function = std::function<Value(const json& request, Value x, Value y)>;

const std::map<std::string, Function>& functions_of_shapes() {
  static const std::map<std::string, Function> all{
      {"slice", [](const json& r, Value x, Value) { return slice(x, ranges_of(r)); }},
      {"flip", [](const json& r, Value x, Value) { return flip(x, axes_of(r)); }},
      {"roll", [](const json& r, Value x, Value) { return roll(x, numbers(r, "shifts"), axes_of(r)); }},
      {"pad", [](const json& r, Value x,
                 Value) { return pad(x, numbers(r, "padding"), mode_of(r.at("mode")), r.value("value", 0.0)); }},
      {"concat",
       [](const json& r, Value x, Value y) {
         return concat({x, y}, axis_of_request(r));
       }},
      {"stack",
       [](const json& r, Value x, Value y) {
         return stack({x, y}, axis_of_request(r));
       }},
      {"split",
       [](const json& r, Value x, Value) {
         return split(x, numbers(r, "sizes"), axis_of_request(r)).at(r.at("part").get<std::size_t>());
       }},
      {"chunk",
       [](const json& r, Value x, Value) {
         return chunk(x, r.at("parts").get<std::int64_t>(), axis_of_request(r)).at(r.at("part").get<std::size_t>());
       }},
      {"permute", [](const json& r, Value x, Value) { return permute(x, axes_of(r)); }},
      {"pixel_shuffle", [](const json& r, Value x, Value) { return pixel_shuffle(x, r.at("factor")); }},
      {"pixel_unshuffle", [](const json& r, Value x, Value) { return pixel_unshuffle(x, r.at("factor")); }},
      {"index_select",
       [](const json& r, Value x, Value) { return index_select(x, axis_of_request(r), index_of(r, x)); }},
      {"gather", [](const json& r, Value x, Value) { return gather(x, axis_of_request(r), index_of(r, x)); }},
      {"embedding", [](const json& r, Value x, Value) { return embedding(index_of(r, x), x, padding_of(r)); }},
      {"where_greater", [](const json&, Value x, Value y) { return where(greater(x, y), x * y, y); }},
      {"where_label", [](const json& r, Value x, Value y) { return where(index_of(r, x), x, y); }},
  };
  return all;
}

}  // namespace

bool is_shape_op(const nlohmann::json& request) {
  return request.contains("constants") || functions_of_shapes().contains(request.at("op").get<std::string>());
}

Value apply_shape_op(const nlohmann::json& request, Value x, Value y) {
  const std::string op = request.at("op");
  if (request.contains("constants"))
    return apply_pointwise(op, {x}, request.at("constants").get<std::vector<double>>());
  return functions_of_shapes().at(op)(request, x, y);
}

}  // namespace lockstep::parity
