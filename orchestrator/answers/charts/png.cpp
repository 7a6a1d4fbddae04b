#include "orchestrator/answers/charts/png.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <librsvg/rsvg.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/fail.h"

namespace sweep::answers {
namespace {

constexpr double kMostPixels = 30'000;  // limit of a side: cairo's images end at 32767

// The functions that are called of librsvg and its libraries cairo and glib.
struct Rsvg {
  decltype(&rsvg_handle_new_from_data) read = nullptr;
  decltype(&rsvg_handle_get_intrinsic_size_in_pixels) size = nullptr;
  decltype(&rsvg_handle_render_document) render = nullptr;
  decltype(&cairo_image_surface_create) surface = nullptr;
  decltype(&cairo_create) pen = nullptr;
  decltype(&cairo_surface_write_to_png_stream) write = nullptr;
  decltype(&cairo_surface_destroy) destroy_surface = nullptr;
  decltype(&cairo_destroy) destroy_pen = nullptr;
  decltype(&g_object_unref) unref = nullptr;
  decltype(&g_error_free) free_error = nullptr;
  std::string missing;  // why it cannot be used
};

Rsvg load() {
  Rsvg r;
  void* library = ::dlopen("librsvg-2.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    r.missing = ::dlerror();
    return r;
  }
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function && r.missing.empty()) r.missing = fmt::format("it lacks {}", name);
  };
  find("rsvg_handle_new_from_data", r.read), find("rsvg_handle_get_intrinsic_size_in_pixels", r.size);
  find("rsvg_handle_render_document", r.render), find("cairo_image_surface_create", r.surface);
  find("cairo_create", r.pen), find("cairo_surface_write_to_png_stream", r.write);
  find("cairo_surface_destroy", r.destroy_surface), find("cairo_destroy", r.destroy_pen);
  find("g_object_unref", r.unref), find("g_error_free", r.free_error);
  return r;
}

tl::unexpected<Error> refused(const Rsvg& r, GError* error) {
  const std::string cause = error ? error->message : "the picture has no size";
  if (error) r.free_error(error);
  return fail("librsvg could not draw the picture: {}; write .svg instead", cause);
}

cairo_status_t append(void* out, const unsigned char* bytes, unsigned int length) {
  static_cast<std::string*>(out)->append(reinterpret_cast<const char*>(bytes), length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

Expected<std::string> to_png(const std::string& svg, double scale) {
  static const Rsvg r = load();
  if (!r.missing.empty())
    return fail(
        "PNG is drawn by librsvg, which is not here ({}); install the Debian package librsvg2-2, "
        "or write .svg",
        r.missing);
  GError* error = nullptr;
  const std::unique_ptr<RsvgHandle, decltype(r.unref)> picture(
      r.read(reinterpret_cast<const guint8*>(svg.data()), svg.size(), &error), r.unref);
  double width = 0, height = 0;
  if (!picture || !r.size(picture.get(), &width, &height)) return refused(r, error);
  scale = std::min(scale, kMostPixels / std::max({width, height, 1.0}));
  const double w = std::ceil(width * scale), h = std::ceil(height * scale);
  const std::unique_ptr<cairo_surface_t, decltype(r.destroy_surface)> surface(
      r.surface(CAIRO_FORMAT_ARGB32, static_cast<int>(w), static_cast<int>(h)), r.destroy_surface);
  const std::unique_ptr<cairo_t, decltype(r.destroy_pen)> pen(r.pen(surface.get()), r.destroy_pen);
  const RsvgRectangle page{0, 0, w, h};
  if (!r.render(picture.get(), pen.get(), &page, &error)) return refused(r, error);
  std::string out;
  if (r.write(surface.get(), append, &out) != CAIRO_STATUS_SUCCESS)
    return fail("the PNG could not be made: not enough memory for its pixels; write .svg instead");
  return out;
}

}  // namespace sweep::answers
