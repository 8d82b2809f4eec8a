"""IDX files, the format of MNIST: one array of numbers, plain or gzip."""

import math
import pathlib

import numpy as np

from keras_attention.checks.messages import shortened
from keras_attention.data.files.lines import check_growth, opened, whole_gzip

# The third byte of a file names the type of its numbers, most significant byte first.
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
LARGEST_RANK = 8


def read_idx(path):
    """The array of an IDX file.

    The bytes `00 00 08 02  00 00 00 01  00 00 00 03  05 07 09`  ->  `array([[5, 7, 9]], dtype=uint8)`

    Args:
        path: Path of the file; one whose name ends with `.gz` is decompressed.

    Returns:
        NumPy array of the shape and type that the file names, in the byte order of this machine.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not in the format IDX, has fewer or more numbers than its header says, or is a gzip file
            that is damaged or made to fill the memory.

    References:
        LeCun, Cortes and Burges, "The MNIST database of handwritten digits", section "File formats".
    """
    path = pathlib.Path(path)
    with opened(path) as file, whole_gzip(path):
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in TYPES or head[3] > LARGEST_RANK:
            raise ValueError(
                f"{path} is not an IDX file: it must begin with two zeros, a type of {', '.join(map(hex, TYPES))}, and the "
                f"number of axes. Received the bytes {head.hex(' ') or 'of an empty file'}. Pass a file such as "
                "train-images-idx3-ubyte.gz."
            )
        dtype, lengths = np.dtype(TYPES[head[2]]), file.read(4 * head[3])
        shape = tuple(np.frombuffer(lengths, ">u4").tolist()) if len(lengths) == 4 * head[3] else ()
        size = dtype.itemsize * math.prod(shape)
        numbers = content_of(file, path, size)
    received = len(head) + len(lengths) + len(numbers)
    expected = len(head) + 4 * head[3] + size
    if received != expected:
        raise ValueError(
            f"{path} must have {expected} bytes for numbers of shape {shortened(shape)}, as its header says. Received "
            f"{received} bytes{' or more' if received > expected else ''}. Copy the file again."
        )
    return np.frombuffer(numbers, dtype).reshape(shape).astype(dtype.newbyteorder("="))


def content_of(file, path, size):
    """As many bytes as the header says and one more, if there is one. A small file that says it is huge is not believed."""
    if path.suffix == ".gz":
        check_growth(path, size)
    return file.read(min(size, path.stat().st_size if path.suffix != ".gz" else size) + 1)
