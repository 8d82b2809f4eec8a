"""Steps three and four, and the layers that attention is built into."""

from keras_attention.layers.attention_pooling import AttentionPooling
from keras_attention.layers.feed_forward import FeedForward
from keras_attention.layers.glimpse_sensor import GlimpseSensor
from keras_attention.layers.hard_attention import HardAttention
from keras_attention.layers.hierarchical_attention import HierarchicalAttention
from keras_attention.layers.key_value_attention import KeyValueAttention
from keras_attention.layers.key_value_memory import KeyValueMemory
from keras_attention.layers.key_value_split_attention import KeyValueSplitAttention
from keras_attention.layers.learned_position_embedding import LearnedPositionEmbedding
from keras_attention.layers.learned_position_embedding_2d import LearnedPositionEmbedding2D
from keras_attention.layers.multi_head_attention import MultiHeadAttention
from keras_attention.layers.pointer import Pointer
from keras_attention.layers.sinusoidal_position_encoding import SinusoidalPositionEncoding
from keras_attention.layers.sinusoidal_position_encoding_2d import SinusoidalPositionEncoding2D
from keras_attention.layers.soft_attention import SoftAttention
from keras_attention.layers.structured_attention import StructuredAttention
from keras_attention.layers.token_embedding import TokenEmbedding
from keras_attention.layers.transformer_decoder_block import TransformerDecoderBlock
from keras_attention.layers.transformer_encoder_block import TransformerEncoderBlock

__all__ = [
    "AttentionPooling",
    "FeedForward",
    "GlimpseSensor",
    "HardAttention",
    "HierarchicalAttention",
    "KeyValueAttention",
    "KeyValueMemory",
    "KeyValueSplitAttention",
    "LearnedPositionEmbedding",
    "LearnedPositionEmbedding2D",
    "MultiHeadAttention",
    "Pointer",
    "SinusoidalPositionEncoding",
    "SinusoidalPositionEncoding2D",
    "SoftAttention",
    "StructuredAttention",
    "TokenEmbedding",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
]
