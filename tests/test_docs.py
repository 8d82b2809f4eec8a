"""The pages for readers: their Python runs as written, their links lead somewhere, their commands are those of the examples."""

import ast
import pathlib
import re

import keras
import pytest
from literals import literal, plain
from small_text import write_small_text

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [*(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")), *sorted(ROOT.glob("docs/*.md"))]
TEXTS = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in PAGES}
CODE = {name: re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL) for name, text in TEXTS.items()}

# The guides read data and export with TensorFlow.
IS_TENSORFLOW = keras.backend.backend() == "tensorflow"

# What a page finds where its reader stands; the example that it names writes the same.
BEFORE = {"docs/translation.md": lambda folder: write_small_text(folder / "translation" / "smoke" / "text")}


def each_page(names):
    return pytest.mark.parametrize("name", names)


def run(code, names):
    """Executes code, and compares each value with the literal behind it: `weights.shape  # (2, 3, 5)`."""
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if not isinstance(node, ast.Expr):
            exec(compile(ast.Module([node], []), "<page>", "exec"), names)
            continue
        value = eval(compile(ast.Expression(node.value), "<page>", "eval"), names)
        _, _, comment = lines[node.end_lineno - 1][node.end_col_offset :].partition("# ")
        expected = literal(comment)
        if expected is not None:
            assert plain(value) == plain(expected), ast.unparse(node)


@each_page([name for name, blocks in CODE.items() if blocks and (IS_TENSORFLOW or name == "README.md")])
def test_the_python_of_a_page_runs_and_gives_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BEFORE.get(name, lambda folder: None)(tmp_path)
    run("\n".join(CODE[name]), {})


def anchors(text):
    """`## Bad rows, and why`  ->  `bad-rows-and-why`"""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text, flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@each_page(TEXTS)
def test_every_link_of_a_page_leads_to_a_file_and_a_heading(name):
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[name]):
        assert "://" not in target, f"{target}: a page has links inside the project only"
        path, _, anchor = target.partition("#")
        file = (ROOT / name).parent / path if path else ROOT / name
        assert file.exists(), target
        assert not anchor or anchor in anchors(file.read_text(encoding="utf-8")), target


@each_page(TEXTS)
def test_every_command_of_a_page_names_a_program_and_its_options(name):
    shared = (ROOT / "examples" / "command_line.py").read_text(encoding="utf-8")
    for program, options in re.findall(r"((?:examples|benchmarks)/\w+\.py)([^`\n|]*)", TEXTS[name]):
        source = (ROOT / program).read_text(encoding="utf-8")
        for option in re.findall(r"--[\w-]+", options):
            assert f'"{option}"' in source + shared, f"{program} {option}"


def test_the_front_page_is_a_page_and_has_the_two_commands():
    assert len(TEXTS["README.md"].splitlines()) <= 130
    start, tests = re.findall(r"```bash\n(python3 -m venv .*)\n```", TEXTS["README.md"])
    assert start.endswith("python examples/translate_dates.py")
    assert f"<!-- test command -->\n```bash\n{tests}\n" in TEXTS["README.md"]  # where .ci/run looks for it


def test_every_guide_stands_in_the_index():
    guides = {path.name for path in ROOT.glob("docs/*.md")} - {"README.md"}
    assert guides <= set(re.findall(r"\]\((\w+\.md)", TEXTS["docs/README.md"]))


def test_the_table_of_folders_lists_those_of_the_package():
    rows = re.findall(r"^\| `(\w+)` \|", TEXTS["CONTRIBUTING.md"], flags=re.MULTILINE)
    assert sorted(rows) == sorted(path.parent.name for path in ROOT.glob("keras_attention/*/__init__.py"))
