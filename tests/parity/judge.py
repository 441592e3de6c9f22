"""Both libraries round; what counts is the distance from the truth, which is PyTorch's result in f64."""
import numpy as np

# Lockstep's f32 error may be this many times PyTorch's own, in the 2-norm and for the largest element: both add the
# same terms in orders of their own, so errors are draws from one distribution. A norm of many hardly scatters, the
# largest one does.
FACTORS = np.array([4.0, 8.0])
# A ReLU whose input is zero but for rounding passes its gradient or not, by luck, and a hundredth of the gradient below
# it comes or goes. Inputs within this part of their root mean square count as such: ten times the f32 error of
# the deepest activations here.
BORDERLINE = 2e-5
# Images move by four units in the last place with them.
MOVED = 4 * 2.0**-23
# Below this PyTorch's own error says nothing: 8 units in the last place of f32, for short sums that it happens to get
# exactly right.
FLOOR = 8 * 2.0**-23
# With Winograd's transforms a convolution's error is up to ten times that of a direct sum (docs/performance.md), and ReLUs
# whose inputs are that many times farther from zero are a matter of luck.
FAST = 10
# In f64 both differ from each other by rounding alone: 2^-52 times its growth through a deep network, up to 10^5 times.
F64 = 1e-10
# Adam divides by the gradient's size, so where that nearly vanishes a step is mostly rounding. PyTorch's f32 error
# measures this; f64 rounds 2^29 times finer, and 16 is for PyTorch's f64 result being such a draw as well.
F64_SHARE = 16 * 2.0**-29


def relative(got, want, scale=None):
    """(norm, max): the error in the 2-norm and the largest one, each relative to the same norm of `scale`, which is
    `want` itself unless given."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    if got.shape != want.shape:
        raise AssertionError(f"shape {got.shape}, PyTorch's is {want.shape}")
    if not np.isfinite(got).all():
        raise AssertionError(f"{np.count_nonzero(~np.isfinite(got))} values are not finite")
    scale = want if scale is None else np.asarray(scale, np.float64)
    if want.size == 0:
        return np.zeros(2)
    error, scale = (got - want).ravel(), scale.ravel()
    tiny = np.finfo(np.float64).tiny
    return np.array([np.linalg.norm(error) / max(np.linalg.norm(scale), tiny),
                     np.abs(error).max() / max(np.abs(scale).max(), tiny)])


class Judge:
    """Collects errors over the tensors of a row: check() fails the test for one, report() prints the worst."""

    def __init__(self, test, title):
        self.test, self.title = test, title
        self.single, self.double, self.helped = [], [], 0

    def check(self, name, truth, torch_f32, borderline, f32, f64, scale=None):
        """`f32` are Lockstep's results by --conv-math. `torch_f32` are PyTorch's on its several f32 paths: the largest
        error of them is its own. `borderline` are PyTorch's results by --conv-math, with ReLUs decided the one way and the
        other: these differences are allowed too."""
        with self.test.subTest(self.title, tensor=name):
            own = np.max([relative(t, truth, scale) for t in torch_f32], axis=0)
            ours, double = relative(f32["exact"], truth, scale), max(relative(f64, truth, scale))
            fast = relative(f32["fast"], truth, scale)
            decided = {kind: np.sum([np.zeros(2), *(relative(b, truth, scale) for b in results)], axis=0)
                       for kind, results in borderline.items()}
            self.helped += bool((ours > FACTORS * own + FLOOR).any())
            bounds = np.maximum(FACTORS * own, decided["exact"]) + FLOOR
            fast_bounds = np.maximum(FAST * bounds, decided["fast"] + FLOOR)
            for kind, mine, theirs, bound in zip(("norm", "max"), ours, own, bounds):
                self.single.append((mine / bound, mine, theirs, f"{name} ({kind})"))
            self.double.append(double)
            self.test.assertLessEqual(double, F64 + F64_SHARE * max(own), "f64 error")
            self.test.assertTrue((ours <= bounds).all(), f"f32 errors (norm, max) {ours}, PyTorch's are {own}")
            self.test.assertTrue((fast <= fast_bounds).all(), f"errors with Winograd {fast}, PyTorch's are {own}")

    def report(self):
        share, mine, theirs, name = max(self.single)
        print(f"{self.title}: {len(self.double)} tensors; nearest to its bound {name}: error {mine:.3g}, "
              f"PyTorch's {theirs:.3g}, {100 * share:.0f}% of what is allowed; f64 within "
              f"{max(self.double):.2g}; {self.helped} beyond PyTorch's error but within that of ReLUs at zero")
