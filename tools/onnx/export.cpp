#include "tools/onnx/export.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "lockstep/core/error.h"
#include "tools/onnx/node_writer.h"

namespace lockstep::onnx {
namespace {

constexpr const char* kSite = "onnx";
constexpr std::array kWriters{&write_pointwise, &write_windows, &write_products,
                              &write_norms,     &write_shapes,  &write_attention};

// Whether the output depends on each node. Nodes lie after those that they read.
std::vector<bool> needed_nodes(const Graph& graph, Value output) {
  std::vector<bool> needed(graph.nodes().size());
  needed[static_cast<std::size_t>(output.node())] = true;
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (const Value input : graph.nodes()[i].inputs) needed[static_cast<std::size_t>(input.node())] = true;
  }
  return needed;
}

class Exporter {
 public:
  Exporter(const Graph& graph, Value output, std::string output_name, const ExportSource& source)
      : graph_(graph), output_(output), output_name_(std::move(output_name)), source_(source) {}

  std::string write() {
    const std::vector<bool> needed = needed_nodes(graph_, output_);
    names_.resize(needed.size());
    for (std::size_t i = 0; i < needed.size(); ++i) {
      if (needed[i]) write(i);
    }
    document_.set_path("(output)");
    document_.add("Identity", {name_of_value(output_)}, {}, output_name_);
    document_.output(output_name_, output_.type());
    return document_.finish(source_.name, source_.version);
  }

 private:
  std::string name_of_value(Value value) const {
    return names_[static_cast<std::size_t>(value.node())][static_cast<std::size_t>(value.index())];
  }

  void write(std::size_t i) {
    const Node& node = graph_.nodes()[i];
    if (node.kind == Node::Kind::Input) {
      check(!node.path.starts_with('@'), kSite, "the model reads {}, which is there in training alone", node.path);
      names_[i] = {node.path};
      document_.input(node.path, node.outputs[0]);
    } else if (node.kind == Node::Kind::Parameter) {
      const auto found = source_.names.find(node.parameter);
      check(found != source_.names.end(), kSite, "{}: a parameter has no name, expected one of the model", node.path);
      names_[i] = {found->second};
      document_.initial(found->second, source_.weights(found->second));
    } else {
      write_op(i, node);
    }
  }

  void write_op(std::size_t i, const Node& node) {
    for (std::size_t k = 0; k < node.outputs.size(); ++k) names_[i].push_back(document_.fresh("value"));
    NodeWriter writer{.document = document_, .node = node};
    for (const Value input : node.inputs) {
      writer.inputs.push_back(name_of_value(input));
      writer.types.push_back(input.type());
    }
    writer.output = names_[i].front();
    writer.outputs = names_[i];
    document_.set_path(node.path);
    for (const auto& write_subject : kWriters) {
      if (write_subject(writer)) return;
    }
    fail(kSite, "{}: the op {} has no form in ONNX's operators here", node.path, node.op->name());
  }

  const Graph& graph_;
  Value output_;
  std::string output_name_;
  const ExportSource& source_;
  Document document_;
  std::vector<std::vector<std::string>> names_;  // of each node's outputs
};

}  // namespace

void NodeWriter::require(bool condition, std::string_view what) const {
  check(condition, kSite, "{}: {} has {}, which ONNX's operators do not have", node.path, node.op->name(), what);
}

std::string export_graph(const Graph& graph, Value output, const std::string& output_name, const ExportSource& source) {
  check(graph.mode() == Mode::Eval, kSite, "the graph was traced for training, expected evaluation");
  return Exporter(graph, output, output_name, source).write();
}

}  // namespace lockstep::onnx
