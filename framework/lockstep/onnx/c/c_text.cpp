#include "lockstep/onnx/c/c_text.h"

#include <string_view>

#include "lockstep/core/format.h"
#include "lockstep/onnx/c/c_helpers.h"
#include "lockstep/onnx/c/c_names.h"

namespace lockstep::onnx {
namespace {

constexpr std::string_view kMark = "LOCKCW01";

// FNV-1a of 64 bits, which a few lines of C compute too.
std::uint64_t checksum(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

// `named` gives the inputs the names of the header or of the source.
std::string arguments(const CParts& parts, std::string (*named)(const std::string&)) {
  std::string list;
  for (const CInput& input : parts.inputs)
    list += formatted("const {} *{}, ",
                      input.is_whole              ? "int32_t"
                      : parts.dtype == DType::F64 ? "double"
                                                  : "float",
                      named(input.name));
  return list + formatted("{} *output", parts.dtype == DType::F64 ? "double" : "float");
}

constexpr std::string_view kHead =
    R"(/* Computes a model, written by Lockstep; NAME.h says how to call it. Compile with -O3 -march=native
 * -ffp-contract=fast, link with -lm. */
@HEADER@

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef REAL real;
#define EXP expF
#define LOG logF
#define SQRT sqrtF
#define TANH tanhF
#define ERF erfF
#define SIN sinF
#define COS cosF
#define POW powF
#define FABS fabsF
#if defined(__AVX512F__) || !defined(__GNUC__)
#define VECTOR 64 /* bytes */
#elif defined(__AVX__)
#define VECTOR 32
#else
#define VECTOR 16
#endif
#define LANES ((int)(VECTOR / sizeof(real))) /* numbers that are computed side by side */
#define ROWS 6   /* and rows */
#define RANKS 8

static const size_t ARENA = ARENA_BYTES, FIXED = FIXED_BYTES, SCRATCH = SCRATCH_REALS;
static const uint64_t STRUCTURE = STRUCTURE_NUMBERULL, COUNT = COUNT_NUMBERULL;

struct NAME_model {
  real *weights, *scratch;
  char *arena, *fixed; /* values of a sample, and of all samples */
};
)";

constexpr std::string_view kTail = R"(
static void *zeros(size_t bytes) { return calloc(bytes > 0 ? bytes : 1, 1); }

void NAME_free(NAME_model *model) {
  if (!model) return;
  free(model->weights);
  free(model->scratch);
  free(model->arena);
  free(model->fixed);
  free(model);
}

/* The header of the weights: mark, structure, count, checksum. */
enum { HEADER = 32 };

static int adopt(NAME_model *model, const unsigned char *header) {
  uint64_t facts[3], hash = 14695981039346656037ULL, i;
  const unsigned char *const bytes = (const unsigned char *)model->weights;
  memcpy(facts, header + 8, sizeof facts);
  if (memcmp(header, "MARK", 8) != 0 || facts[0] != STRUCTURE || facts[1] != COUNT) return NAME_WRONG_WEIGHTS;
  for (i = 0; i < COUNT * sizeof(real); ++i) hash = (hash ^ bytes[i]) * 1099511628211ULL;
  if (hash != facts[2]) return NAME_WRONG_WEIGHTS;
  prepare(model->weights, model->fixed, model->scratch);
  return NAME_OK;
}

static NAME_model *allocated(void) {
  NAME_model *model = zeros(sizeof *model);
  if (!model) return NULL;
  model->weights = zeros((size_t)COUNT * sizeof(real));
  model->scratch = zeros(SCRATCH * sizeof(real));
  model->arena = zeros(ARENA);
  model->fixed = zeros(FIXED);
  if (model->weights && model->scratch && model->arena && model->fixed) return model;
  NAME_free(model);
  return NULL;
}

static int finish(NAME_model **result, NAME_model *model, int status) {
  if (status == NAME_OK) {
    *result = model;
  } else {
    NAME_free(model);
  }
  return status;
}

int NAME_load_memory(const void *bytes, size_t size, NAME_model **model) {
  NAME_model *made;
  *model = NULL;
  if (!bytes || size != HEADER + (size_t)COUNT * sizeof(real)) return NAME_WRONG_WEIGHTS;
  made = allocated();
  if (!made) return NAME_NO_MEMORY;
  memcpy(made->weights, (const char *)bytes + HEADER, size - HEADER);
  return finish(model, made, adopt(made, bytes));
}

int NAME_load(const char *path, NAME_model **model) {
  unsigned char header[HEADER];
  int status = NAME_WRONG_WEIGHTS;
  FILE *file = fopen(path, "rb");
  NAME_model *made;
  *model = NULL;
  if (!file) return NAME_NO_FILE;
  made = allocated();
  if (!made) {
    status = NAME_NO_MEMORY;
  } else if (fread(header, 1, HEADER, file) == HEADER &&
             fread(made->weights, sizeof(real), (size_t)COUNT, file) == COUNT && fgetc(file) == EOF) {
    status = adopt(made, header);
  }
  fclose(file);
  return finish(model, made, status);
}

const char *NAME_error_text(int status) {
  switch (status) {
    case NAME_OK:
      return "no error";
    case NAME_NO_MEMORY:
      return "memory is short";
    case NAME_NO_FILE:
      return "the file of weights cannot be opened";
    case NAME_WRONG_WEIGHTS:
      return "these are not the weights of this model, or they are damaged";
    case NAME_WRONG_ID:
      return "an id of a sample is no row of its table";
    default:
      return "unknown error";
  }
}
)";

constexpr std::string_view kHeaderText = R"(/* A model, written by Lockstep: C99, without other libraries than libm.
 *
 *   NAME_model *model;
 *   int status = NAME_load("NAME.weights", &model);
 *   if (status != NAME_OK) fprintf(stderr, "%s\n", NAME_error_text(status));
 *   status = NAME_run(model, samples, @INPUTS@, output);
 *   NAME_free(model);
 *
 * All arrays are dense, the samples outermost, then row-major. One model is used by one thread at a time; several
 * models may be used at once. A model keeps MEMORY KiB beside its WEIGHTS KiB of weights. Functions return one of the
 * numbers below. */
#ifndef @GUARD@
#define @GUARD@

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { NAME_OK = 0, NAME_NO_MEMORY, NAME_NO_FILE, NAME_WRONG_WEIGHTS, NAME_WRONG_ID };
const char *NAME_error_text(int status);

/* Numbers of one sample. */
@SIZES@
typedef struct NAME_model NAME_model;

/* Reads the weights from the file that lay beside the source, or from its bytes: one rank may read the file and send
 * them to the others. `*model` is NULL after an error. */
int NAME_load(const char *path, NAME_model **model);
int NAME_load_memory(const void *bytes, size_t size, NAME_model **model);
void NAME_free(NAME_model *model);

/* Computes `output` for this many samples:@SHAPES@ */
int NAME_run(NAME_model *model, long samples, @ARGUMENTS@);

#ifdef __cplusplus
}
#endif
#endif
)";

}  // namespace

std::string c_text(const CParts& parts, const std::string& name) {
  const bool wide = parts.dtype == DType::F64;
  std::string head = replaced(std::string(kHead), "ARENA_BYTES", std::to_string(parts.arena));
  head = replaced(head, "FIXED_BYTES", std::to_string(parts.fixed));
  head = replaced(head, "SCRATCH_REALS", std::to_string(parts.scratch));
  head = replaced(head, "STRUCTURE_NUMBER", std::to_string(checksum(parts.structure)));
  head = replaced(head, "COUNT_NUMBER", std::to_string(parts.values.size()));
  head = replaced(head, "typedef REAL real", wide ? "typedef double real" : "typedef float real");
  for (const char* function : {"exp", "log", "sqrt", "tanh", "erf", "sin", "cos", "pow", "fabs"})
    head = replaced(head, std::string(" ") + function + "F\n", std::string(" ") + function + (wide ? "\n" : "f\n"));
  // The program's names come last, and @ stands in none of them.
  head = replaced(replaced(head, "NAME", name), "@HEADER@", formatted("#include \"{}.h\"", name));
  std::string text = head + "\n" + parts.tables + parts.helpers;
  std::string types, steps, names;
  for (const CInput& input : parts.inputs) {
    const std::string own = c_argument_of_input(input.name);
    names += own + ", ";
    steps += formatted("    {} += {};\n", own, input.sample.elements());
  }
  constexpr std::string_view kUnused =
      "  long i = 0;\n  (void)i;\n  (void)weights;\n  (void)fixed;\n  (void)scratch;\n";
  text += formatted(
      "\n/* The values that all samples share. */\nstatic void prepare(const real *weights, char *fixed, real "
      "*scratch) "
      "{{\n{}{}}}\n",
      kUnused, parts.once);
  text += formatted(
      "\n/* One sample; 0 if it cannot be computed. */\nstatic int compute(const real *weights, char *fixed, char "
      "*arena, "
      "real *scratch, {}) {{\n{}  (void)arena;\n{}  return 1;\n}}\n",
      arguments(parts, c_argument_of_input), kUnused, parts.body);
  text += formatted(
      "\nint {}_run({}_model *model, long samples, {}) {{\n  long s;\n  for (s = 0; s < samples; ++s) {{\n"
      "    if (!compute(model->weights, model->fixed, model->arena, model->scratch, {}output)) return {}_WRONG_ID;\n{}"
      "    output += {};\n  }}\n  return {}_OK;\n}}\n",
      name, name, arguments(parts, c_argument_of_input), names, name, steps, parts.output.elements(), name);
  return text + replaced(replaced(std::string(kTail), "MARK", std::string(kMark)), "NAME", name);
}

std::string c_header(const CParts& parts, const std::string& name) {
  std::string names, sizes, shapes;
  for (const CInput& input : parts.inputs) {
    const std::string own = c_name_of_input(input.name);
    names += (names.empty() ? "" : ", ") + own;
    sizes += formatted("#define {}_{} {}\n", name, c_upper(own), input.sample.elements());
    shapes += formatted("\n *   {}: (samples, {}", own, input.sample.str().substr(1));
  }
  sizes += formatted("#define {}_OUTPUT {}\n", name, parts.output.elements());
  shapes += formatted("\n *   output: (samples, {}", parts.output.str().substr(1));
  const std::int64_t width = static_cast<std::int64_t>(size_of(parts.dtype));
  const auto kib = [](std::int64_t bytes) { return std::to_string((bytes + 1023) / 1024); };
  std::string text = replaced(std::string(kHeaderText), "NAME", name);
  text = replaced(text, "@GUARD@", c_upper(name) + "_H");
  text = replaced(replaced(text, "@ARGUMENTS@", arguments(parts, c_name_of_input)), "@INPUTS@", names);
  text = replaced(replaced(text, "@SIZES@", sizes), "@SHAPES@", shapes);
  text = replaced(text, "MEMORY KiB", kib(parts.arena + parts.fixed + parts.scratch * width) + " KiB");
  text = replaced(text, "WEIGHTS KiB", kib(static_cast<std::int64_t>(parts.values.size()) * width) + " KiB");
  return text;
}

std::string c_weights(const CParts& parts) {
  std::string values;
  const auto append = [](std::string& to, const auto& value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const double value : parts.values) {
    if (parts.dtype == DType::F64) append(values, value);
    if (parts.dtype != DType::F64) append(values, static_cast<float>(value));
  }
  std::string bytes(kMark);
  append(bytes, checksum(parts.structure));
  append(bytes, static_cast<std::uint64_t>(parts.values.size()));
  append(bytes, checksum(values));
  return bytes + values;
}

}  // namespace lockstep::onnx
