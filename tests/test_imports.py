"""Imports point one way, heavy libraries stay where they are needed, and each `__init__` names what it imports."""

import ast
import json
import pathlib
import subprocess
import sys

import pytest

import keras_attention

ROOT = pathlib.Path(keras_attention.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
PACKAGES = ("alignments", "decoding", "evaluation", "layers", "models", "positions", "scores", "training")

# What a folder may import of ours besides itself; DESIGN, section 2. Everyone may use FOR_ALL.
FOR_ALL = {"checks", "extras", "files", "tokens"}
ALLOWED = {
    "checks": set(),
    "ops": set(),
    "structures": {"ops"},
    "saving": {"ops"},
    "scores": {"ops", "saving"},
    "alignments": {"ops", "structures", "saving"},
    "masks": {"ops"},
    "positions": {"ops", "saving"},
    "layers": {"ops", "saving", "scores", "positions", "alignments"},
    "evaluation": set(),
    "training": {"ops", "saving", "alignments", "layers", "evaluation"},
    "decoding": {"ops", "saving"},
    "models": {"ops", "saving", "scores", "alignments", "layers", "training", "decoding"},
    "data": set(),
    "serving": {"decoding"},
    "visualization": set(),
}

# Library -> where it may be imported. A file elsewhere that needs TensorFlow is named itself: "ops/name.py".
HEAVY = {
    "tensorflow": ("data/", "serving/", "ops/tensorflow_scan.py", "training/tensorflow_replicas.py"),
    "tensorflow_text": ("data/", "serving/"),
    "tensorflow_datasets": ("data/",),
    "tensorflow_serving": ("serving/",),
    "babel": ("data/",),
    "matplotlib": ("visualization/",),
    "pyvrp": ("data/",),
    "sacrebleu": ("evaluation/",),
    "scipy": ("data/",),
    "sentencepiece": ("data/",),
    "shapely": ("data/", "evaluation/"),
    "sklearn": ("data/",),
}


def imported_modules(path):
    """Dotted names that a file imports, those inside functions too; `from a import b` gives `a.b`."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: import by the full name, not relative to the file."
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def folder_of(path):
    first, *rest = path.relative_to(ROOT).parts
    return first if rest else None


def relative(path):
    return path.relative_to(ROOT).as_posix()


def each_file(files):
    return pytest.mark.parametrize("path", files, ids=relative)


@each_file([path for path in FILES if folder_of(path)])
def test_imports_point_one_way(path):
    folder = folder_of(path)
    ours = {name.split(".")[1] for name in imported_modules(path) if name.startswith("keras_attention.")}
    wrong = ours - ALLOWED[folder] - {folder} - FOR_ALL
    assert not wrong, f"{folder} must not import {sorted(wrong)}; allowed: {sorted(ALLOWED[folder])}."


@each_file(FILES)
def test_heavy_libraries_are_imported_only_where_they_belong(path):
    for name in imported_modules(path):
        allowed = HEAVY.get(name.split(".")[0], ("",))
        assert relative(path).startswith(allowed), f"{name} is imported outside {allowed}."


@each_file(FILES)
def test_private_keras_modules_are_never_named(path):
    assert "keras.src" not in path.read_text(encoding="utf-8")


def names_of_init(path):
    """`(names in __all__, names imported from the folder itself, other names of ours, functions)` of an `__init__.py`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    folder = ".".join(("keras_attention", *path.parent.relative_to(ROOT).parts))
    names, imports, others, functions = [], [], [], []
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("keras_attention."):
            is_own = f"{node.module}.".startswith(f"{folder}.")
            (imports if is_own else others).extend(alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef):
            functions.append(node.name)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names = ast.literal_eval(node.value)
    return names, imports, others, functions


@each_file([path for path in FILES if path.name == "__init__.py" and path.parent != ROOT])
def test_all_lists_what_an_init_imports(path):
    names, imports, others, functions = names_of_init(path)
    moved = set(names).intersection(others)  # names of an earlier version, which stand in another folder now
    assert sorted(names) == sorted([*imports, *functions, *moved])
    assert names == sorted(names)


def test_all_of_the_package_lists_its_folders():
    names, imports, *_ = names_of_init(ROOT / "__init__.py")
    imports.remove("backends")  # imported for its check only
    assert sorted(names) == sorted([*imports, "__version__", "data", "serving", "visualization"])
    assert names == sorted(names)


@pytest.mark.parametrize("package", ["alignments", "layers", "masks", "models", "positions", "scores"])
def test_a_class_stands_in_the_file_of_its_name(package):
    module = getattr(keras_attention, package)
    suffix = "score" if package == "scores" else ""
    for kind in vars(module).values():
        if isinstance(kind, type):
            name = kind.__name__.lower()
            *folder, file = kind.__module__.split(".")
            assert folder[:2] == ["keras_attention", package]
            assert file.replace("_", "") == (name.removesuffix(suffix) or name)


REPORT = """
import json, sys
import keras
before = set(sys.modules)
import keras_attention
packages = [getattr(keras_attention, name) for name in json.loads(sys.argv[1])]
classes = [(name, vars(package)[name]) for package in packages for name in package.__all__]
is_saved = lambda kind: isinstance(kind, type) and not issubclass(kind, keras.callbacks.Callback)
print(json.dumps({
    "loaded": sorted(set(sys.modules) - before),
    "unregistered": [
        name for name, kind in classes
        if is_saved(kind) and keras.saving.get_registered_object(keras.saving.get_registered_name(kind)) is not kind
    ],
}))
"""


@pytest.fixture(scope="module")
def imported():
    """What `import keras_attention` loads beyond `import keras`, and what it leaves unregistered, in a new process."""
    command = [sys.executable, "-c", REPORT, json.dumps(PACKAGES)]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


@pytest.mark.parametrize("library", sorted(set(HEAVY) - {"tensorflow"}))
def test_importing_the_package_does_not_load(library, imported):
    assert library not in imported["loaded"]


def test_importing_the_package_registers_every_public_class(imported):
    interfaces = {"Alignment", "Baseline", "Estimator", "PositionScheme", "Score"}
    in_no_model = {"BeamSearch", "Recorder", "Sample"}
    assert set(imported["unregistered"]) <= interfaces | in_no_model
