#include "tools/picture/boxes.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace lockstep::tools {
namespace {

// A module with at most so many steps of forward is drawn as one box; a larger one as those of its parts.
constexpr int kMostSteps = 16;
constexpr std::string_view kOfGradient = "grad ", kAgain = "again ";  // in front of the paths of a plan's steps
constexpr std::string_view kNoModule = "(model)";

struct StepPath {
  std::string path;  // of the module; "" outside of all modules
  bool backward = false, again = false;
};

StepPath read_path(std::string_view path) {
  StepPath result;
  for (bool more = true; more;) {
    more = path.starts_with(kOfGradient) || path.starts_with(kAgain);
    if (path.starts_with(kOfGradient)) {
      result.backward = true;
      path.remove_prefix(kOfGradient.size());
    } else if (path.starts_with(kAgain)) {
      result.again = true;
      path.remove_prefix(kAgain.size());
    }
  }
  if (path != kNoModule) result.path = path;
  return result;
}

std::vector<std::string> prefixes(const std::string& path) {
  std::vector<std::string> all;
  for (std::size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
    all.push_back(path.substr(0, dot));
  all.push_back(path);
  return all;
}

class PictureMaker {
 public:
  PictureMaker(const plan::Assembly& assembly, PictureDetail detail) : assembly_(assembly), detail_(detail) {
    bool backward = false;
    for (const plan::PlanStep& step : assembly.steps) {
      paths_.push_back(read_path(step.path));
      backward = backward || paths_.back().backward;
      paths_.back().backward = backward;  // what backward computes again, too
      if (backward) continue;
      for (const std::string& module_path : prefixes(paths_.back().path)) ++sizes_[module_path];
    }
  }

  Picture run() {
    for (std::size_t s = 0; s < paths_.size(); ++s) {
      const int box = paths_[s].backward ? box_of_backward(s) : box_of_forward(s);
      const std::string unit = unit_of(paths_[s].path), &path = paths_[s].path;
      const bool in_block = detail_ == PictureDetail::Blocks && !unit.empty() && is_block(unit);
      std::string name = path;
      if (in_block) name = path.size() > unit.size() ? path.substr(unit.size() + 1) : "(module)";
      picture_.boxes[static_cast<std::size_t>(box)].rows.push_back({std::move(name), paths_[s].again, {s}});
      current_ = box;
    }
    if (detail_ == PictureDetail::Blocks) fold();
    connect();
    return std::move(picture_);
  }

 private:
  // The module whose box a step of this path belongs to: the largest one around it that is not too large.
  std::string unit_of(const std::string& path) const {
    for (const std::string& module_path : prefixes(path)) {
      const auto size = sizes_.find(module_path);
      if (size != sizes_.end() && size->second <= kMostSteps) return module_path;
    }
    return path;
  }

  // Whether the module has parts; a module without joins its neighbours.
  bool is_block(const std::string& unit) const {
    const auto after = sizes_.upper_bound(unit + ".");
    return after != sizes_.end() && after->first.starts_with(unit + ".") && sizes_.at(unit) <= kMostSteps;
  }

  int new_box(bool backward, std::string module_path) {
    picture_.boxes.push_back({.modules = {std::move(module_path)}, .backward = backward});
    return static_cast<int>(picture_.boxes.size()) - 1;
  }

  int box_of_forward(std::size_t step) {
    const std::string unit = unit_of(paths_[step].path);
    std::vector<int>& boxes = units_[unit];
    if (detail_ == PictureDetail::Steps) {
      boxes.push_back(new_box(false, ""));
      return boxes.back();
    }
    if (is_block(unit)) {
      if (boxes.empty()) boxes.push_back(new_box(false, unit));
      return boxes.front();
    }
    const bool joins = loose_ >= 0 && loose_ == static_cast<int>(picture_.boxes.size()) - 1 &&
                       picture_.boxes.back().rows.size() < kMostSteps;
    if (!joins) loose_ = new_box(false, "");
    if (std::ranges::find(boxes, loose_) == boxes.end()) boxes.push_back(loose_);
    return loose_;
  }

  // Backward runs through the boxes of forward in reverse; a module that occurs in several is taken to be in the one
  // that is nearest to the step before.
  int box_of_backward(std::size_t step) {
    int partner = current_;
    if (current_ >= 0 && picture_.boxes[static_cast<std::size_t>(current_)].backward)
      partner = picture_.boxes[static_cast<std::size_t>(current_)].partner;
    const auto found = units_.find(unit_of(paths_[step].path));
    if (found != units_.end()) {
      partner = *std::ranges::min_element(found->second, {}, [&](int box) { return std::abs(box - partner); });
    }
    if (detail_ == PictureDetail::Blocks) {
      for (std::size_t b = 0; b < picture_.boxes.size(); ++b) {
        if (picture_.boxes[b].backward && picture_.boxes[b].partner == partner) return static_cast<int>(b);
      }
    }
    const int box = new_box(true, partner < 0 ? "" : picture_.boxes[static_cast<std::size_t>(partner)].modules[0]);
    picture_.boxes[static_cast<std::size_t>(box)].partner = partner;
    return box;
  }

  // Whether two rows compute the same, on values of the same shapes.
  bool same(const PictureRow& x, const PictureRow& y) const {
    const plan::PlanStep &first = assembly_.steps[x.steps[0]], &second = assembly_.steps[y.steps[0]];
    return x.path == y.path && x.again == y.again && first.op->name() == second.op->name() &&
           first.op->attributes() == second.op->attributes() &&
           first.offer.implementation == second.offer.implementation && first.output_types == second.output_types;
  }

  // Whether two boxes compute the same, except that one may compute values again that the other has.
  bool equal(const PictureBox& a, const PictureBox& b) const {
    std::vector<const PictureRow*> rows;
    for (const PictureRow& row : b.rows) {
      if (!row.again) rows.push_back(&row);
    }
    std::size_t next = 0;
    for (const PictureRow& row : a.rows) {
      if (row.again) continue;
      if (next == rows.size() || !same(row, *rows[next])) return false;
      ++next;
    }
    return next == rows.size();
  }

  int backward_of(int forward) const {
    for (std::size_t b = 0; b < picture_.boxes.size(); ++b) {
      if (picture_.boxes[b].backward && picture_.boxes[b].partner == forward) return static_cast<int>(b);
    }
    return -1;
  }

  PictureBox& box(int index) { return picture_.boxes[static_cast<std::size_t>(index)]; }

  void merge(PictureBox& into, const PictureBox& from) const {
    into.modules.insert(into.modules.end(), from.modules.begin(), from.modules.end());
    auto place = into.rows.begin();
    for (const PictureRow& row : from.rows) {
      const auto found = std::find_if(row.again ? into.rows.begin() : place, into.rows.end(),
                                      [&](const PictureRow& r) { return same(r, row); });
      if (found == into.rows.end()) {
        place = into.rows.insert(place, row) + 1;
        continue;
      }
      found->steps.push_back(row.steps[0]);
      if (!row.again) place = found + 1;
    }
  }

  void fold() {
    std::vector<bool> gone(picture_.boxes.size());
    int first = -1;
    for (int next = 0; next < static_cast<int>(picture_.boxes.size()); ++next) {
      if (box(next).backward) break;
      if (box(next).modules[0].empty()) {
        first = -1;
        continue;
      }
      const int back = first < 0 ? -1 : backward_of(first), next_back = backward_of(next);
      const bool repeats = first >= 0 && equal(box(first), box(next)) && (back < 0) == (next_back < 0) &&
                           (back < 0 || equal(box(back), box(next_back)));
      if (!repeats) {
        first = next;
        continue;
      }
      merge(box(first), box(next));
      gone[static_cast<std::size_t>(next)] = true;
      if (back < 0) continue;
      merge(box(back), box(next_back));
      gone[static_cast<std::size_t>(next_back)] = true;
    }
    remove(gone);
  }

  void remove(const std::vector<bool>& gone) {
    std::vector<int> place(gone.size(), -1);
    std::vector<PictureBox> kept;
    for (std::size_t b = 0; b < gone.size(); ++b) {
      if (gone[b]) continue;
      place[b] = static_cast<int>(kept.size());
      kept.push_back(std::move(picture_.boxes[b]));
    }
    for (PictureBox& b : kept) {
      if (b.partner >= 0) b.partner = place[static_cast<std::size_t>(b.partner)];
    }
    picture_.boxes = std::move(kept);
  }

  void connect() {
    std::vector<int> box_by_step(paths_.size()), producer(assembly_.buffers.size(), -1);
    for (std::size_t b = 0; b < picture_.boxes.size(); ++b) {
      for (const PictureRow& row : picture_.boxes[b].rows) {
        for (const std::size_t step : row.steps) box_by_step[step] = static_cast<int>(b);
      }
    }
    for (std::size_t s = 0; s < assembly_.steps.size(); ++s) {
      for (const int b : assembly_.steps[s].outputs) producer[static_cast<std::size_t>(b)] = static_cast<int>(s);
    }
    std::map<std::pair<int, int>, std::vector<int>> between;
    std::map<std::pair<std::string, int>, std::vector<int>> fields;
    for (std::size_t s = 0; s < assembly_.steps.size(); ++s) {
      for (std::size_t k = 0; k < assembly_.steps[s].inputs.size(); ++k) {
        int buffer = assembly_.steps[s].inputs[k];
        const auto made_by = [&] { return producer[static_cast<std::size_t>(buffer)]; };
        const auto alias = [&] { return assembly_.buffers[static_cast<std::size_t>(buffer)].alias; };
        while (made_by() < 0 && alias() >= 0) buffer = alias();  // a view
        const int to = box_by_step[s];
        if (made_by() < 0) {
          const std::string field = assembly_.field(assembly_.steps[s], k);
          if (!field.empty() && !field.starts_with('@')) add(fields[{field, to}], buffer);
          continue;
        }
        const int from = box_by_step[static_cast<std::size_t>(made_by())];
        if (from != to) add(between[{from, to}], buffer);
      }
    }
    for (auto& [ends, buffers] : between) picture_.edges.push_back({ends.first, ends.second, "", std::move(buffers)});
    for (auto& [ends, buffers] : fields) picture_.edges.push_back({-1, ends.second, ends.first, std::move(buffers)});
  }

  static void add(std::vector<int>& buffers, int buffer) {
    if (std::ranges::find(buffers, buffer) == buffers.end()) buffers.push_back(buffer);
  }

  const plan::Assembly& assembly_;
  PictureDetail detail_;
  std::vector<StepPath> paths_;                    // by step
  std::map<std::string, int> sizes_;               // steps of forward in a module and its parts
  std::map<std::string, std::vector<int>> units_;  // boxes of forward by module
  int loose_ = -1, current_ = -1;
  Picture picture_;
};

}  // namespace

Picture make_picture(const plan::Assembly& assembly, PictureDetail detail) {
  return PictureMaker(assembly, detail).run();
}

std::size_t bytes_of(const plan::Assembly& assembly, const std::vector<int>& buffers) {
  std::size_t total = 0;
  for (const int b : buffers) {
    const plan::PlanBuffer& p = assembly.buffers[static_cast<std::size_t>(b)];
    total += static_cast<std::size_t>(p.layout.storage_elements(p.type.shape)) * size_of(p.type.dtype);
  }
  return total;
}

}  // namespace lockstep::tools
