// TimeResidual: what the measurements of one cluster say beside the time model. At some layouts it is
// ln(measured / modelled); between them a Gaussian process interpolates, and far from all of them nothing is left.
#pragma once
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace sweep::predict {

struct Layout;

// Places on the axes of residual_axes().
using ResidualPlace = std::array<double, 11>;

struct TimeResidual {
  std::string hardware;              // holds there only
  double spread = 0.1, noise = 0.1;  // deviation of the residuals, and of a measurement
  std::vector<ResidualPlace> places;
  std::vector<double> off;  // ln(measured / modelled) at each place
  std::vector<double> weights;

  // Computes the weights.
  void solve();
  // The factor of a layout's time.
  double factor(const Layout&, const std::string& hardware) const;
};

// Names and lengths: how far apart two layouts know half of each other, in doublings, of zero and recompute in steps.
struct ResidualAxis {
  const char* name;
  double length;
};
const std::array<ResidualAxis, 11>& residual_axes();
ResidualPlace residual_place(const Layout&);

// Fits the residual to layouts and their ln(measured / modelled). Many are gathered at the places that lie farthest apart.
TimeResidual residual_of(std::span<const std::pair<ResidualPlace, double>>, const std::string& hardware);

}  // namespace sweep::predict
