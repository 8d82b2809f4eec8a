"""The Pointer Network of Vinyals et al. in torch: LSTM encoder and decoder, additive scores over the encoder's outputs."""

import torch
from torch import nn


class TorchPointerNetwork(nn.Module):
    """Logits `(B, T, S + 1)` of points `(B, S, 2)` and shifted indices `(B, T)`; position 0 is start and end.

    Args:
        D: Integer, width of everything.
        loop: Boolean. True steps through the decoder one index at a time, scores included, as implementations that
            decode and train by one function do; False gives all steps to one call.
    """

    def __init__(self, D, loop):
        super().__init__()
        self.embedding = nn.Linear(2, D)
        self.outside = nn.Parameter(torch.randn(1, 1, D))
        self.encoder = nn.LSTM(D, D, batch_first=True)
        self.decoder = nn.LSTM(D, D, batch_first=True)
        self.initial_states = nn.ModuleList([nn.Linear(D, D), nn.Linear(D, D)])
        self.query_kernel, self.key_kernel = nn.Linear(D, D, bias=False), nn.Linear(D, D, bias=False)
        self.vector = nn.Linear(D, 1, bias=False)
        self.loop = loop

    def forward(self, points, target):
        embedded = self.embedding(points)
        elements = torch.cat([self.outside.expand(len(points), -1, -1), embedded], dim=1)  # (B, S + 1, D)
        memory, _ = self.encoder(elements)
        mean = memory.mean(dim=1)
        state = tuple(torch.tanh(dense(mean))[None] for dense in self.initial_states)
        inputs = torch.gather(elements, 1, target[..., None].expand(-1, -1, elements.shape[-1]))  # (B, T, D)
        keys = self.key_kernel(memory)[:, None]  # (B, 1, S + 1, D)
        if not self.loop:
            return self.scores(self.decoder(inputs, state)[0], keys)
        logits = []
        for step in range(inputs.shape[1]):
            hidden, state = self.decoder(inputs[:, step : step + 1], state)
            logits.append(self.scores(hidden, keys))
        return torch.cat(logits, dim=1)

    def scores(self, hidden, keys):
        return self.vector(torch.tanh(self.query_kernel(hidden)[:, :, None] + keys))[..., 0]
