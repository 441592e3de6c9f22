// The kind of work that an op is. Pictures of plans, and the page of reports, give each kind a colour. Any thread.
#pragma once

#include <array>
#include <string_view>

namespace lockstep::tools {

enum class WorkKind : std::uint8_t { Products, Norms, Pointwise, Windows, Losses, Rows, Moves, Other };

struct WorkKindLook {
  WorkKind kind;
  std::string_view name, description;
  std::string_view colour;  // on white, and under white text, with a contrast of 4.5 or more: page.css has the same
};

inline constexpr std::array kWorkKinds{
    WorkKindLook{WorkKind::Products, "products", "products, convolutions, attention", "#0550ae"},
    WorkKindLook{WorkKind::Norms, "norms", "norms", "#b35900"},
    WorkKindLook{WorkKind::Pointwise, "pointwise", "element by element", "#116329"},
    WorkKindLook{WorkKind::Windows, "windows", "pools, resampling, padding", "#8250df"},
    WorkKindLook{WorkKind::Losses, "losses", "losses and metrics", "#a40e26"},
    WorkKindLook{WorkKind::Rows, "rows", "rows of tables", "#3b6b7a"},
    WorkKindLook{WorkKind::Other, "other", "other work", "#7a4f01"},
    WorkKindLook{WorkKind::Moves, "moves", "moves of data, other layouts", "#57606a"},
};

// Returns the kind of an op by its name, as Op::name() and the profile give it.
WorkKind work_kind(std::string_view op);
const WorkKindLook& look_of(WorkKind kind);

}  // namespace lockstep::tools
