"""Functions of inference engines, with their signatures, over this library: to try it there by one import."""
