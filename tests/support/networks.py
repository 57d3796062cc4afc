"""The networks of `architectures` in nearkernel."""

import nearkernel as nk

L = nk.layers
MERGES = {"sum": L.Sum, "product": L.Product, "concat": L.Concat}


def layer(kind, options, width=64):
    if kind == "activation":
        return L.Activation(options)
    if kind in ("dense", "conv", "local", "attention"):
        make = {"dense": L.Dense, "conv": L.Conv, "local": L.LocallyConnected, "attention": L.Attention}[kind]
        return make(**{"width": width, **options})
    if kind == "pool":
        rest = {name: value for name, value in options.items() if name != "kind"}
        return (L.AvgPool if options["kind"] == "avg" else L.SumPool)(**rest)
    if kind == "global":
        return L.GlobalAvgPool() if options == "avg" else L.GlobalSumPool()
    if kind in MERGES:
        return MERGES[kind]([[layer(*each, width) for each in branch] for branch in options])
    return {"flatten": lambda _: L.Flatten(), "norm": L.LayerNorm, "dropout": L.Dropout}[kind](options)


def network(in_shape, layers, width=64):
    return nk.Network(in_shape, [layer(*each, width) for each in layers])
