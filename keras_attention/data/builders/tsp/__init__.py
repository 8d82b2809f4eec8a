"""The data set `tsp`."""

from keras_attention.data.builders.tsp.pyvrp_solver import PyVRP
from keras_attention.data.builders.tsp.tours import shortest_tours
from keras_attention.data.builders.tsp.tsp import Tsp, TspConfig

__all__ = ["PyVRP", "Tsp", "TspConfig", "shortest_tours"]
