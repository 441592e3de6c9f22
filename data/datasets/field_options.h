// Reads the options of arrays that are texts with names and numbers (data::FieldOptions). Each throws Error at site
// "options" with the option's name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/data/augment/field_symmetry.h"
#include "lockstep/data/catalogue.h"
#include "lockstep/data/normalisation.h"

namespace lockstep::datasets {

// Divides a list "a,b[0,1],c" at the commas outside of brackets. Throws Error for an empty name.
std::vector<std::string> split_names(std::string_view option, std::string_view text);

// Throws Error at `site` for an array at `path` whose name another one has.
void check_name_is_free(std::string_view site, bool is_taken, std::string_view name, std::string_view path);

// Numbers with commas between them; empty for an empty text.
std::vector<double> split_numbers(std::string_view option, std::string_view text);

// The requests of the options about each field's numbers.
data::Scaling scaling_of(const data::FieldOptions& options);
std::optional<double> log_offset_of(const data::FieldOptions& options);

// The symmetries that the options ask for, of fields that have channels before `dimensions` axes of a grid, or channels
// alone. Throws Error for names that no field has.
data::FieldSymmetryOptions symmetry_options(const data::FieldOptions& options, const std::vector<data::Field>& fields,
                                            int dimensions);

}  // namespace lockstep::datasets
