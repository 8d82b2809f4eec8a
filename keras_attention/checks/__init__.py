"""Checks of arguments, shapes and points, with their messages; pure Python and NumPy, for every folder."""
