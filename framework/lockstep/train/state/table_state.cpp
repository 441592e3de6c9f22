#include "lockstep/train/state/table_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lockstep/checkpoint/increment.h"
#include "lockstep/checkpoint/training_state.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/comm/agreement.h"
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

void TableState::save(const TableSave& save) const {
  const bool root = tables_ != nullptr && tables_->is_root();
  for (const Piece& piece : pieces_) {
    if (save.rows == TableSave::Rows::Changed) {
      parallel::RowChanges changes = tables_->read_changes(*piece.tensor, piece.rows);
      if (!root) continue;
      save.take({std::string(checkpoint::kRowsPrefix) + piece.info.name, std::move(changes.numbers)});
      save.take({std::string(checkpoint::kValuesPrefix) + piece.info.name, std::move(changes.values)});
    } else {
      Tensor tensor = read(piece, root);
      if (root) save.take({piece.info.name, std::move(tensor)});
    }
  }
  if (tables_ != nullptr && save.rows == TableSave::Rows::AllAsBase) tables_->clear_changes();
}

std::size_t TableState::changed_bytes() const {
  if (tables_ == nullptr) return 0;
  const std::vector<std::int64_t> rows = tables_->count_changes();
  std::size_t bytes = 0;
  for (const parallel::TableTensor& tensor : tables_->tensors()) {
    const auto row = static_cast<std::size_t>(tensor.shape.elements() / tensor.shape[0]) * size_of(tables_->dtype());
    bytes += static_cast<std::size_t>(rows[tensor.number]) * (row + sizeof(std::int32_t));
  }
  return bytes;
}

void TableState::load_changes(const io::TensorSource& source) const {
  tables_->clear_changes();
  for (const Piece& piece : pieces_) {
    const std::string name = std::string(checkpoint::kRowsPrefix) + piece.info.name;
    const auto info = std::ranges::find(source.infos, name, &io::TensorInfo::name);
    if (piece.tensor->part >= 0 || info == source.infos.end() || info->shape.elements() == 0) continue;
    const Tensor& rows = source.tensor(static_cast<std::size_t>(info - source.infos.begin())).tensor;
    for (const std::int32_t row : rows.data<std::int32_t>())
      tables_->mark_change(piece.tensor->number, piece.rows.begin + row);
  }
}

TableState::Match TableState::match(std::span<const io::TensorInfo> tensors, bool weights_only) const {
  Match found;
  std::string wrong;
  for (const Piece& piece : pieces_) {
    if (weights_only && piece.tensor->part >= 0) continue;
    const auto info = std::ranges::find(tensors, piece.info.name, &io::TensorInfo::name);
    if (info == tensors.end()) {
      wrong += fmt::format("{}'{}' is missing", wrong.empty() ? "" : ", ", piece.info.name);
    } else if (info->shape != piece.info.shape || !is_floating(info->dtype)) {
      wrong += fmt::format("{}'{}' is {}, expected {}", wrong.empty() ? "" : ", ", piece.info.name,
                           Type{info->shape, info->dtype}.str(), Type{piece.info.shape, piece.info.dtype}.str());
    } else {
      found.emplace_back(&piece, static_cast<std::size_t>(info - tensors.begin()));
    }
  }
  check(wrong.empty(), "tables", "the state does not fit the sparse tables of the model: {}", wrong);
  return found;
}

void TableState::load(const io::TensorSource& source, const Match& found, bool weights_only) const {
  for (const auto& [piece, index] : found) tables_->write(*piece->tensor, piece->rows, source.tensor(index).tensor);
  if (tables_ != nullptr && !weights_only) load_changes(source);
}

namespace {

// `prefix`: begins the names of the file's tensors (LoadOptions::prefix).
TableState::Stored find_piece(std::span<const io::TensorInfo> tensors, const TableState::Piece& piece,
                              const std::string& prefix) {
  const std::string exact = prefix + piece.info.name.substr(checkpoint::kModelPrefix.size());
  for (const std::string& name : {exact, prefix + piece.tensor->table}) {
    const auto info = std::ranges::find(tensors, name, &io::TensorInfo::name);
    if (info != tensors.end())
      return {static_cast<std::size_t>(info - tensors.begin()), name == exact, name == exact ? 0 : piece.rows.begin};
  }
  return {};
}

// Returns why the tensor does not fit; empty: it does.
std::string mismatch(const TableState::Piece& piece, const io::TensorInfo& found, bool is_piece) {
  const std::int64_t width = piece.info.shape[1];
  const std::int64_t rows = is_piece ? piece.info.shape[0] : piece.tensor->shape[0];
  if (found.shape.rank() == 2 && found.shape[1] == width && is_floating(found.dtype) && found.shape[0] == rows)
    return "";
  return fmt::format("{} {} instead of {}", piece.tensor->table, found.shape.str(), piece.tensor->shape.str());
}

// Finds a piece in the file, and adds its table to the report.
TableState::Stored report_piece(std::span<const io::TensorInfo> tensors, const TableState::Piece& piece,
                                const checkpoint::LoadOptions& options, checkpoint::LoadReport& report) {
  const std::string& table = piece.tensor->table;
  const TableState::Stored found = find_piece(tensors, piece, options.prefix);
  const std::string wrong = found.tensor ? mismatch(piece, tensors[*found.tensor], found.is_piece) : "";
  const bool keeps = std::ranges::find(options.keep, table) != options.keep.end();
  std::vector<std::string>& names = keeps            ? report.skipped
                                    : !found.tensor  ? report.missing
                                    : !wrong.empty() ? report.mismatched
                                                     : report.loaded;
  const std::string& entry = wrong.empty() || keeps ? table : wrong;
  if (names.empty() || names.back() != entry) names.push_back(entry);
  return keeps || !wrong.empty() ? TableState::Stored{} : found;
}

}  // namespace

std::vector<TableState::Stored> TableState::match_weights(std::span<const io::TensorInfo> tensors,
                                                          const checkpoint::LoadOptions& options,
                                                          const std::string& file,
                                                          checkpoint::LoadReport& report) const {
  std::vector<Stored> found(pieces_.size());
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].tensor->part < 0) found[i] = report_piece(tensors, pieces_[i], options, report);
  }
  if (options.strict) report.require_complete("weights", file);
  return found;
}

void TableState::load_weights(const comm::Communicator& comm, const io::TensorSource& of_root,
                              const std::vector<Stored>& found) const {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const Piece& piece = pieces_[i];
    const bool is_stored = comm.is_root() && found[i].tensor.has_value();
    if (comm.broadcast_value(std::uint8_t{is_stored}) == 0) continue;
    Tensor values = comm::collectively(comm, [&] {
      if (!comm.is_root()) return Tensor(piece.info.shape, piece.info.dtype);
      Tensor stored = of_root.read_rows(*found[i].tensor, {found[i].first, found[i].first + piece.rows.size()});
      return stored.dtype() == piece.info.dtype ? std::move(stored) : stored.to(piece.info.dtype);
    });
    comm.broadcast(std::span(values.raw(), values.bytes()));
    tables_->write(*piece.tensor, piece.rows, values);
  }
}

io::TensorSource TableState::without_weights(const io::TensorSource& source, const std::string& prefix) const {
  return io::select(source, [&](const io::TensorInfo& info) {
    return std::ranges::none_of(pieces_, [&](const Piece& piece) {
      const std::string whole = prefix + piece.tensor->table;
      return piece.tensor->part < 0 && (info.name == whole || info.name.starts_with(whole + "/"));
    });
  });
}

io::TensorSource TableState::without_tables(const io::TensorSource& source) const {
  return io::select(source, [this](const io::TensorInfo& info) { return !contains(info.name); });
}

}  // namespace lockstep::train
