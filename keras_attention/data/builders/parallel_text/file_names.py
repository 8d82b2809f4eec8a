"""Names of the files of a parallel text: `train.en` and `train.de`, `en.train.txt` and `de.train.txt`, or `train.tsv`."""

import pathlib
import re

TEMPLATES = ("{split}.{language}", "{language}.{split}.txt")
NAMES_SHOWN = 10


def find_files(folder, source, target):
    """The files of every split of a folder: two, or one for both sides.

    A folder with `train.en`, `train.de.gz`, `en.news-2016.v2.txt`, `de.news-2016.v2.txt` and `README`, `"en"`, `"de"`
    ->  `{"news-2016_v2": (en.news-2016.v2.txt, de.news-2016.v2.txt), "train": (train.en, train.de.gz)}`

    A folder with `train.tsv` and `val.tsv` and no file of one side  ->  `{"train": (train.tsv,), "val": (val.tsv,)}`; a
    file `deu.txt`  ->  `{"train": (deu.txt,)}`

    Hidden files, folders and files with other names are left alone.

    Args:
        folder: Path of the folder, or of one file with a tab between source and target.
        source: Language code of the source texts, as the file names have it.
        target: Language code of the target texts.

    Returns:
        Dictionary from the name of a split to its paths, `(source, target)` or `(both,)`, sorted by name. A
        character that TensorFlow Datasets refuses in the name of a split (all but letters, digits, `_` and `-`) becomes `_`.

    Raises:
        FileNotFoundError: There is no folder, it has no file of these languages, or a split has one side only.
        ValueError: A language code has other characters than letters, digits, `_` and `-`, one side of a split is there
        twice, or a split is named `all`.
    """
    check_languages(source, target)
    folder = pathlib.Path(folder).expanduser()
    if folder.is_file():
        return {"train": (folder,)}
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder}. Pass the path of the folder that holds the text files.")

    sides = {}
    for path in visible_files(folder):
        for language in (source, target):
            split = split_in_name(path.name, language)
            if split is not None:
                side = (re.sub(r"[^\w-]", "_", split), language)
                if side in sides:
                    raise ValueError(
                        f"A split has one file for each language. Received {sides[side]} and {path}, both for "
                        f"`{language}` of split `{side[0]}`. Move one of them away, or rename it."
                    )
                sides[side] = path
    joined = {} if sides else joined_files(folder)
    if joined:
        return joined
    check_sides(folder, sides, source, target)
    splits = sorted({split for split, _ in sides})
    return {split: (sides[split, source], sides[split, target]) for split in splits}


def joined_files(folder):
    """A folder with `train.tsv` and `news.v2.tsv.gz`  ->  `{"news_v2": (news.v2.tsv.gz,), "train": (train.tsv,)}`"""
    found = {}
    for path in visible_files(folder):
        match = re.fullmatch(r"(.+)\.tsv(\.gz)?", path.name)
        if match:
            split = re.sub(r"[^\w-]", "_", match[1])
            if split in found or split == "all":
                raise ValueError(
                    f"A split has one file of pairs, and no split is named `all`. Received {path}. Rename it or move it away."
                )
            found[split] = (path,)
    return found


def visible_files(folder):
    return sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))


def split_in_name(name, language):
    """`"train.en"`, `"en.train.txt"` or `"train.en.gz"`, `"en"`  ->  `"train"`; `"train.de"`, `"en"`  ->  `None`"""
    for template in TEMPLATES:
        pattern = template.replace(".", r"\.").format(split="(.+)", language=re.escape(language))
        match = re.fullmatch(pattern + r"(\.gz)?", name)
        if match:
            return match[1]
    return None


def possible_names(split, language):
    """`"train"`, `"en"`  ->  `"train.en or en.train.txt"`"""
    return " or ".join(template.format(split=split, language=language) for template in TEMPLATES)


def check_languages(source, target):
    for name, language in (("source", source), ("target", target)):
        if not isinstance(language, str) or not re.fullmatch(r"[\w-]+", language):
            raise ValueError(
                f"`{name}` must be a language code of letters, digits, `_` and `-`. Received {name}={language!r}. Pass "
                'the part of the file names that stands for the language, such as "en" for `train.en`.'
            )
    if source == target:
        raise ValueError(
            f"`source` and `target` must be two languages. Received {source!r} for both. Pass two codes, such as "
            '"en" and "de" for `train.en` and `train.de`.'
        )


def check_sides(folder, sides, source, target):
    """`{("train", "en"): train.en, ("train", "de"): train.de}` passes; `{("train", "en"): train.en}` and `{}` do not."""
    if not sides:
        present = [path.name for path in visible_files(folder)]
        shown = ", ".join(present[:NAMES_SHOWN]) or "no file"
        more = f" and {len(present) - NAMES_SHOWN} more" if len(present) > NAMES_SHOWN else ""
        raise FileNotFoundError(
            f"{folder} has no text of `{source}` and `{target}`. Looked for {possible_names('train', source)}, with "
            f"{possible_names('train', target)}, each also with .gz, and with any other split in place of `train`; then "
            "for train.tsv. "
            f"Found {shown}{more}. Rename the files, or pass the language codes that their names have."
        )
    for (split, language), path in sides.items():
        if split == "all":
            raise ValueError(
                f"A split cannot be named `all`: TensorFlow Datasets means every split by it. Received {path}. Rename "
                "the file."
            )
        other = target if language == source else source
        if (split, other) not in sides:
            wanted = possible_names(split_in_name(path.name, language), other)
            raise FileNotFoundError(
                f"Each file needs a partner in the other language. There is no {wanted} for {path}, nor either with "
                f".gz. Put it into the folder, or move {path.name} away."
            )
