"""How objects become configs and files and come back: names, configs, dtype policies, initializers, seeds of models."""
