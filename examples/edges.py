"""
Edges and smoothing: what one convolution sees
==============================================

Before kernels were learned, people wrote them: a difference finds edges, an average removes noise.
They are the same operation that a convolutional network learns (course, Section 10), here with the
library's own convolution in NumPy.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

from surelearn.neural.convolution import convolution_matrix, convolve, pool

color = load_sample_image("china.jpg")[::2, ::2] / 255  # (214, 320, 3), brightness from 0 to 1
image = color.mean(axis=2)


def show(*panels):
    """Images side by side, each with its title."""
    figure, axes = plt.subplots(1, len(panels), figsize=(4.2 * len(panels), 3.1))
    for ax, (title, values) in zip(axes, panels, strict=True):
        ax.imshow(values, cmap="gray")
        ax.set_title(title)
        ax.axis("off")
    figure.tight_layout()


# %%
# **Edges.** A kernel whose numbers sum to 0 answers 0 wherever the brightness is constant. Sobel's
# takes differences in one direction and averages in the other; the length of both differences is
# large at edges of any direction.

across = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]]) / 8
right, down = (convolve(image, kernel, padding=1) for kernel in (across, across.T))
edges = np.hypot(right, down)
show(("image", image), ("differences to the right", right), ("edges", edges))

flat = convolve(np.full((5, 5), 0.7), across)
print(f"where the brightness is constant, the difference is {np.abs(flat).max():.1g}")

# %%
# **Smoothing.** A Gaussian kernel sums to 1: it keeps the brightness and averages noise away. Of
# independent noise with standard deviation σ there remains σ·‖W‖.

at = np.arange(-3, 4)
bell = np.exp(-(at**2) / (2 * 1.5**2))
gaussian = np.outer(bell, bell) / bell.sum() ** 2
noise = np.random.default_rng(0).normal(0, 0.2, image.shape)
smoothed = convolve(image + noise, gaussian, padding=3)
show(("with noise", image + noise), ("smoothed", smoothed))

left = convolve(noise, gaussian)
print(f"noise: standard deviation {noise.std():.3f}, smoothed {left.std():.4f}", end=", ")
print(f"as σ·‖W‖ = {0.2 * np.linalg.norm(gaussian):.4f} says")

# %%
# **Edges of a noisy image.** A difference makes noise louder beside the smooth rest; smoothed first,
# the edges come back. Both steps are linear, so that one kernel does the work of two: that of
# smoothed differences.


def edges_of(values):
    """The length of Sobel's two differences."""
    return np.hypot(*(convolve(values, kernel, padding=1) for kernel in (across, across.T)))


show(("edges of the noisy image", edges_of(image + noise)), ("smoothed first", edges_of(smoothed)))

both = convolve(gaussian, across[::-1, ::-1], padding=2)  # turned: it slides over a kernel now
once, twice = convolve(image, both), convolve(convolve(image, gaussian), across)
print(f"one kernel of {both.shape} differs from two steps by {np.abs(once - twice).max():.0e}")

# %%
# **It is a matrix.** Convolution is linear: W_circ·vec(X) = vec(W ∗ X), with as few different numbers
# as the kernel has. A network's layer is this, with kernels that are learned, one for every output
# channel, a bias and pooling.

small = image[60:70, 100:112]
matrix = convolution_matrix(across, small.shape)
same = np.allclose(matrix @ small.ravel(), convolve(small, across).ravel())
print(f"W_circ is {matrix.shape} with {across.size} numbers that repeat; the same answer: {same}")

channels = np.moveaxis(color, 2, 0)  # (3, 214, 320)
red_beside_blue = np.stack(
    [across, 0 * across, -across]
)  # reddish on one side, bluish on the other
change = np.abs(convolve(channels, red_beside_blue, padding=1))
show(("from red to blue", change), ("the largest of 4 × 4", pool(change, 4)))
