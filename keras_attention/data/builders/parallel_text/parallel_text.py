"""TFDS builder of `parallel_text`: the sentences of a folder of the user, each with its translation."""

import functools

import tensorflow_datasets as tfds

from keras_attention.data.builders.parallel_text.file_names import find_files
from keras_attention.data.builders.parallel_text.lines import fingerprint, read_pairs
from keras_attention.data.builders.prepared_once import PreparedOnce

DESCRIPTION = """\
Pairs of texts in two languages, read from the text files of a folder: line i of one file is the translation of line i
of the other. The pairs keep the order of the lines.
"""


class ParallelText(PreparedOnce):
    """`{"en": "A dog runs.", "de": "Ein Hund rennt."}` from two text files of the user.

    A folder with `train.en`, `train.de`, `val.en` and `val.de`  ->  the splits `train` and `val`, whose example `i` is
    line `i` of both files.

    - Pairs: instead of two files a split may have one, `train.tsv`, whose lines are `source<tab>target`, or
      `source<tab>target<tab>remark`; and `folder` may be one such file of any name, which is the split `train`.
    - Names: `train.en` and `train.de`, or `en.train.txt` and `de.train.txt`, each also with `.gz`, with any language
      codes and any names of splits. In these a character other than a letter, a digit, `_` and `-` becomes `_`: the
      split of `news.v2.en` is `news_v2`. Other files are left alone.
    - Lines: UTF-8, ended by `"\\n"` or `"\\r\\n"`, otherwise taken as they are. An empty line stays, as a pair with an
      empty side, so that order and count are those of the files; `training_batches` and `evaluation_batches` leave such
      pairs out.
    - Checks: all files are read and checked here, before anything is written.
    - Freshness: the configuration is named after the content of the files, so that the pairs of another folder or of an
      edited file are prepared anew, beside the old ones. No prepared pairs are ever overwritten; delete
      `builder.data_dir` to free the space of old ones.

    `load_parallel_text` is the short way. With TensorFlow Datasets: `tfds.load("parallel_text", builder_kwargs={"folder":
    folder, "source": "en", "target": "de"}, as_supervised=True)`, and without the folder, once the pairs are prepared,
    `tfds.builder_from_directory(builder.data_dir)`.

    Args:
        folder: Path of the folder with the text files, or of one file of tab-separated pairs.
        source: String, language code of the source texts, such as `"en"`.
        target: String, language code of the target texts, such as `"de"`.
        data_dir: Path under which TensorFlow Datasets keeps prepared pairs, or None for its usual one.

    Raises:
        FileNotFoundError: There is no folder, no file of these languages, or a split with one side only.
        ValueError: The files of a split have different numbers of lines, a line of pairs has no tab, a side is there
            twice, or a file is empty, not UTF-8 or a damaged gzip file.

    Example:
        builder = ParallelText("multi30k", source="en", target="de")
        builder.download_and_prepare()
        pairs = builder.as_dataset(split="train", as_supervised=True)
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "First release."}  # noqa: RUF012 (a name TFDS reads)

    def __init__(self, folder, source, target, *, data_dir=None):
        self.folder = folder
        self.source = source
        self.target = target
        self.files = find_files(folder, source, target)
        self.fingerprint = fingerprint(self.files)
        name = f"{source}.{target}_{self.fingerprint[:16]}"  # no code has a dot: no two pairs share a name
        config = tfds.core.BuilderConfig(name=name, description=f"From {source} to {target}.")
        super().__init__(config=config, data_dir=data_dir)

    def __reduce__(self):
        build = functools.partial(type(self), self.folder, self.source, self.target, data_dir=self.data_dir_root)
        return build, ()

    def _info(self):
        return tfds.core.DatasetInfo(
            builder=self,
            description=DESCRIPTION,
            features=tfds.features.Translation([self.source, self.target]),
            supervised_keys=(self.source, self.target),
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        if fingerprint(self.files) != self.fingerprint:
            raise ValueError(
                f"The text files must stay as they are until they are prepared. Those of {self.folder} have changed "
                "since this builder was made. Make a new one."
            )
        return {split: self._generate_examples(paths) for split, paths in self.files.items()}

    def _generate_examples(self, paths):
        for number, (source_text, target_text) in enumerate(read_pairs(paths)):
            yield number, {self.source: source_text, self.target: target_text}


def load_parallel_text(folder, source, target, data_dir=None):
    """Pairs of sentences of a folder with two text files for each split, or one of pairs, prepared on the first call.

    A folder with `train.en` ("A dog runs.", "") and `train.de` ("Ein Hund rennt.", "Ja."), `"en"`, `"de"`  ->
    `{"train": ("A dog runs.", "Ein Hund rennt."), ("", "Ja.")}`

    A file `deu.txt` with the line "A dog runs.<tab>Ein Hund rennt."  ->  `{"train": ("A dog runs.", "Ein Hund rennt.")}`

    `ParallelText` describes the names of the files, their lines, the errors, and how edited files are prepared anew.

    Args:
        folder: Path of the folder with the text files, or of one file of tab-separated pairs.
        source: String, language code of the source texts, such as `"en"`.
        target: String, language code of the target texts, such as `"de"`.
        data_dir: Path under which TensorFlow Datasets keeps prepared pairs, or None for its usual one.

    Returns:
        Dictionary from the name of a split to a `tf.data.Dataset` of pairs of scalar strings,
        `(source text, target text)`, in the order of the lines; its `len` is the number of lines.
    """
    builder = ParallelText(folder, source, target, data_dir=data_dir)
    builder.download_and_prepare()
    return builder.as_dataset(as_supervised=True)
