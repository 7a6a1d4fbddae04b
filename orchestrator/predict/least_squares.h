// Robust least squares: Levenberg-Marquardt with numerical derivatives and the soft-L1 loss.
#pragma once
#include <functional>
#include <vector>

namespace sweep::predict {

using Vector = std::vector<double>;
// Residuals of all rows at x.
using Residuals = std::function<void(const Vector& x, Vector& out)>;

// The x near `start` with the least loss; residuals beyond `scale` count linearly.
Vector least_squares(const Residuals&, Vector start, double scale, int most_rounds);
// How far each number at such an x may be off where a residual's deviation is `scale`.
Vector deviations(const Residuals&, const Vector& x, double scale);

}  // namespace sweep::predict
