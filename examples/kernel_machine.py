"""
A kernel machine for handwritten digits, with its settings chosen for it
========================================================================

EigenPro fits a kernel machine by gradient descent, after taking the directions out of the way in
which the kernel is steep. How many directions, how large the batches and how long the steps are
follows from the kernel's spectrum: nothing is tuned.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import surelearn
from surelearn.kernel import Compute, EigenProClassifier, Stopping

images, digits = load_digits(return_X_y=True)
images = images / 16  # brightness from 0 to 1
order = np.random.default_rng(0).permutation(len(digits))
fit, new = order[:1200], order[1200:]

# %%
# A Gaussian kernel, its length from the median distance, and everything else by itself. With so few
# rows the direct solution
# would be taken; ``solver="eigenpro"`` asks for the iteration. A small penalty makes the minimizer
# unique.

model = EigenProClassifier(
    "gaussian",
    regularization=1e-4,
    solver="eigenpro",
    epochs=30,
    stopping=Stopping(tol=1e-4),
    compute=Compute(device="cpu"),
    random_state=0,
).fit(images[fit], digits[fit])
facts = model.facts_
bandwidth = model.kernel_parameters_["bandwidth"]  # h of exp(−‖x − z‖²/(2h²))
print(f"bandwidth of the kernel: {bandwidth:.2f}, the median distance")
print(
    f"eigensystem of {facts['subsample']:,} rows, of which {facts['directions']} directions are"
    " flattened"
)
print(f"batches of {facts['batch_size']:,} rows; a larger batch helps up to about", end=" ")
print(
    f"{facts['critical_batch_size']:.1f} rows before flattening,"
    f" {facts['critical_batch_size_preconditioned']:,.0f} after"
)
print(f"{facts['epochs']} passes; {model.score(images[new], digits[new]):.1%} of new digits right")

# %%
# The spectrum says why. The steepest direction decides how long a step may be, and the others then
# take ages. With the
# leading directions flattened to the dashed line, all go at about the same pace.

spectrum = model.eigenvalues_
figure, ax = plt.subplots(figsize=(6, 4))
ax.loglog(np.arange(1, len(spectrum) + 1), spectrum, label="eigenvalues of the kernel matrix")
ax.axhline(spectrum[facts["directions"]], color="grey", linestyle="--", label="after flattening")
ax.set(xlabel="direction", ylabel="eigenvalue")
ax.legend()
print(
    f"the first eigenvalue is {spectrum[0] / spectrum[facts['directions']]:,.0f} times the last"
    " that is kept"
)

# %%
# What is guaranteed: how far the fit is from the true minimizer, from its residual; and, from
# digits that it has not seen,
# how often it errs on new ones.

print(
    model.certificate_["distance_to_the_minimizer"], f"where the fit has norm {facts['norm']:.1f}"
)
print(surelearn.certify(model, images[new], digits[new])["risk"])
