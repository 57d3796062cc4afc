"""Networks that both libraries can build: (kind, options) for each layer, nested where layers hold layers.

Needs nothing but the standard library: it is read in both environments.
"""

RELU, ERF, GELU = ("activation", "relu"), ("activation", "erf"), ("activation", "gelu")


def conv(filter=(3, 3), strides=(1, 1), padding="SAME", weight_var=1.9, bias_var=0.05):
    return (
        "conv",
        {
            "filter": filter,
            "strides": strides,
            "padding": padding,
            "weight_var": weight_var,
            "bias_var": bias_var,
        },
    )


def local(filter=(3, 3), strides=(1, 1), padding="SAME", weight_var=1.4, bias_var=0.2):
    return (
        "local",
        {
            "filter": filter,
            "strides": strides,
            "padding": padding,
            "weight_var": weight_var,
            "bias_var": bias_var,
        },
    )


def dense(weight_var=1.7, bias_var=0.1):
    return ("dense", {"weight_var": weight_var, "bias_var": bias_var})


def pool(filter=(2, 2), strides=(2, 2), padding="VALID", kind="avg", normalize_edges=False):
    return (
        "pool",
        {
            "filter": filter,
            "strides": strides,
            "padding": padding,
            "kind": kind,
            "normalize_edges": normalize_edges,
        },
    )


def residual(*layers):
    return ("sum", [[], list(layers)])


def attention(scaling="linear", mechanism="softmax", qk_var=1.3, ov_var=1.6, bias_var=0.1):
    return (
        "attention",
        {
            "scaling": scaling,
            "mechanism": mechanism,
            "qk_var": qk_var,
            "ov_var": ov_var,
            "bias_var": bias_var,
        },
    )


GLOBAL, GLOBAL_SUM, FLATTEN = ("global", "avg"), ("global", "sum"), ("flatten", None)
NORM, NORM_ALL = ("norm", "channel"), ("norm", "all")

ROUND = conv(padding="CIRCULAR")

# name: (shape of one input, layers). Agreement is tested on all of them.
# fmt: off
GOLDEN = {
    "dense": ((7,), [dense(1.3, 0.2), GELU, dense(), ERF, dense(2.0, 0.0)]),
    "residual mlp": ((7,), [dense(), residual(RELU, dense(0.8, 0.0)), residual(ERF, dense()), RELU, dense()]),
    "norm mlp": ((7,), [dense(), NORM, RELU, dense(), residual(NORM, GELU, dense()), dense()]),
    "conv same flatten": ((5, 6, 2), [conv(), RELU, conv((2, 3)), ERF, FLATTEN, dense()]),
    "conv valid stride flatten": (
        (7, 6, 2),
        [conv((3, 2), (2, 1), "VALID"), GELU, conv(), RELU, FLATTEN, dense()],
    ),
    "conv circular flatten": (
        (5, 6, 2),
        [ROUND, RELU, conv((4, 3), padding="CIRCULAR"), RELU, FLATTEN, dense()],
    ),
    "conv global": ((5, 6, 2), [conv(), RELU, conv((2, 3)), GELU, GLOBAL, dense()]),
    "conv circular global sum": (
        (4, 5, 2),
        [ROUND, RELU, ROUND, ERF, GLOBAL_SUM, dense()],
    ),
    "conv stride global": ((6, 5, 3), [conv(), RELU, conv((3, 3), (2, 2)), RELU, GLOBAL, dense()]),
    "conv valid global": ((6, 5, 3), [conv((2, 3), padding="VALID"), RELU, conv(), RELU, GLOBAL, dense()]),
    "pool blocks": ((8, 6, 2), [conv(), RELU, pool(), conv(), RELU, pool((2, 3), (2, 3)), FLATTEN, dense()]),
    "pool overlapping": (
        (6, 7, 2),
        [conv(), RELU, pool((3, 2), (1, 2), "SAME"), conv(), ERF, GLOBAL, dense()],
    ),
    "pool edges": (
        (6, 7, 2),
        [conv(), RELU, pool((3, 3), (2, 2), "SAME", normalize_edges=True), conv(), RELU, FLATTEN, dense()],
    ),
    "sum pool circular": (
        (6, 4, 2),
        [conv(), ERF, pool((2, 3), (1, 1), "CIRCULAR", "sum"), conv(), RELU, GLOBAL, dense()],
    ),
    "residual conv": (
        (5, 4, 2),
        [conv(), residual(RELU, conv(), RELU, conv()), residual(NORM, RELU, conv()), RELU, GLOBAL, dense()],
    ),
    "norm all": ((5, 4, 2), [conv(), NORM_ALL, RELU, conv(), NORM_ALL, GELU, FLATTEN, dense()]),
    "local": ((5, 6, 2), [conv(), RELU, local((3, 3)), RELU, FLATTEN, dense()]),
    "sequence": ((7, 3), [conv((3,), (1,)), RELU, conv((2,), (2,)), RELU, GLOBAL, dense()]),
    "attention": ((6, 3), [conv((3,), (1,)), GELU, attention(), RELU, GLOBAL, dense()]),
    "attention flatten": (
        (6, 3),
        [attention(mechanism="abs"), RELU, attention(mechanism="relu"), FLATTEN, dense()],
    ),
    "attention identity sqrt": (
        (5, 3),
        [conv((3,), (1,)), RELU, attention("sqrt", "identity", 0.3), RELU, FLATTEN, dense()],
    ),
    "product": ((7,), [dense(), ("product", [[RELU, dense()], [ERF, dense()]]), dense(), RELU, dense()]),
    "concat": ((7,), [dense(), ("concat", [[RELU], [dense(), ERF]]), dense(), RELU, dense()]),
    "dropout": ((7,), [dense(), RELU, ("dropout", 0.7), dense(), RELU, dense()]),
}
