// The files of the catalogues, which travel inside the program.
#pragma once
#include <span>

namespace sweep::shape {

struct CatalogueText {
  const char *name, *json;
};
std::span<const CatalogueText> hardware_texts();
std::span<const CatalogueText> model_texts();

}  // namespace sweep::shape
