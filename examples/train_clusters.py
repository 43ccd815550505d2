"""Two Gaussian clusters, separated by logistic regression: private beside plain, and a picture."""

import matplotlib as mpl

from discreet.plots import boundaries
from discreet.train.examples import clusters

mpl.use("Agg")  # draws to files, without a window

found = clusters.main(epsilon=0.5, delta=1e-5)
print(found)
figure = boundaries(found).figure
figure.savefig("clusters.png", dpi=110)
print("drawn in clusters.png")
