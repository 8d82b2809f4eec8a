"""How far results may differ, in one place."""

FLOAT32 = 1e-5  # two ways to compute the same in float32
EXACT = 0.0  # the same computation on the same numbers

# Distance from float32 of a layer whose weights and results are of the order of one.
HALF = {"mixed_float16": 1e-2, "mixed_bfloat16": 8e-2}
FLOAT64 = 1e-12  # two ways to compute the same in float64
