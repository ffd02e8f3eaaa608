"""The five documents that surelearn implements, as theorems cite them; docs/bibliography.rst
has them in full.
"""

STABILITY = "L. Wang, Lecture 8: Algorithm Stability and Generalization"
REGULARIZATION = "A. Grissom II, Prediction and Logistic Regression (2022)"
COURSE = "H. Zhang and Y. Yu, CS 480/680 lecture notes (2024)"
EIGENPRO = "Y. Dong, report on EigenPro (2024)"
THESIS = "M. A. Triviño Munévar, Model Selection for Boosting and Deep Learning (2017)"
