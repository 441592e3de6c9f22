#include "tools/report/work_kind.h"

#include <algorithm>
#include <utility>

namespace lockstep::tools {
namespace {

// The first part that an op's name contains gives its kind: "batch_norm2d_gradient" is a norm, "conv2d_backward_data" a
// product. So parts that are longer, or more special, stand before those that they contain.
constexpr std::array kParts{
    std::pair{std::string_view("cross_entropy"), WorkKind::Losses},
    std::pair{std::string_view("count"), WorkKind::Losses},
    std::pair{std::string_view("normal_noise"), WorkKind::Pointwise},
    std::pair{std::string_view("of_norm"), WorkKind::Products},
    std::pair{std::string_view("normalise"), WorkKind::Norms},
    std::pair{std::string_view("norm"), WorkKind::Norms},
    std::pair{std::string_view("conv"), WorkKind::Products},
    std::pair{std::string_view("linear"), WorkKind::Products},
    std::pair{std::string_view("matmul"), WorkKind::Products},
    std::pair{std::string_view("product"), WorkKind::Products},
    std::pair{std::string_view("attention"), WorkKind::Products},
    std::pair{std::string_view("fourier"), WorkKind::Products},
    std::pair{std::string_view("lstm"), WorkKind::Products},
    std::pair{std::string_view("gru"), WorkKind::Products},
    std::pair{std::string_view("pool"), WorkKind::Windows},
    std::pair{std::string_view("resample"), WorkKind::Windows},
    std::pair{std::string_view("pad"), WorkKind::Windows},
    std::pair{std::string_view("embedding"), WorkKind::Rows},
    std::pair{std::string_view("table"), WorkKind::Rows},
    std::pair{std::string_view("gather"), WorkKind::Rows},
    std::pair{std::string_view("scatter"), WorkKind::Rows},
    std::pair{std::string_view("index"), WorkKind::Rows},
    std::pair{std::string_view("write_rows"), WorkKind::Rows},
    std::pair{std::string_view("pointwise"), WorkKind::Pointwise},
    std::pair{std::string_view("dropout"), WorkKind::Pointwise},
    std::pair{std::string_view("softmax"), WorkKind::Pointwise},
    std::pair{std::string_view("cast"), WorkKind::Pointwise},
    std::pair{std::string_view("to_floating"), WorkKind::Pointwise},
    std::pair{std::string_view("expand"), WorkKind::Pointwise},
    std::pair{std::string_view("fill"), WorkKind::Pointwise},
    std::pair{std::string_view("one_hot"), WorkKind::Pointwise},
    std::pair{std::string_view("rotary"), WorkKind::Pointwise},
    std::pair{std::string_view("sum"), WorkKind::Pointwise},
    std::pair{std::string_view("reorder"), WorkKind::Moves},
    std::pair{std::string_view("reshape"), WorkKind::Moves},
    std::pair{std::string_view("permute"), WorkKind::Moves},
    std::pair{std::string_view("slice"), WorkKind::Moves},
    std::pair{std::string_view("split"), WorkKind::Moves},
    std::pair{std::string_view("concat"), WorkKind::Moves},
    std::pair{std::string_view("place"), WorkKind::Moves},
    std::pair{std::string_view("roll"), WorkKind::Moves},
};

}  // namespace

WorkKind work_kind(std::string_view op) {
  const auto* const found =
      std::ranges::find_if(kParts, [&](const auto& part) { return op.find(part.first) != op.npos; });
  return found == kParts.end() ? WorkKind::Other : found->second;
}

const WorkKindLook& look_of(WorkKind kind) { return *std::ranges::find(kWorkKinds, kind, &WorkKindLook::kind); }

}  // namespace lockstep::tools
