"""The program of the experiment `images`, in pieces; braces hold settings."""

THEORY = """
shift, depth, ridge = {shift}, {depth}, {ridge}
_, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5))
for name in WIDTHS:
    found = accuracies(name, depth, shift, ridge)
    mean, sem = found.mean(axis=0), found.std(axis=0, ddof=1) / ORDERS**0.5
    left.plot(SIZES, mean, label=name)
    left.fill_between(SIZES, mean - sem, mean + sem, alpha=0.2)
left.plot([SIZES[0], SIZES[-1]], [0.1, 0.1], "--", color="grey", label="chance")
left.set(title="Accuracy", xlabel="examples", ylim=(0, 1))
right.imshow(moved(digits()[0][TRAIN:], shift)[0, ::-1, :, 0], cmap="Blues", origin="lower")
right.set(title="A test image")
"""
CHECK = """
sizes = SIZES[1], SIZES[-1]
for name, width in WIDTHS.items():
    found = []
    for size in sizes:
        *_, (_, correct) = training(name, size, depth, shift, ridge)
        found.append(correct)
    sem = np.std(found, axis=1, ddof=1) / NETWORKS**0.5
    left.errorbar(sizes, np.mean(found, axis=1), sem, fmt="o", label=f"{{name}}, width {{width}}")
"""
