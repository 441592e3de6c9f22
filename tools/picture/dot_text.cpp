#include "tools/picture/dot_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lockstep/plan/describe.h"
#include "tools/picture/texts.h"
#include "tools/report/work_kind.h"

namespace lockstep::tools {
namespace {

// A wide one first: where a browser has another one, texts stay within their cells.
constexpr const char* kFont = "DejaVu Sans,Verdana,Helvetica,Arial,sans-serif";
constexpr const char* kKeptColour = "#8250df";
constexpr const char* kAgainColour = "#fff3c4";
constexpr std::string_view kLeft = "LEFT";

class DotWriter {
 public:
  DotWriter(const plan::Assembly& assembly, const Picture& picture) : assembly_(assembly), picture_(picture) {
    for (std::size_t b = 0; b < picture.boxes.size(); ++b) names_.push_back(name_of(b));
  }

  std::string run(const PictureTexts& texts) const {
    std::string text = fmt::format(
        "digraph \"plan\" {{\n"
        "graph [fontname=\"{0}\", fontsize=11, labelloc=t, labeljust=l, nodesep=0.5, ranksep=0.45, newrank=true, "
        "bgcolor=\"white\", label=<{1}>]\n"
        "node [shape=plain, fontname=\"{0}\", fontsize=10]\n"
        "edge [fontname=\"{0}\", fontsize=9, color=\"#24292f\"]\n",
        kFont, head(texts));
    for (std::size_t b = 0; b < picture_.boxes.size(); ++b) text += node(b);
    text += fields() + pairs();
    for (const PictureEdge& e : picture_.edges) text += edge(e);
    return text + "}\n";
  }

 private:
  const PictureBox& box(int index) const { return picture_.boxes[static_cast<std::size_t>(index)]; }
  const plan::PlanStep& step_of(const PictureRow& row) const { return assembly_.steps[row.steps[0]]; }

  // The name in the head of the box: a module, or the first and the last of its steps.
  std::string module_of(const PictureBox& b) const {
    if (!b.modules[0].empty()) return b.modules[0];
    if (b.partner >= 0 && b.rows.size() > 1) return module_of(box(b.partner));
    const auto shown = [](const PictureRow& row) { return row.path.empty() ? "(model)" : row.path; };
    const auto named = [](const PictureRow& row) { return !row.path.empty(); };
    const auto first = std::ranges::find_if(b.rows, named);
    if (first == b.rows.end()) return "(model)";
    const auto last = std::find_if(b.rows.rbegin(), b.rows.rend(), named);
    if (first->path == last->path) return first->path;
    return shown(*first) + " to " + shown(*last);
  }

  std::string name_of(std::size_t index) const {
    const PictureBox& b = picture_.boxes[index];
    const std::string name = (b.backward ? "backward " : "forward ") + escaped(module_of(b));
    const bool taken = std::ranges::find(names_, name) != names_.end();
    return taken ? fmt::format("{}, step {}", name, b.rows[0].steps[0] + 1) : name;
  }

  std::string head(const PictureTexts& texts) const {
    std::string legend;
    for (const WorkKindLook& look : kWorkKinds) {
      const bool used = std::ranges::any_of(
          assembly_.steps, [&](const plan::PlanStep& s) { return work_kind(s.op->name()) == look.kind; });
      if (used)
        legend += fmt::format("<TD BGCOLOR=\"{}\"><FONT COLOR=\"white\">{}</FONT></TD>", look.colour, look.description);
    }
    const bool again = std::ranges::any_of(
        picture_.boxes, [](const PictureBox& b) { return std::ranges::any_of(b.rows, &PictureRow::again); });
    if (again) legend += fmt::format("<TD BGCOLOR=\"{}\">computed again in backward</TD>", kAgainColour);
    const bool backward = std::ranges::any_of(picture_.boxes, &PictureBox::backward);
    const std::string arrows =
        backward
            ? fmt::format("<TD>arrows: values; <FONT COLOR=\"{}\">dashed: kept from forward for backward</FONT></TD>",
                          kKeptColour)
            : "<TD>arrows: values</TD>";
    return fmt::format(
        "<TABLE BORDER=\"0\" CELLSPACING=\"4\"><TR><TD ALIGN=\"LEFT\"><FONT "
        "POINT-SIZE=\"14\"><B>{}</B></FONT></TD></TR>"
        "<TR><TD ALIGN=\"LEFT\"><TABLE BORDER=\"0\" CELLPADDING=\"3\" CELLSPACING=\"3\"><TR>{}{}</TR></TABLE></TD></TR>"
        "</TABLE>",
        escaped(texts.title), legend, arrows);
  }

  std::string row(const PictureRow& r, std::size_t modules) const {
    const plan::PlanStep& step = step_of(r);
    std::string numbers = numbers_of(r.steps), operation(step.op->name());
    const std::string remark = step.reason.empty() ? step.op->attributes() : "because " + step.reason;
    if (!remark.empty()) operation += ": " + remark;
    operation = shortened(operation);
    if (r.steps.size() < modules) operation += fmt::format(" (in {} of {})", r.steps.size(), modules);
    std::string results;
    for (const Type& type : step.output_types) {
      if (results.empty() || type.shape.elements() > 1) results += (results.empty() ? "" : " ") + type.str();
      if (&type == &step.output_types.front() && step.output_types.size() > 2) break;  // then statistics
    }
    const std::string colour = r.again ? fmt::format(" BGCOLOR=\"{}\"", kAgainColour) : "";
    const auto cell = [&](std::string_view align, const std::string& text) {
      const bool left = align == kLeft;
      return fmt::format("<TD ALIGN=\"{}\"{}>{}{}{}</TD>", align, colour, left ? "" : slack(text), escaped(text),
                         left ? slack(text) : "");
    };
    return fmt::format("<TR><TD BGCOLOR=\"{}\"><FONT COLOR=\"white\">{}</FONT></TD>",
                       look_of(work_kind(step.op->name())).colour,
                       numbers + (r.steps.size() > 1 ? slack(numbers) : "")) +
           cell(kLeft, r.path.empty() ? "(model)" : r.path) + cell(kLeft, (r.again ? "again " : "") + operation) +
           cell(kLeft, step.offer.implementation) + cell(kLeft, results) + cell("RIGHT", work_text(step.flops)) +
           cell("RIGHT", size_text(plan::bytes_of(assembly_, step))) + "</TR>";
  }

  std::string node(std::size_t index) const {
    const PictureBox& b = picture_.boxes[index];
    double flops = 0;
    std::size_t bytes = 0;
    std::string rows;
    for (const PictureRow& r : b.rows) {
      rows += row(r, b.modules.size());
      flops += step_of(r).flops;
      bytes += plan::bytes_of(assembly_, step_of(r));
    }
    std::string title = fmt::format("<B>{}{}</B>", b.backward ? "backward of " : "", escaped(module_of(b)));
    if (b.modules.size() > 1)
      title += escaped(fmt::format(", {} times, {} {}; in each", b.modules.size(), b.modules.size() > 2 ? "to" : "and",
                                   b.modules.back()));
    title += fmt::format("{} {}, {}", b.modules.size() > 1 ? "" : ":", work_text(flops), size_text(bytes));
    const bool bare = b.rows.size() == 1 && b.modules.size() == 1;  // its row says all
    const std::string heading = bare ? ""
                                     : fmt::format("<TR><TD COLSPAN=\"7\" ALIGN=\"LEFT\" BGCOLOR=\"{}\">{}</TD></TR>",
                                                   b.backward ? "#f1f3f5" : "#ddf4ff", title);
    return fmt::format(
        "\"{}\" [label=<<TABLE BORDER=\"1\" COLOR=\"{}\" CELLBORDER=\"0\" CELLSPACING=\"0\" CELLPADDING=\"3\">{}{}"
        "</TABLE>>]\n",
        names_[index], b.modules.size() > 1 ? "#24292f" : "#8c959f", heading, rows);
  }

  std::string fields() const {
    std::vector<std::string> done;
    std::string text;
    for (const PictureEdge& e : picture_.edges) {
      if (e.from >= 0 || std::ranges::find(done, e.field) != done.end()) continue;
      done.push_back(e.field);
      text += fmt::format("\"batch {0}\" [label=<<B>{0}</B>>, shape=oval]\n", escaped(e.field));
    }
    return text;
  }

  // The boxes of a module stand beside each other: the first of backward, if it has several, and forward on the left.
  // Single steps outside of all modules stand where their values lead them.
  std::string pairs() const {
    std::string text;
    std::vector<int> done;
    for (std::size_t b = 0; b < picture_.boxes.size(); ++b) {
      const int partner = picture_.boxes[b].partner;
      const bool alone = picture_.boxes[b].rows.size() == 1 && picture_.boxes[b].rows[0].path.empty();
      if (!picture_.boxes[b].backward || partner < 0 || alone || std::ranges::find(done, partner) != done.end())
        continue;
      done.push_back(partner);
      const std::string& left = names_[static_cast<std::size_t>(partner)];
      text += fmt::format("{{rank=same; \"{0}\"; \"{1}\"; \"{0}\" -> \"{1}\" [style=invis]}}\n", left, names_[b]);
    }
    return text;
  }

  std::string edge(const PictureEdge& e) const {
    const std::size_t bytes = bytes_of(assembly_, e.buffers);
    const plan::PlanBuffer& first = assembly_.buffers[static_cast<std::size_t>(e.buffers[0])];
    const std::string label = e.buffers.size() == 1 ? fmt::format("{}, {}", first.type.str(), size_text(bytes))
                                                    : fmt::format("{} values, {}", e.buffers.size(), size_text(bytes));
    const std::string& to = names_[static_cast<std::size_t>(e.to)];
    const bool to_backward = box(e.to).backward;
    if (e.from < 0) {
      return fmt::format("\"batch {}\" -> \"{}\" [label=\"{}\"{}]\n", escaped(e.field), to, label,
                         to_backward ? ", constraint=false" : "");
    }
    const std::string& from = names_[static_cast<std::size_t>(e.from)];
    const bool from_backward = box(e.from).backward;
    if (from_backward && to_backward)  // upwards
      return fmt::format("\"{}\" -> \"{}\" [label=\"{}\", dir=back]\n", to, from, label);
    if (to_backward) {
      return fmt::format(
          "\"{0}\" -> \"{1}\" [label=\"{2}\", style=dashed, color=\"{3}\", fontcolor=\"{3}\", "
          "constraint=false]\n",
          from, to, label, kKeptColour);
    }
    return fmt::format("\"{}\" -> \"{}\" [label=\"{}\"]\n", from, to, label);
  }

  const plan::Assembly& assembly_;
  const Picture& picture_;
  std::vector<std::string> names_{};  // by box, as quoted names contain them
};

}  // namespace

PictureTexts picture_texts(const plan::Assembly& assembly, const Picture& picture, const std::string& name) {
  std::vector<int> kept;
  std::size_t forward = 0, backward = 0, again = 0, folded = 0;
  for (const PictureBox& b : picture.boxes) {
    folded += b.modules.size() - 1;
    for (const PictureRow& row : b.rows) {
      (b.backward ? backward : forward) += row.steps.size();
      again += row.again ? row.steps.size() : 0;
    }
  }
  for (const PictureEdge& e : picture.edges) {
    const auto in_backward = [&](int box) { return picture.boxes[static_cast<std::size_t>(box)].backward; };
    if (e.from < 0 || in_backward(e.from) || !in_backward(e.to)) continue;
    for (const int b : e.buffers) {
      if (std::ranges::find(kept, assembly.root(b)) == kept.end()) kept.push_back(assembly.root(b));
    }
  }
  PictureTexts texts;
  texts.title =
      fmt::format("Plan of {}: {} steps, {}", name, assembly.steps.size(), work_text(plan::flops_of(assembly)));
  texts.description = fmt::format("{} steps of forward, from top to bottom.", forward);
  if (backward > 0) {
    const std::string more = fmt::format("; {} values, {}, kept for backward, {} values computed again", kept.size(),
                                         size_text(bytes_of(assembly, kept)), again);
    texts.title += more;
    texts.description += fmt::format(
        " {} steps of backward, beside the module that they belong to, from bottom to top{}.", backward, more);
  }
  if (folded > 0) texts.description += fmt::format(" {} modules that repeat the one before are drawn with it.", folded);
  texts.description +=
      " Each row is a step: its number, module, operation, kernel, result, floating point operations, and bytes of "
      "inputs and outputs.";
  return texts;
}

std::string dot_text(const plan::Assembly& assembly, const Picture& picture, const PictureTexts& texts) {
  return DotWriter(assembly, picture).run(texts);
}

}  // namespace lockstep::tools
