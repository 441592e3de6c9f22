#include "lockstep/onnx/c/c_writer.h"

#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/core/format.h"
#include "lockstep/onnx/wire.h"

namespace lockstep::onnx {

std::string c_number(double value) {
  if (std::isnan(value)) return "(real)NAN";
  if (std::isinf(value)) return value > 0 ? "(real)INFINITY" : "(real)-INFINITY";
  const std::string digits = formatted("{}", value);
  const bool is_whole = digits.find_first_of(".e") == std::string::npos;  // C takes -0 for the integer 0
  return formatted("(real){}{}", digits, is_whole ? ".0" : "");
}

std::string c_list(const std::vector<std::int64_t>& values) {
  std::string list;
  for (const std::int64_t value : values) list += formatted("{}{}", list.empty() ? "" : ", ", value);
  return list;
}

std::vector<std::int64_t> dense_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(static_cast<std::size_t>(shape.rank()));
  std::int64_t next = 1;
  for (int axis = shape.rank(); axis-- > 0;) {
    strides[static_cast<std::size_t>(axis)] = next;
    next *= shape[axis];
  }
  return strides;
}

std::string CBody::table(const std::vector<std::int64_t>& values) {
  const std::string list = c_list(values);
  std::string& name = names_["long " + list];
  if (!name.empty()) return name;
  name = formatted("table{}", names_.size());
  tables_ += formatted("static const long {}[] = {{{}}};\n", name, list);
  return name;
}

std::string CBody::table(const std::vector<double>& values) {
  std::string list;
  for (const double value : values) list += formatted("{}{}", list.empty() ? "" : ", ", value);
  std::string& name = names_["real " + list];
  if (!name.empty()) return name;
  name = formatted("table{}", names_.size());
  tables_ += formatted("static const real {}[] = {{{}}};\n", name, list);
  return name;
}

void CNode::require(bool condition, std::string_view what) const {
  check(condition, kSite, "{}: {} has {}, for which there is no form in C", node.path, node.op->name(), what);
}

}  // namespace lockstep::onnx
