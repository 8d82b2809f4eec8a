"""IDX files, the format of MNIST: one array of numbers, plain or gzip."""

import gzip
import pathlib
import zlib

import numpy as np

# The third byte of a file names the type of its numbers, most significant byte first.
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def read_idx(path):
    """The array of an IDX file.

    The bytes `00 00 08 02  00 00 00 01  00 00 00 03  05 07 09`  ->  `array([[5, 7, 9]], dtype=uint8)`

    Args:
        path: Path of the file; one whose name ends with `.gz` is decompressed.

    Returns:
        NumPy array of the shape and type that the file names, in the byte order of this machine.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: It is no IDX file, has fewer or more numbers than its header says, or is a damaged gzip file.

    References:
        LeCun, Cortes and Burges, "The MNIST database of handwritten digits", section "File formats".
    """
    path = pathlib.Path(path)
    content = read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES:
        raise ValueError(
            f"{path} is no IDX file: it must begin with two zeros and a type of {', '.join(map(hex, TYPES))}. Received "
            f"the bytes {content[:4].hex(' ') or 'of an empty file'}. Pass a file such as train-images-idx3-ubyte.gz."
        )
    dtype, rank = np.dtype(TYPES[content[2]]), content[3]
    start = 4 + 4 * rank
    shape = tuple(np.frombuffer(content[4:start], ">u4").tolist()) if len(content) >= start else ()
    size = start + dtype.itemsize * int(np.prod(shape, dtype="int64"))
    if len(content) != size:
        raise ValueError(
            f"{path} must have {size} bytes for numbers of shape {shape}, as its header says. Received {len(content)} "
            "bytes. Copy the file again."
        )
    return np.frombuffer(content, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


def read_bytes(path):
    """The content of a file, decompressed if its name ends with `.gz`."""
    content = path.read_bytes()
    if path.suffix != ".gz":
        return content
    try:
        return gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is not a whole gzip file ({error}). Copy or compress it again.") from error
