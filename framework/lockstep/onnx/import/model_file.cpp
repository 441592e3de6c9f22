#include "lockstep/onnx/import/model_file.h"

#include <cerrno>
#include <fstream>
#include <set>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/onnx/import/fields.h"
#include "lockstep/onnx/import/tensor_file.h"

namespace lockstep::onnx {
namespace {

constexpr std::int64_t kOldest = 7, kNewest = 23;  // versions of ONNX's set whose operators are read

std::string bytes_of(const std::filesystem::path& path) {
  std::error_code error;
  check(std::filesystem::is_regular_file(path, error), kSite, "{}: there is no such file, expected a model of ONNX",
        path.string());
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  check_call(file.is_open(), kSite, "cannot open {}", path.string());
  const auto size = static_cast<std::size_t>(file.tellg());
  check(size > 0 && size <= kMostBytes, kSite, "{} has {} bytes, expected a model of ONNX with 1 to {}", path.string(),
        size, kMostBytes);
  std::string bytes(size, '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(size));
  check(file.good(), kSite, "cannot read {}", path.string());
  return bytes;
}

class ModelReader {
 public:
  explicit ModelReader(std::filesystem::path path) { model_.path = std::move(path); }

  ModelFile read(std::string_view bytes) {
    std::string_view graph;
    Fields fields(bytes);
    for (Field field; fields.next(field);) {
      if (field.number == 7) graph = field.text();
      if (field.number == 8) read_version(field.text());
      check(field.number != 25, kSite,
            "the model defines functions of its own, expected operators of ONNX's set alone");
    }
    check(!graph.empty(), kSite, "the file has no graph");
    check(model_.operators >= kOldest && model_.operators <= kNewest, kSite,
          "the operators are of version {}, expected {} to {}", model_.operators, kOldest, kNewest);
    read_graph(graph);
    return std::move(model_);
  }

 private:
  void read_version(std::string_view message) {
    std::string domain;
    std::int64_t version = 0;
    Fields fields(message);
    for (Field field; fields.next(field);) {
      if (field.number == 1) domain = field.text();
      if (field.number == 2) version = field.whole();
    }
    if (domain.empty() || domain == "ai.onnx") model_.operators = version;
  }

  void read_graph(std::string_view message) {
    std::vector<FileValue> inputs;
    Fields fields(message);
    for (Field field; fields.next(field);) {
      switch (field.number) {
        case 1:
          read_node(field.text());
          break;
        case 5: {
          NamedFileTensor named = read_tensor(field.text(), model_.path.parent_path());
          const auto tensor = std::make_shared<const Tensor>(std::move(named.tensor));
          check(model_.tensors.emplace(named.name, tensor).second, kSite, "two tensors are called {}", named.name);
          break;
        }
        case 11:
          inputs.push_back(value_of(field.text()));
          break;
        case 12:
          model_.outputs.push_back(value_of(field.text()));
          break;
        default:
          check(field.number != 15, kSite, "the model has sparse tensors, expected dense ones");
          break;
      }
    }
    for (FileValue& input : inputs) {
      if (!model_.tensors.contains(input.name)) model_.inputs.push_back(std::move(input));
    }
    check(!model_.outputs.empty(), kSite, "the graph has no output");
    separate_tensors();
  }

  // PyTorch writes tensors with equal values once, and an Identity for each further name: "bn2.running_mean" of
  // "bn1.running_mean". These are tensors of their own, which training makes different.
  void separate_tensors() {
    std::erase_if(model_.nodes, [&](const FileNode& node) {
      if (node.op != "Identity" || node.inputs.size() != 1) return false;
      const auto found = model_.tensors.find(node.inputs.front());
      if (found == model_.tensors.end()) return false;
      model_.tensors.emplace(node.outputs.front(), found->second);
      return true;
    });
  }

  void read_node(std::string_view message) {
    FileNode node;
    std::string domain;
    std::vector<std::string_view> attributes;
    Fields fields(message);
    for (Field field; fields.next(field);) {
      if (field.number == 1) node.inputs.emplace_back(field.text());
      if (field.number == 2) node.outputs.emplace_back(field.text());
      if (field.number == 3) node.name = field.text();
      if (field.number == 4) node.op = field.text();
      if (field.number == 5) attributes.push_back(field.text());
      if (field.number == 7) domain = field.text();
    }
    check(!node.outputs.empty(), kSite, "node {} ({}) has no output", node.name, node.op);
    if (node.name.empty()) node.name = node.outputs.front();
    check(domain.empty() || domain == "ai.onnx", kSite,
          "node {}: the operator {} is of the set '{}', expected one of ONNX's own", node.name, node.op, domain);
    for (const std::string_view attribute : attributes) read_attribute(node, attribute);
    model_.nodes.push_back(std::move(node));
  }

  void read_attribute(FileNode& node, std::string_view message) const {
    std::string name;
    FileAttribute value;
    Fields fields(message);
    for (Field field; fields.next(field);) {
      if (field.number == 1) name = field.text();
      if (field.number == 2) value.real = field.real();
      if (field.number == 3) value.whole = field.whole();
      if (field.number == 4) value.text = field.text();
      if (field.number == 5) {
        NamedFileTensor named = read_tensor(field.text(), model_.path.parent_path());
        value.tensor = std::make_shared<const Tensor>(std::move(named.tensor));
      }
      if (field.number == 7) field.append_to(value.reals, Field::Kind::Four);
      if (field.number == 8) field.append_to(value.wholes);
      check(field.number != 6 && field.number != 11, kSite,
            "node {}: {} has a graph of its own, which Lockstep does not read", node.name, node.op);
    }
    node.attributes.emplace(std::move(name), std::move(value));
  }

  static std::vector<std::int64_t> dims_of(std::string_view shape) {
    std::vector<std::int64_t> dims;
    Fields fields(shape);
    for (Field field; fields.next(field);) {
      if (field.number != 1) continue;
      std::int64_t size = -1;
      Fields parts(field.text());
      for (Field part; parts.next(part);) {
        if (part.number == 1) size = part.whole();
      }
      dims.push_back(size > 0 ? size : -1);
    }
    return dims;
  }

  static FileValue value_of(std::string_view message) {
    FileValue value;
    std::string_view tensor;
    Fields fields(message);
    for (Field field; fields.next(field);) {
      if (field.number == 1) value.name = field.text();
      if (field.number != 2) continue;
      Fields types(field.text());
      for (Field type; types.next(type);) {
        if (type.number == 1) tensor = type.text();
      }
    }
    Fields parts(tensor);
    for (Field part; parts.next(part);) {
      if (part.number == 1) value.type = part.whole();
      if (part.number == 2) value.dims = dims_of(part.text());
    }
    return value;
  }

  ModelFile model_;
};

}  // namespace

ModelFile read_model_file(const std::filesystem::path& path) {
  const std::string bytes = bytes_of(path);
  try {
    return ModelReader(path).read(bytes);
  } catch (const Error& error) {
    if (has_own_class(error)) throw;
    throw Error(formatted("{} ({})", error.what(), path.string()));
  }
}

}  // namespace lockstep::onnx
