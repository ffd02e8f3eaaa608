"""Neural networks on PyTorch: one training loop for every family. PyTorch is an extra, and is
imported when a network is trained or asked, not before.
"""

from surelearn.neural import activations, convolution, schedules
from surelearn.neural.augmentation import Augmentation
from surelearn.neural.averages import Ema, Swa
from surelearn.neural.image_details import ImageDetails
from surelearn.neural.images import ImageClassifier
from surelearn.neural.layers import BatchNormalization, dropout
from surelearn.neural.network import NetworkClassifier, NetworkDetails, NetworkRegressor
from surelearn.neural.train import Batches, DrawnBatches, Shuffled, Trained, Training, train
from surelearn.neural.two_layer import XOR, TwoLayer, collapsed

__all__ = [
    "XOR",
    "Augmentation",
    "BatchNormalization",
    "Batches",
    "DrawnBatches",
    "Ema",
    "ImageClassifier",
    "ImageDetails",
    "NetworkClassifier",
    "NetworkDetails",
    "NetworkRegressor",
    "Shuffled",
    "Swa",
    "Trained",
    "Training",
    "TwoLayer",
    "activations",
    "collapsed",
    "convolution",
    "dropout",
    "schedules",
    "train",
]
