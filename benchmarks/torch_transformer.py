"""The Transformer of Vaswani et al. in torch: `torch.nn.Transformer` between embeddings and logits."""

import torch
from torch import nn


class TorchTransformer(nn.Module):
    """Logits `(B, T, V)` of source ids `(B, S)` and target ids `(B, T)`."""

    def __init__(self, V, D, layers, N, dropout=0.1):
        super().__init__()
        self.source_embedding, self.target_embedding = nn.Embedding(V, D), nn.Embedding(V, D)
        self.dropout = nn.Dropout(dropout)
        self.blocks = nn.Transformer(D, N, layers, layers, 4 * D, dropout, layer_norm_eps=1e-6, batch_first=True)
        # The paper has neither a normalization after the stacks nor a dropout inside the feed-forward network.
        self.blocks.encoder.norm = self.blocks.decoder.norm = None
        for block in (*self.blocks.encoder.layers, *self.blocks.decoder.layers):
            block.dropout = nn.Identity()
        self.logits = nn.Linear(D, V)
        pairs = torch.arange(D) // 2
        angles = torch.arange(512)[:, None] / 10000 ** (2 * pairs / D)
        table = torch.where(torch.arange(D) % 2 == 1, angles.cos(), angles.sin())
        self.register_buffer("table", table)

    def embed(self, embedding, ids):
        vectors = embedding(ids)
        return self.dropout(vectors.shape[-1] ** 0.5 * vectors + self.table[: ids.shape[1]])

    def forward(self, source, target):
        T = target.shape[1]
        hidden = self.blocks(
            self.embed(self.source_embedding, source),
            self.embed(self.target_embedding, target),
            tgt_mask=torch.ones(T, T, dtype=torch.bool).triu(1),
            src_key_padding_mask=source == 0,
            tgt_key_padding_mask=target == 0,
            memory_key_padding_mask=source == 0,
            tgt_is_causal=True,
        )
        return self.logits(hidden)
