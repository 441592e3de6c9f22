// The functions of lockstep_c.h: each turns its arguments into calls of bindings/c, and what these throw into a code.
#include <lockstep_c.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "bindings/c/description.h"
#include "bindings/c/exported_model.h"
#include "bindings/c/failure.h"
#include "bindings/c/inference.h"
#include "bindings/c/json_reader.h"
#include "bindings/c/log_function.h"
#include "bindings/c/state_file.h"
#include "bindings/c/structs.h"
#include "bindings/c/training.h"
#include "lockstep/onnx/import/imported_model.h"

using namespace lockstep;
using namespace lockstep::bindings;

struct lockstep_model {
  explicit lockstep_model(std::shared_ptr<const DescribedModel> model)
      : described(std::move(model)), inference(described) {}
  std::shared_ptr<const DescribedModel> described;
  Inference inference;
  bool loaded = false;  // has the weights of a file
};

struct lockstep_trainer {
  std::unique_ptr<Training> training;
};

namespace {

void require(bool condition, const char* text) {
  if (!condition) throw CodedError(LOCKSTEP_ERROR_ARGUMENT, formatted("[c] {}", text));
}

lockstep_model& model_of(lockstep_model* model) {
  require(model != nullptr, "the model is null, expected one of lockstep_model_create() or _load()");
  return *model;
}

Training& training_of(const lockstep_trainer* trainer) {
  require(trainer != nullptr, "the trainer is null, expected one of lockstep_trainer_create()");
  return *trainer->training;
}

std::string path_of(const char* path) {
  require(path != nullptr && *path != '\0', "the path is null or empty, expected the name of a file");
  return path;
}

std::unique_ptr<lockstep_model> described_model(const nlohmann::json& description) {
  return std::make_unique<lockstep_model>(std::make_shared<const DescribedModel>(description));
}

// A file of ONNX describes a model where it says all sizes but the number of samples.
nlohmann::json description_of_onnx(const std::string& file) {
  const onnx::ImportedModel model(file);
  const auto sizes = [&](const std::vector<onnx::FileValue>& values, const char* what) {
    const bool one = values.size() == 1 && values[0].dims.size() > 1;
    std::vector<int64_t> dims =
        one ? std::vector<int64_t>(values[0].dims.begin() + 1, values[0].dims.end()) : std::vector<int64_t>{};
    if (!one || std::ranges::find(dims, -1) != dims.end()) {
      throw CodedError(
          LOCKSTEP_ERROR_FILE,
          formatted("[c] {}: it has {} {}s or leaves sizes open, expected one with all sizes; a description "
                    "with 'onnx', 'input' and 'output' says them",
                    file, values.size(), what));
    }
    return dims;
  };
  nlohmann::json description = {{"onnx", file},
                                {"input", sizes(model.graph().inputs(), "input")},
                                {"output", sizes(model.graph().outputs(), "output")}};
  constexpr int64_t kDouble = 11;  // of ONNX's TensorProto.DataType
  if (model.graph().inputs().front().type == kDouble) description["type"] = "f64";
  return description;
}

void copy_shape(const Shape& shape, int32_t* rank, int64_t* extent) {
  require(rank != nullptr && extent != nullptr, "a rank or an extent is null, expected an address");
  *rank = shape.rank();
  std::copy(shape.dims().begin(), shape.dims().end(), extent);
}

// Ranks whose arguments are wrong still take part until all ranks know it.
std::unique_ptr<lockstep_trainer> make_trainer(lockstep_model* model, int64_t fortran,
                                               const lockstep_trainer_options* options, bool has_result) {
  comm::Communicator comm = communicator_of(fortran);
  std::vector<io::NamedTensor> weights;
  std::optional<lockstep_trainer_options> mine;
  together(comm, LOCKSTEP_ERROR_ARGUMENT, [&] {
    require(has_result, "the address of the trainer is null");
    require(options != nullptr, "the options are null, expected an initialised lockstep_trainer_options");
    mine = from_caller(*options, LOCKSTEP_TRAINER_OPTIONS_INIT, "lockstep_trainer_options");
    if (model_of(model).loaded) weights = model->inference.weights();
  });
  auto trainer = std::make_unique<lockstep_trainer>();
  trainer->training = std::make_unique<Training>(std::move(comm), model->described, weights, *mine);
  return trainer;
}

}  // namespace

int lockstep_abi_version() { return 1; }
const char* lockstep_version() { return LOCKSTEP_VERSION; }

const char* lockstep_error_name(int code) {
  switch (code) {
    case LOCKSTEP_OK:
      return "LOCKSTEP_OK";
    case LOCKSTEP_ERROR_ARGUMENT:
      return "LOCKSTEP_ERROR_ARGUMENT";
    case LOCKSTEP_ERROR_FILE:
      return "LOCKSTEP_ERROR_FILE";
    case LOCKSTEP_ERROR_MEMORY:
      return "LOCKSTEP_ERROR_MEMORY";
    case LOCKSTEP_ERROR_NOT_FINITE:
      return "LOCKSTEP_ERROR_NOT_FINITE";
    case LOCKSTEP_ERROR_PEER:
      return "LOCKSTEP_ERROR_PEER";
    case LOCKSTEP_ERROR_UNUSABLE:
      return "LOCKSTEP_ERROR_UNUSABLE";
    case LOCKSTEP_ERROR_CALLBACK:
      return "LOCKSTEP_ERROR_CALLBACK";
    case LOCKSTEP_ERROR_OTHER:
      return "LOCKSTEP_ERROR_OTHER";
    default:
      return "unknown error";
  }
}

const char* lockstep_last_error() { return last_message(); }

int lockstep_set_log(lockstep_log_function log, int least, void* user) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { set_log_function(log, least, user); });
}

int lockstep_model_create(const char* description, lockstep_model** model) {
  if (model != nullptr) *model = nullptr;
  return guarded(LOCKSTEP_ERROR_ARGUMENT, [&] {
    require(model != nullptr, "the address of the model is null");
    *model = described_model(parse_json(description, "model")).release();
  });
}

int lockstep_model_load(const char* path, lockstep_model** model) {
  if (model != nullptr) *model = nullptr;
  return guarded(LOCKSTEP_ERROR_FILE, [&] {
    require(model != nullptr, "the address of the model is null");
    const std::string file = path_of(path);
    if (file.ends_with(".onnx")) {
      *model = described_model(description_of_onnx(file)).release();
      return;
    }
    const StateFacts facts = facts_of(open_state(file).metadata(), file);
    std::unique_ptr<lockstep_model> made = described_model(parse_json(facts.description.c_str(), file));
    made->inference.load(file);
    made->loaded = true;
    *model = made.release();
  });
}

int lockstep_model_save(lockstep_model* model, const char* path) {
  return guarded(LOCKSTEP_ERROR_FILE, [&] {
    const std::string file = path_of(path);
    if (is_exported(file)) return export_model(*model_of(model).described, model->inference, file);
    std::vector<io::NamedTensor> tensors = model_of(model).inference.weights();
    for (io::NamedTensor& tensor : tensors) tensor.name = formatted("model/{}", tensor.name);
    save_state(file, {.description = model->described->text()}, std::move(tensors));
  });
}

void lockstep_model_free(lockstep_model* model) {
  guarded(LOCKSTEP_ERROR_OTHER, [&] { delete model; });
}

const char* lockstep_model_description(const lockstep_model* model) {
  return model == nullptr ? nullptr : model->described->text().c_str();
}

int lockstep_model_shapes(const lockstep_model* model, int32_t* input_rank, int64_t* input_extent, int32_t* output_rank,
                          int64_t* output_extent) {
  return guarded(LOCKSTEP_ERROR_ARGUMENT, [&] {
    require(model != nullptr, "the model is null");
    copy_shape(model->described->input(), input_rank, input_extent);
    copy_shape(model->described->output(), output_rank, output_extent);
  });
}

int lockstep_model_predict(lockstep_model* model, const lockstep_array* input, const lockstep_array* output) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { model_of(model).inference.predict(input, output); });
}

int lockstep_model_gradient(lockstep_model* model, const lockstep_array* input, const lockstep_array* direction,
                            const lockstep_array* gradient) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { model_of(model).inference.gradient(input, direction, gradient); });
}

int lockstep_trainer_create(lockstep_model* model, int64_t comm, const lockstep_trainer_options* options,
                            lockstep_trainer** trainer) {
  if (trainer != nullptr) *trainer = nullptr;
  return guarded(LOCKSTEP_ERROR_OTHER,
                 [&] { *trainer = make_trainer(model, comm, options, trainer != nullptr).release(); });
}

void lockstep_trainer_free(lockstep_trainer* trainer) {
  guarded(LOCKSTEP_ERROR_OTHER, [&] { delete trainer; });
}

int lockstep_trainer_step(lockstep_trainer* trainer, const lockstep_array* input, const lockstep_array* target,
                          double learning_rate, lockstep_result* result) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { training_of(trainer).step(input, target, learning_rate, result); });
}

int lockstep_trainer_evaluate(lockstep_trainer* trainer, const lockstep_array* input, const lockstep_array* target,
                              lockstep_result* result) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { training_of(trainer).evaluate(input, target, result); });
}

int lockstep_trainer_metric(const lockstep_trainer* trainer, const char* name, double* value) {
  return guarded(LOCKSTEP_ERROR_ARGUMENT, [&] {
    require(name != nullptr && value != nullptr, "the name or the value is null, expected addresses");
    *value = training_of(trainer).metric(name);
  });
}

int lockstep_trainer_predict(lockstep_trainer* trainer, const lockstep_array* input, const lockstep_array* output) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { training_of(trainer).inference().predict(input, output); });
}

int lockstep_trainer_gradient(lockstep_trainer* trainer, const lockstep_array* input, const lockstep_array* direction,
                              const lockstep_array* gradient) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { training_of(trainer).inference().gradient(input, direction, gradient); });
}

int lockstep_trainer_remember(lockstep_trainer* trainer, const lockstep_array* input, const lockstep_array* target) {
  return guarded(LOCKSTEP_ERROR_ARGUMENT, [&] { training_of(trainer).remember(input, target); });
}

int lockstep_trainer_replay(lockstep_trainer* trainer, int64_t samples, int64_t steps, double seconds,
                            double learning_rate, lockstep_result* result) {
  return guarded(LOCKSTEP_ERROR_OTHER,
                 [&] { training_of(trainer).replay(samples, steps, seconds, learning_rate, result); });
}

int lockstep_trainer_on_step(lockstep_trainer* trainer, lockstep_step_function function, void* user) {
  return guarded(LOCKSTEP_ERROR_OTHER, [&] { training_of(trainer).on_step(function, user); });
}

int lockstep_trainer_save(lockstep_trainer* trainer, const char* path) {
  return guarded(LOCKSTEP_ERROR_FILE, [&] { training_of(trainer).save(path == nullptr ? "" : path); });
}

int lockstep_trainer_resume(lockstep_trainer* trainer, const char* path) {
  return guarded(LOCKSTEP_ERROR_FILE, [&] { training_of(trainer).resume(path == nullptr ? "" : path); });
}
