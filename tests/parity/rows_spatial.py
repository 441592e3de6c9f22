"""Convolutions, transposed convolutions, pooling and enlarging over one to three axes: outputs and all gradients."""
from torch import nn

from rows_operators import OperatorRow

try:
    from torch.func import functional_call
except ImportError:  # before 2.0
    from torch.nn.utils.stateless import functional_call


def build(module):
    """A function of the operands: the module with those of them that are its parameters."""
    def function(values):
        parameters = {name: value for name, value in values.items() if name != "x"}
        return functional_call(module, parameters, (values["x"],))
    return function


class SpatialConvolution(OperatorRow):
    # Class, its arguments without channels, input shape, output channels.
    CASES = {
        "signal": (nn.Conv1d, (3, 16, 19), 24, {"kernel_size": 5, "padding": 2}),
        "signal, strided, dilated": (nn.Conv1d, (2, 6, 31), 9, {
            "kernel_size": 3, "stride": 2, "padding": 3, "dilation": 2, "groups": 3}),
        "volume": (nn.Conv3d, (2, 16, 6, 5, 7), 16, {"kernel_size": 3, "padding": 1}),
        "volume, first layer": (nn.Conv3d, (2, 1, 8, 8, 8), 16, {"kernel_size": 3, "stride": 2, "padding": 1}),
        "volume, uneven": (nn.Conv3d, (2, 3, 7, 6, 5), 5, {
            "kernel_size": (3, 2, 1), "stride": (2, 1, 1), "padding": (1, 0, 2), "dilation": (2, 3, 1)}),
        "volume, grouped": (nn.Conv3d, (2, 8, 4, 5, 4), 12, {"kernel_size": 3, "padding": 1, "groups": 4}),
        "volume, depthwise": (nn.Conv3d, (2, 16, 4, 5, 4), 16, {"kernel_size": 3, "padding": 1, "groups": 16}),
        "reflected": (nn.Conv2d, (2, 5, 8, 9), 7, {"kernel_size": 5, "padding": 2, "padding_mode": "reflect"}),
        "replicated": (nn.Conv1d, (2, 5, 12), 7, {"kernel_size": 7, "padding": 3, "padding_mode": "replicate"}),
        "periodic": (nn.Conv2d, (2, 16, 8, 9), 16, {
            "kernel_size": 3, "padding": (1, 2), "padding_mode": "circular"}),
        "periodic volume": (nn.Conv3d, (1, 3, 4, 5, 6), 4, {
            "kernel_size": 3, "padding": 1, "padding_mode": "circular", "stride": 2}),
    }
    TRANSPOSED = {
        "signal": (nn.ConvTranspose1d, (2, 6, 9), 9, {
            "kernel_size": 4, "stride": 3, "padding": 1, "output_padding": 2, "groups": 3}),
        "U-Net's": (nn.ConvTranspose2d, (2, 32, 6, 7), 16, {"kernel_size": 2, "stride": 2}),
        "a generator's": (nn.ConvTranspose2d, (2, 16, 5, 5), 16, {"kernel_size": 4, "stride": 2, "padding": 1}),
        "with a rest, dilated": (nn.ConvTranspose2d, (2, 4, 5, 6), 6, {
            "kernel_size": 3, "stride": (2, 3), "padding": 2, "output_padding": (1, 2), "dilation": 2, "groups": 2}),
        "volume": (nn.ConvTranspose3d, (2, 16, 3, 4, 3), 8, {"kernel_size": 2, "stride": 2}),
        "volume, uneven": (nn.ConvTranspose3d, (1, 3, 4, 3, 2), 5, {
            "kernel_size": (3, 2, 4), "stride": (2, 1, 2), "padding": (1, 0, 1), "output_padding": (1, 0, 1)}),
    }

    def test_convolutions(self):
        self.compare_modules("convolution", self.CASES)

    def test_transposed_convolutions(self):
        self.compare_modules("conv_transpose", self.TRANSPOSED)

    def compare_modules(self, op, cases):
        for title, (make, shape, out, arguments) in cases.items():
            for bias in (True, False):
                module = make(shape[1], out, bias=bias, **arguments)
                operands = {"x": self.random(*shape)}
                operands |= {name: self.random(*p.shape) for name, p in module.named_parameters()}
                options = {name: list(getattr(module, name)) for name in ("stride", "padding", "dilation")}
                if op == "conv_transpose":
                    options["output_padding"] = list(module.output_padding)
                self.add(title + (" with bias" if bias else ""), operands, build(module), op=op,
                         groups=module.groups, padding_mode=module.padding_mode, **options)
        self.compare_all(op)


class SpatialPooling(OperatorRow):
    SHAPES = [(2, 3, 11), (3, 17, 8), (2, 3, 6, 5, 7), (1, 16, 4, 6, 6)]
    WINDOWS = [{"kernel": 2, "stride": 2, "padding": 0}, {"kernel": 3, "stride": 2, "padding": 1},
               {"kernel": 3, "stride": 1, "padding": 0}]

    def each(self):
        for shape in self.SHAPES:
            for window in self.WINDOWS:
                for ceil_mode in (False, True):
                    axes = len(shape) - 2
                    yield shape, window, ceil_mode, {name: [n] * axes for name, n in window.items()}

    def test_max(self):
        for shape, w, ceil_mode, options in self.each():
            make = nn.MaxPool1d if len(shape) == 3 else nn.MaxPool3d
            module = make(w["kernel"], w["stride"], w["padding"], ceil_mode=ceil_mode)
            self.add(f"{shape}, {w}, {ceil_mode}", {"x": self.random(*shape)}, lambda o, m=module: m(o["x"]),
                     op="max_pool", ceil_mode=ceil_mode, **options)
        self.compare_all("max pooling")

    def test_average(self):
        for shape, w, ceil_mode, options in self.each():
            for count in (True, False):
                make = nn.AvgPool1d if len(shape) == 3 else nn.AvgPool3d
                module = make(w["kernel"], w["stride"], w["padding"], ceil_mode, count)
                self.add(f"{shape}, {w}, {ceil_mode}, {count}", {"x": self.random(*shape)},
                         lambda o, m=module: m(o["x"]), op="average_pool", ceil_mode=ceil_mode,
                         count_include_pad=count, **options)
        self.compare_all("average pooling")

    def test_adaptive(self):
        for make, shape, size in ((nn.AdaptiveAvgPool1d, (2, 3, 12), (4,)), (nn.AdaptiveAvgPool1d, (2, 3, 11), (4,)),
                                  (nn.AdaptiveAvgPool2d, (2, 16, 8, 6), (1, 1)),
                                  (nn.AdaptiveAvgPool2d, (2, 16, 7, 6), (3, 6)),
                                  (nn.AdaptiveAvgPool2d, (2, 3, 3, 4), (7, 7)),
                                  (nn.AdaptiveAvgPool3d, (2, 5, 4, 6, 8), (2, 3, 4)),
                                  (nn.AdaptiveAvgPool3d, (2, 5, 5, 6, 7), (2, 4, 3))):
            module = make(size)
            self.add(f"{shape} to {size}", {"x": self.random(*shape)}, lambda o, m=module: m(o["x"]),
                     op="adaptive_average_pool", size=list(size))
        self.compare_all("adaptive average pooling")


class Upsampling(OperatorRow):
    MODES = {3: "linear", 4: "bilinear", 5: "trilinear"}
    SIZES = [((2, 3, 7), (16,)), ((2, 17, 5), (3,)), ((2, 16, 4, 5), (8, 10)), ((2, 3, 7, 6), (5, 11)),
             ((1, 16, 3, 4, 2), (6, 8, 4)), ((2, 3, 4, 5, 3), (5, 4, 7)), ((2, 3, 1, 4), (3, 1))]
    SCALES = [((2, 3, 7), 2.0), ((2, 3, 5, 6), 2.0), ((2, 3, 5, 7), 1.5), ((1, 3, 3, 4, 5), 2.0), ((2, 3, 9, 8), 0.7)]

    def each_mode(self, shape):
        yield {"mode": "nearest"}, {"mode": "nearest"}
        for align in (False, True):
            yield ({"mode": self.MODES[len(shape)], "align_corners": align}, {"mode": "linear", "align_corners": align})

    def test_sizes(self):
        for shape, size in self.SIZES:
            for theirs, ours in self.each_mode(shape):
                module = nn.Upsample(size=size, **theirs)
                self.add(f"{shape} to {size}, {theirs}", {"x": self.random(*shape)}, lambda o, m=module: m(o["x"]),
                         op="upsample", size=list(size), **ours)
        self.compare_all("upsampling to sizes")

    def test_scales(self):
        for shape, scale in self.SCALES:
            for theirs, ours in self.each_mode(shape):
                module = nn.Upsample(scale_factor=scale, **theirs)
                self.add(f"{shape} by {scale}, {theirs}", {"x": self.random(*shape)}, lambda o, m=module: m(o["x"]),
                         op="upsample", scale=[scale], **ours)
        self.compare_all("upsampling by factors")
