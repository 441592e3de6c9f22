// A picture of a plan in the language of Graphviz, which lays it out: forward on the left, from top to bottom, and
// backward beside it, from bottom to top. Any thread.
#pragma once

#include <string>

#include "tools/picture/boxes.h"

namespace lockstep::tools {

struct PictureTexts {
  std::string title;        // one line
  std::string description;  // for screen readers: what the picture shows, in sentences
};

// `name` says which plan it is: "resnet50, train, batch 8, f32". The counts are those of the whole plan.
PictureTexts picture_texts(const plan::Assembly& assembly, const Picture& picture, const std::string& name);
std::string dot_text(const plan::Assembly& assembly, const Picture& picture, const PictureTexts& texts);

}  // namespace lockstep::tools
