"""Searches compiled once for each length and sampler."""

import keras
import numpy as np

from keras_attention import decoding


class Search(keras.Model):
    """The decoding loop as a model of its own, so that `predict_on_batch` compiles it on every backend."""

    def __init__(self, model, max_length, sampler, end):
        super().__init__(name="search")
        self.model = model
        self.max_length = max_length
        self.sampler = decoding.get(sampler)
        self.end = end
        self.seed_generator = getattr(self.sampler, "seed_generator", None)  # tracked, so that its state is kept

    def call(self, source):
        return self.model.search(source, self.max_length, self.sampler, self.end)


class CompiledSearches:
    """The searches of one model. A plain object, which Keras neither tracks nor saves with the model that it holds."""

    def __init__(self, model):
        self.model = model
        self.searches = {}

    def __call__(self, source, max_length, sampler, end):
        key = (max_length, sampler, end, *map(id, self.model.variables))  # LoRA and quantization exchange variables
        if key not in self.searches:
            search = Search(self.model, max_length, sampler, end)
            search.compile()
            self.searches[key] = search
        return tuple(map(np.asarray, self.searches[key].predict_on_batch(source)))
