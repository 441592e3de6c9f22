#include "lockstep/train/step/table_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "lockstep/checkpoint/training_state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

std::string name_of(const parallel::TableTensor& tensor) {
  return tensor.part < 0 ? fmt::format("{}{}", checkpoint::kModelPrefix, tensor.table)
                         : fmt::format("{}{}/{}", checkpoint::kOptimizerPrefix, tensor.state, tensor.table);
}

}  // namespace

TableState::TableState(parallel::TableEngine* tables) : tables_(tables) {
  if (tables == nullptr) return;
  for (const parallel::TableTensor& tensor : tables->tensors()) {
    const std::int64_t rows = tensor.shape[0];
    const std::int64_t width = tensor.shape.rank() > 1 ? tensor.shape[1] : 1;
    const std::int64_t each = std::max<std::int64_t>(kPieceElements / width, 1);
    for (std::int64_t begin = 0; begin < rows; begin += each) {
      const Range part{begin, std::min(begin + each, rows)};
      std::vector<std::int64_t> dims = tensor.shape.dims();
      dims[0] = part.size();
      const std::string name = rows <= each ? name_of(tensor) : fmt::format("{}/{:012}", name_of(tensor), begin);
      pieces_.push_back({.info = {name, Shape(dims), tables->dtype()}, .tensor = &tensor, .rows = part});
    }
  }
}

bool TableState::contains(const std::string& name) const {
  return std::ranges::any_of(pieces_, [&](const Piece& piece) { return piece.info.name == name; });
}

std::size_t TableState::bytes() const {
  std::size_t total = 0;
  for (const Piece& piece : pieces_) total += piece.info.bytes();
  return total;
}

Tensor TableState::read(const Piece& piece, bool wanted) const {
  return tables_->read(*piece.tensor, piece.rows, wanted);
}

std::vector<io::NamedTensor> TableState::read(bool wanted) const {
  std::vector<io::NamedTensor> tensors;
  for (const Piece& piece : pieces_) {
    Tensor tensor = read(piece, wanted);
    if (wanted && !tensor.empty()) tensors.push_back({piece.info.name, std::move(tensor)});
  }
  return tensors;
}

void TableState::load(const io::TensorSource& source, bool weights_only) const {
  std::vector<std::pair<const Piece*, std::size_t>> found;
  std::string wrong;
  for (const Piece& piece : pieces_) {
    if (weights_only && piece.tensor->part >= 0) continue;
    const auto info = std::ranges::find(source.infos, piece.info.name, &io::TensorInfo::name);
    if (info == source.infos.end()) {
      wrong += fmt::format("{}'{}' is missing", wrong.empty() ? "" : ", ", piece.info.name);
    } else if (info->shape != piece.info.shape || !is_floating(info->dtype)) {
      wrong += fmt::format("{}'{}' is {}, expected {}", wrong.empty() ? "" : ", ", piece.info.name,
                           Type{info->shape, info->dtype}.str(), Type{piece.info.shape, piece.info.dtype}.str());
    } else {
      found.emplace_back(&piece, static_cast<std::size_t>(info - source.infos.begin()));
    }
  }
  check(wrong.empty(), "tables", "the state does not fit the sparse tables of the model: {}", wrong);
  for (const auto& [piece, index] : found) tables_->write(*piece->tensor, piece->rows, source.tensor(index).tensor);
}

io::TensorSource TableState::without_tables(const io::TensorSource& source) const {
  std::vector<std::size_t> kept;
  io::TensorSource rest;
  for (std::size_t i = 0; i < source.infos.size(); ++i) {
    if (contains(source.infos[i].name)) continue;
    kept.push_back(i);
    rest.infos.push_back(source.infos[i]);
  }
  rest.tensor = [kept = std::move(kept), tensor = source.tensor](std::size_t i) -> const io::NamedTensor& {
    return tensor(kept[i]);
  };
  return rest;
}

}  // namespace lockstep::train
