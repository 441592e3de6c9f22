// The contents of a file of ONNX as data: nodes in execution order, tensors, inputs and outputs, with the names of
// ONNX's onnx.proto3. Parts that no operator here reads (functions, sparse tensors, subgraphs, texts for people) are
// refused or passed over, as model_file.cpp says for each.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/tensor.h"

namespace lockstep::onnx {

using FileTensor = std::shared_ptr<const Tensor>;

struct FileAttribute {
  std::int64_t whole = 0;
  double real = 0;
  std::string text = {};
  std::vector<std::int64_t> wholes = {};
  std::vector<double> reals = {};
  FileTensor tensor = {};
};

struct FileNode {
  std::string name, op;
  std::vector<std::string> inputs, outputs;  // names of values; "" is an optional one that is left out
  std::map<std::string, FileAttribute> attributes;
};

struct FileValue {
  std::string name;
  std::int64_t type = 0;           // TensorProto.DataType
  std::vector<std::int64_t> dims;  // -1: any size
};

struct ModelFile {
  std::filesystem::path path;
  std::int64_t operators = 0;  // version of ONNX's set
  std::vector<FileNode> nodes;
  std::map<std::string, FileTensor> tensors;  // initial values: f32 (also of f16 and bf16), f64, i32, i64, u8
  std::vector<FileValue> inputs, outputs;     // inputs without those that have an initial value
};

// Reads the file, and the files of weights beside it that it names. Throws Error for a file that is no model, is cut
// off, or has parts that Lockstep does not read.
ModelFile read_model_file(const std::filesystem::path& path);

}  // namespace lockstep::onnx
