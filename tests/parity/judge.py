"""Both libraries round; what counts is the distance from the truth, which is PyTorch's result in f64."""
import numpy as np

# Lockstep's f32 error may be this many times PyTorch's own: both add the same terms in orders of their own, so errors
# are draws from distributions of like width, and the largest of some hundred ratios of such draws stays below it.
FACTOR = 4.0
# Below this PyTorch's own error says nothing: 8 units in the last place of f32, for short sums that it happens to get
# exactly right.
FLOOR = 8 * 2.0**-23
# In f64 both differ from each other by rounding alone: 2^-52 times the growth through a deep network's layers, up to
# 10^5 times here.
F64 = 1e-10


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
        return 0.0, 0.0
    error = got - want
    tiny = np.finfo(np.float64).tiny
    return (np.linalg.norm(error.ravel()) / max(np.linalg.norm(scale.ravel()), tiny),
            np.abs(error).max() / max(np.abs(scale).max(), tiny))


class Judge:
    """Collects errors over the tensors of a row: check() fails the test for one, report() prints the worst."""

    def __init__(self, test, title):
        self.test, self.title, self.worst = test, title, []

    def check(self, name, truth, torch_f32, f32, f64, scale=None):
        """`torch_f32` are PyTorch's results on its several f32 paths: the largest error of them is its own."""
        with self.test.subTest(self.title, tensor=name):
            own = np.max([relative(t, truth, scale) for t in torch_f32], axis=0)
            ours = relative(f32, truth, scale)
            double = relative(f64, truth, scale)
            for kind, mine, theirs in zip(("norm", "max"), ours, own):
                bound = FACTOR * theirs + FLOOR
                self.worst.append((mine / bound, mine, theirs, f"{name} ({kind})"))
                self.test.assertLessEqual(mine, bound, f"f32 {kind} error, PyTorch's is {theirs:.3g}")
            self.worst_f64 = max(getattr(self, "worst_f64", 0.0), *double)
            self.test.assertLessEqual(max(double), F64, "f64 error")

    def report(self):
        worst = max(self.worst)
        print(f"{self.title}: {len(self.worst) // 2} tensors; nearest to its bound {worst[3]}: error {worst[1]:.3g}, "
              f"PyTorch's {worst[2]:.3g}, {100 * worst[0]:.0f}% of what is allowed; f64 within {self.worst_f64:.2g}")
