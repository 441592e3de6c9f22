// `lockstep export` and `lockstep import`: weights in other formats, and models as ONNX.
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/datasets/npy.h"
#include "lockstep/checkpoint/weights.h"
#include "lockstep/checkpoint/weights_source.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/infer/predictor.h"
#include "lockstep/io/atomic_file.h"
#include "lockstep/onnx/c/c_source.h"
#include "lockstep/onnx/document.h"
#include "lockstep/onnx/export.h"
#include "lockstep/onnx/import/imported_model.h"
#include "lockstep/train/options/option_checks.h"
#include "lockstep/train/report/result_line.h"
#include "lockstep/train/run/model_export.h"
#include "models/zoo/registry.h"
#include "tools/commands.h"
#include "tools/safetensors.h"
#include "tools/usage.h"
#include "tools/use_weights.h"

namespace lockstep::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExportHelp = R"(Examples:
  lockstep export runs/train_resnet --output resnet.safetensors          torchvision's names and shapes
  lockstep export runs/train_resnet --output resnet.npz                  the same for numpy.load()
  lockstep export runs/train_gpt --output gpt.onnx --batch 1             by the program that trained it
  lockstep export --model resnet50 --weights resnet50.h5 --output resnet50.onnx --batch 8
  lockstep export runs/flow --output flow.onnx --example test_data_set_0
  lockstep export flow.onnx --output flow.c                              flow.c, flow.h, flow.weights: C99, no library

.c: C99 source of a model of ONNX, with NAME.h and NAME.weights beside it, for programs that only infer: no MPI, no library.
.onnx: the model for evaluation, with operators of version 13 and the batch's size fixed. Normalise inputs as in
training. Without --model, the program that wrote the checkpoint takes this one's place, with --onnx and the options of
that run; options that export does not have, such as --data-dir, are for it, and --example then has samples of its data.
.safetensors, .npz, .h5: the weights alone.)";
constexpr const char* kImportHelp = R"(Examples:
  lockstep import model.safetensors --output weights.h5      then: train_resnet --weights weights.h5, lockstep checkpoint weights.h5
  lockstep import model.onnx --output weights.h5             the weights alone; train_images --model model.onnx has its layers too)";

constexpr const char* kJsonText = "A line of JSON for each file: file, bytes, and what else is known";

struct ExportOptions {
  std::string source, output, model, example, program;
  std::int64_t batch = 1, classes = 0;
  std::vector<std::int64_t> shape;
  bool is_c = false, json = false;
};

void write_file(const fs::path& path, const std::string& bytes, bool json) {
  io::replace_file(path, bytes, "export");
  train::print_answer(json, {{"file", path.string()}, {"bytes", bytes.size()}},
                      fmt::format("{}: {} bytes", path.string(), bytes.size()));
}

// The tensors of a weights file, a checkpoint or a run's newest checkpoint.
std::vector<io::NamedTensor> weights_of(const std::string& source) {
  if (fs::path(source).extension() == ".onnx") return onnx::initial_weights(source);
  if (fs::path(source).extension() == ".safetensors") return read_safetensors(source);
  if (fs::path(source).extension() == ".npz") return datasets::read_npz_tensors(source);
  return checkpoint::load_weights(checkpoint::find_weights(source, checkpoint::Pick::Newest).file);
}

void write_weights(const fs::path& path, std::span<const io::NamedTensor> tensors, bool json) {
  const std::string form = path.extension();
  if (form == ".safetensors") {
    write_file(path, write_safetensors(tensors), json);
  } else if (form == ".npz") {
    write_file(path, datasets::write_npz(tensors), json);
  } else {
    checkpoint::save_weights(path, tensors);
    train::print_answer(json, {{"file", path.string()}, {"bytes", fs::file_size(path)}, {"tensors", tensors.size()}},
                        fmt::format("{}: {} tensors", path.string(), tensors.size()));
  }
}

// Numbers of a normal distribution: an input with which other programs can be compared.
Tensor example_input(const Shape& shape) {
  Tensor tensor(shape, DType::F32);
  RandomStream random(1, 0);
  for (float& value : tensor.data<float>()) value = static_cast<float>(random.normal());
  return tensor;
}

void export_onnx(const ExportOptions& o) {
  const models::ModelEntry& entry = models::find_model(o.model);
  const Shape sample = o.shape.empty() ? entry.image : Shape(o.shape);
  const auto model = models::build_model(o.model, o.classes, sample);
  infer::Predictor predict(*model, [&](const plan::Inputs& in) { return (*model)(in["image"]); }, {.batch = o.batch});
  const Tensor image = example_input(sample.batched(o.batch));
  if (!o.source.empty()) predict.load(weights_of(o.source));
  const Tensor logits = predict(image);  // compiles the plan, which makes the parameters

  Graph graph(Mode::Eval, DType::F32);
  const Value output = (*model)(graph.input("image", {image.shape(), DType::F32}));
  onnx::ExportSource source{.name = o.model, .version = LOCKSTEP_VERSION};
  for (const NamedParameter& named : model->named_parameters()) source.names[named.parameter] = named.name;
  source.weights = [&](const std::string& name) { return predict.parameters().read(name); };
  write_file(o.output, onnx::export_graph(graph, output, "logits", source), o.json);
  if (o.example.empty()) return;
  fs::create_directories(o.example);
  write_file(fs::path(o.example) / "input_0.pb", onnx::tensor_message("image", image).bytes(), o.json);
  write_file(fs::path(o.example) / "output_0.pb", onnx::tensor_message("logits", logits).bytes(), o.json);
}

// Of a model that only the program of the run can build. `further` are options for it.
void export_by_program(const ExportOptions& o, const std::vector<std::string>& further) {
  UseRequest request{.use = UseRequest::Use::Export, .result = o.output};
  request.user.push_back(fmt::format("--batch-size={}", o.batch));
  if (o.json) request.user.emplace_back("--json");
  if (!o.example.empty()) request.user.push_back(fmt::format("--onnx-example={}", o.example));
  request.user.insert(request.user.end(), further.begin(), further.end());
  start_program(checkpoint::find_weights(o.source, checkpoint::Pick::Newest), o.program, std::move(request));
}

// From a file of ONNX, or of a named model, whose file is written first.
void export_c(const ExportOptions& o) {
  fs::path file = o.source;
  if (!o.model.empty()) {
    ExportOptions model = o;
    file = onnx::onnx_beside(o.output, {o.model, o.source});
    model.output = file;
    export_onnx(model);
  }
  const onnx::CSource made = onnx::write_c_source(file, o.output);
  train::print_answer(o.json, train::result_of(made, o.output),
                      fmt::format("{}, .h, .weights: {} bytes of weights, {} bytes of memory beside them", o.output,
                                  made.weights.size(), made.memory));
}

enum class Form : std::uint8_t { Onnx, C, Weights };

Form form_of(const std::string& output) {
  const std::string ending = fs::path(output).extension();
  if (ending == ".onnx") return Form::Onnx;
  if (ending == ".c") return Form::C;
  check(ending == ".safetensors" || ending == ".npz" || ending == ".h5" || ending == ".hdf5", "export",
        "--output is {}, expected a name that ends in .onnx, .c, .safetensors, .npz or .h5", output);
  return Form::Weights;
}

bool is_onnx(const std::string& source) { return fs::path(source).extension() == ".onnx"; }

// Whether only the program of a run can build the model.
bool needs_program(const ExportOptions& o, Form form) {
  return form != Form::Weights && o.model.empty() && !is_onnx(o.source);
}

void check_options(const ExportOptions& o, const std::vector<std::string>& further) {
  const Form form = form_of(o.output);
  check(o.batch > 0, "export", "a batch of {} samples, expected at least 1", o.batch);
  check(!o.is_c || form == Form::C, "export", "--output is {}, expected a name that ends in .c with --c", o.output);
  check(!is_onnx(o.source) || form != Form::Onnx, "export",
        "{} is a model of ONNX already, expected --output NAME.c, or weights", o.source);
  check(further.empty() || needs_program(o, form), "export",
        "{} is no option of export, expected those of `lockstep export --help`; a program's options are for --output "
        "NAME.onnx or NAME.c of a run",
        further.empty() ? "" : further.front());
  check(form != Form::Weights || (o.model.empty() && o.example.empty()), "export",
        "--output is {}, and --model and --example are for .onnx and .c", o.output);
  check(!needs_program(o, form) || (o.classes == 0 && o.shape.empty()), "export",
        "--classes and --shape are for --model, expected none of them with a run, which knows both");
  check(!o.source.empty() || !o.model.empty(), "export",
        "no weights are named, expected a run, a checkpoint or a weights file");
}

void export_source(const ExportOptions& o, const std::vector<std::string>& further) {
  check_usage([&] { check_options(o, further); });
  const Form form = form_of(o.output);
  if (needs_program(o, form)) {
    export_by_program(o, further);
  } else if (form == Form::C) {
    export_c(o);
  } else if (form == Form::Onnx) {
    export_onnx(o);
  } else {
    write_weights(o.output, weights_of(o.source), o.json);
  }
}

}  // namespace

void add_export_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("export", "Write weights for other programs, or a model as ONNX");
  command->footer(kExportHelp);
  command->allow_extras();  // for the program of a run
  auto o = std::make_shared<ExportOptions>();
  command->add_option(
      "weights,--weights", o->source,
      "A run, a checkpoint, or weights as .h5, .safetensors or .npz; of a model without: initial weights");
  command->add_option("--output", o->output, "The new file: .onnx, .c, .safetensors, .npz or .h5")->required();
  command->add_option("--model", o->model,
                      "For .onnx: a name that `lockstep models` lists; without it the model of the run");
  command
      ->add_option("--program", o->program, "The program that trained; without it the one of the run, beside lockstep")
      ->type_name("PATH");
  command->add_option("--batch", o->batch, "For .onnx: samples per batch")
      ->check(train::whole_number<std::int64_t>)
      ->capture_default_str();
  command->add_option("--classes", o->classes, "For .onnx: classes; 0: the model's own")
      ->check(train::whole_number<std::int64_t>)
      ->capture_default_str();
  command->add_option("--shape", o->shape, "For .onnx: shape of one sample, C,H,W; if not the model's own")
      ->delimiter(',');
  command->add_option("--example", o->example,
                      "For .onnx: a folder for an input and its output, as ONNX lays out its test data");
  command->add_flag("--c", o->is_c,
                    "The output is C99 source that computes the model, as --output NAME.c alone says too");
  command->add_flag("--json", o->json, kJsonText);
  command->callback([o, command] { export_source(*o, command->remaining()); });
}

void add_import_command(CLI::App& app) {
  CLI::App* command = app.add_subcommand("import", "Make a weights file for --weights from one of other programs");
  command->footer(kImportHelp);
  auto o = std::make_shared<ExportOptions>();
  command->add_option("file", o->source, "Weights as .safetensors, .npz, .onnx, or HDF5 by h5py")->required();
  command->add_option("--output", o->output, "The new file, .h5, .safetensors or .npz")->required();
  command->add_flag("--json", o->json, kJsonText);
  command->callback([o] {
    check_usage([&] {
      check(form_of(o->output) == Form::Weights, "import",
            "--output is {}, expected a name that ends in .safetensors, .npz or .h5", o->output);
    });
    write_weights(o->output, weights_of(o->source), o->json);
  });
}

}  // namespace lockstep::tools
