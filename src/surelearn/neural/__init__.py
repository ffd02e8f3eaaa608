"""Neural networks on PyTorch: one training loop for every family. PyTorch is an extra, and is
imported when a network is trained or asked, not before.
"""

from surelearn.neural import schedules
from surelearn.neural.augmentation import Augmentation
from surelearn.neural.averages import Ema, Swa
from surelearn.neural.images import ImageClassifier, ImageDetails
from surelearn.neural.train import Batches, DrawnBatches, Shuffled, Trained, Training, train

__all__ = [
    "Augmentation",
    "Batches",
    "DrawnBatches",
    "Ema",
    "ImageClassifier",
    "ImageDetails",
    "Shuffled",
    "Swa",
    "Trained",
    "Training",
    "schedules",
    "train",
]
