"""The notebook of the same name as a script; `make.py` makes it."""

# %% [markdown]
# # Predict a column of a csv
#
# From an ordinary table to a saved model: read it, fit, look at predictions with intervals, see whether more
# rows would help, save the model and load it again.
#
# It needs `pip install 'nearkernel[cli]'` and takes less than a minute. The command line does the same in one
# line: `nearkernel predict houses.csv --target price --save model.nk`.

# %%
import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from pyarrow.csv import read_csv
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nearkernel as nk
from nearkernel.estimators import AutoRegressor, PrepareTable

# %% [markdown]
# ## A table
#
# We write one, so that this notebook runs anywhere; put the name of yours below instead. It has what tables
# have: an id, numbers, categories, dates, and cells that are missing.

# %%
rng, n = np.random.default_rng(0), 400
area, built = rng.integers(30, 200, n), rng.integers(1900, 2024, n)
kind = rng.choice(["flat", "house", "loft"], n)
rooms = [max(1, round(each)) for each in area / 28 + rng.normal(size=n)]
sold = np.datetime64("2024-01-01") + rng.integers(0, 365, n)
level = np.array([{"flat": 1.0, "house": 1.3, "loft": 1.15}[each] for each in kind])
age = 1 + 0.4 * np.abs(built - 1960) / 60  # houses of 1960 are the cheapest
price = 2500 * area * level * age * np.exp(0.1 * rng.normal(size=n))

with open("houses.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["id", "area", "rooms", "kind", "built", "sold", "price"])
    for i in range(n):
        some = "" if i % 17 == 0 else rooms[i]  # some cells are missing
        rows.writerow([f"H{i:04d}", area[i], some, kind[i], built[i], sold[i], round(price[i])])

# %%
table = read_csv("houses.csv")  # pandas.read_csv and polars.read_csv do as well
price = table["price"].to_numpy()
table = table.drop_columns("price")
print(*Path("houses.csv").read_text().splitlines()[:4], sep="\n")

# %% [markdown]
# ## Fit
#
# `PrepareTable` turns columns into numbers, and says what it did to each. `AutoRegressor` averages kernel
# machines, among them those of infinitely wide networks; it chooses ridges and weights by their leave-one-out
# error, so no rows are held out for that. We keep 100 rows to test the result.

# %%
train, test = table.slice(0, 300), table.slice(300)
y, y_test = price[:300], price[300:]

model = make_pipeline(PrepareTable(), AutoRegressor()).fit(train, y)
print(*model[0].remarks_, sep="\n")

# %%
others = {
    "mean": DummyRegressor(),
    "ridge regression": make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13))),
    "boosted trees": HistGradientBoostingRegressor(random_state=0),
}
prepared, prepared_test = model[0].transform(train), model[0].transform(test)
for name, other in others.items():
    print(f"{name:17s} R2 {other.fit(prepared, y).score(prepared_test, y_test):.2f}")
print(f"{'AutoRegressor':17s} R2 {model.score(test, y_test):.2f}")

# %% [markdown]
# ## Intervals
#
# `predict_interval` gives bounds that contain a new row with the probability that you ask for. They come from
# leave-one-out errors, wider where errors nearby are larger. Count how many of the test rows they contain:

# %%
low, high = model[-1].predict_interval(prepared_test, coverage=0.9).T
predicted = model.predict(test)
inside = (low <= y_test) & (y_test <= high)
print(f"{inside.mean():.0%} of the test rows lie within their 90 % interval")

# %%
order = np.argsort(predicted)
fig, axes = plt.subplots(figsize=(7.2, 3.6), layout="constrained")
low, high = low[order] / 1e3, high[order] / 1e3
axes.fill_between(np.arange(100), low, high, color="#56B4E9", alpha=0.4, lw=0, label="90 % interval")
axes.plot(predicted[order] / 1e3, color="#0072B2", label="prediction")
axes.plot(y_test[order] / 1e3, ".", color="#D55E00", label="sold for")
axes.set(xlabel="houses of the test set, cheapest first", ylabel="price / 1000")
axes.legend()
plt.show()

# %% [markdown]
# ## Would more rows help?
#
# A learning curve from one kernel matrix: the expected error of a model that is trained on fewer rows than
# you have, and by extrapolation on more. `check=3` also fits three models of each size, for comparison.

# %%
scaled = StandardScaler().fit_transform(prepared)
target = (np.log(y) - np.log(y).mean()) / np.log(y).std()
network = nk.MLP(scaled.shape[1], (256, 256), weight_var=2.0, bias_var=0.1)
ridge = nk.dynamics.tune(nk.kernels.NTK(network), scaled, target, "ridge").algorithm
curve = nk.learning_curve(network, scaled, target, ridge, sizes=[30, 60, 120, 200, 300], check=3)
axes = curve.plot()
axes.set_xticks([30, 60, 120, 300, 600], labels=[30, 60, 120, 300, 600])
axes.xaxis.minorticks_off()
plt.show()

# %%
ahead = curve.extrapolate([600])
print(f"error with 300 rows: {curve.error[-1]:.3f} of the variance")
low, high = ahead.low[0], ahead.high[0]
print(f"error with 600 rows: {ahead.error[0]:.3f} ({low:.3f} to {high:.3f}), trusted: {ahead.trusted}")

# %% [markdown]
# ## Save and load
#
# A model file contains JSON and arrays, and no code: loading one that somebody sent you runs nothing.

# %%
nk.save(model, "houses.nk")
again = nk.load("houses.nk")
np.array_equal(again.predict(test), model.predict(test))

# %% [markdown]
# In a shell, `nearkernel apply houses.nk new.csv --out predictions.csv` writes predictions and intervals of
# new rows.
#
# ## Next
#
# - [Predict a column of a table](../guides/a-table-of-yours.md): how it chooses and compares, and classes.
# - [scikit-learn estimators](../guides/estimators.md): networks of infinite width, searches, custom kernels.
# - [Learning curves](../guides/learning-curves.md): what the curve assumes, and random features.
# - [Forecast an ensemble of networks](forecast_and_check.ipynb): what this library is about.
