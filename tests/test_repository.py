"""The files around the package (citation, security, workflows, templates, hooks) parse and agree with each other."""

import re
import tomllib
from pathlib import Path

import pytest

import labelwise

ROOT = Path(__file__).parents[1]
YAML_FILES = (
    "CITATION.cff",
    ".pre-commit-config.yaml",
    ".github/workflows/ci.yml",
    ".github/workflows/release.yml",
    ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/config.yml",
    ".github/ISSUE_TEMPLATE/idea.yml",
)
pytestmark = pytest.mark.skipif(not (ROOT / ".github").is_dir(), reason="the repository is not beside the tests")


def parsed(name):
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("name", YAML_FILES)
def test_yaml_parses(name):
    assert isinstance(parsed(name), dict)


def test_all_yaml_files_are_tested():
    found = [*ROOT.glob("*.cff"), *ROOT.glob(".*.y*ml"), *(ROOT / ".github").rglob("*.y*ml")]
    assert {file.relative_to(ROOT).as_posix() for file in found} == set(YAML_FILES)


def test_the_citation_names_this_version_and_the_paper(project):
    citation = parsed("CITATION.cff")
    assert citation["version"] == labelwise.__version__
    assert citation["license"] == project["license"]
    assert citation["repository-code"] == project["urls"]["Source"]
    (paper,) = citation["references"]
    assert paper["title"] == "Taming Pretrained Transformers for Extreme Multi-label Text Classification"
    assert [author["family-names"] for author in paper["authors"]] == ["Chang", "Yu", "Zhong", "Yang", "Dhillon"]


def test_every_python_that_is_promised_is_tested(project):
    jobs = parsed(".github/workflows/ci.yml")["jobs"]
    promised = [found[1] for line in project["classifiers"] if (found := re.fullmatch(r".*Python :: (3\.\d+)", line))]
    for name in ("quick", "wheel"):
        matrix = jobs[name]["strategy"]["matrix"]
        assert matrix["python"] == promised
        assert [system.split("-")[0] for system in matrix["os"]] == ["ubuntu", "macos", "windows"]


def test_workflows_run_targets_and_extras_that_exist(project):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([\w-]+):", makefile, re.MULTILINE))
    files = (
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        ".pre-commit-config.yaml",
        ".github/pull_request_template.md",
    )
    text = "\n".join((ROOT / name).read_text(encoding="utf-8") for name in files)
    used = {word for line in re.findall(r"\bmake ([a-z][a-z -]*[a-z])", text) for word in line.split()}
    assert used
    assert used <= targets
    extras = {name for line in re.findall(r'-e "\.\[([\w,]+)\]"', text) for name in line.split(",")}
    assert extras <= project["optional-dependencies"].keys()


def test_a_release_is_published_by_a_person_without_a_token():
    workflow = parsed(".github/workflows/release.yml")
    assert workflow["permissions"] == {}
    jobs = workflow["jobs"]
    publish = jobs["publish"]
    assert publish["environment"] == "pypi"
    assert publish["permissions"] == {"id-token": "write"}
    needed, waiting = set(), ["publish"]
    while waiting:
        needs = jobs[waiting.pop()].get("needs", [])
        waiting += [needs] if isinstance(needs, str) else needs
        needed |= set(waiting)
    assert needed == {"attest", "test", "build", "wheel"}
    for name, job in jobs.items():
        assert ("id-token" in job["permissions"]) == (name in ("attest", "publish"))
        assert all("@" in step["uses"] for step in job["steps"] if "uses" in step)
    assert "secrets." not in (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")


def test_hooks_use_the_ruff_of_the_constraints():
    (pinned,) = re.findall(r"^ruff==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.MULTILINE)
    (repo,) = [repo for repo in parsed(".pre-commit-config.yaml")["repos"] if "ruff" in repo["repo"]]
    assert repo["rev"] == f"v{pinned}"


def test_the_urls_of_the_project_are_of_one_place(project):
    home = project["urls"]["Homepage"]
    for name in ("SECURITY.md", "CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml"):
        for url in re.findall(r"https://github\.com/\S+?(?=[)\s])", (ROOT / name).read_text(encoding="utf-8")):
            assert url.startswith(home), name
    assert all(url.startswith(home) for url in project["urls"].values())


def test_no_file_names_a_path_of_one_machine():
    """Data outside of the repository are found by an option or a variable, never by a path of somebody's machine."""
    folders = ("src", "tests", "tools", "benchmarks", "examples", "docs", ".github")
    files = [*ROOT.glob("*.md"), *ROOT.glob("*.toml")]  # the Makefile has the default of LABELWISE_DATA
    files += [
        path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md", ".toml")
    ]
    own = re.compile(r"(?<![\w.])/(?:home|Users|root|work)/\w|\.\./shared\b(?!/[a-z]+-)")
    found = [path for path in files if path != Path(__file__) and own.search(path.read_text(encoding="utf-8"))]
    assert [path.relative_to(ROOT).as_posix() for path in found] == []


MADE_BY_RECIPES = {
    f"{folder}/{name}.py"
    for folder, name in (
        *(("src/labelwise/data/formats", "fasttext"), ("tests/data/formats", "test_fasttext")),
        *(("src/labelwise/engines", "serial"), ("tests/engines", "test_serial")),
    )
}
"""Files that a reader of CONTRIBUTING.md is told to make."""


def test_every_python_file_that_a_page_names_exists():
    folders = ("src", "tests", "docs", "benchmarks", "tools", "examples")
    files = {f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in (ROOT / folder).rglob("*.py")}
    files |= {f"/{path.name}" for path in ROOT.glob("*.py")}
    named = re.compile(r"(?<![\w./:-])((?:[\w.-]+/)*[\w-]+\.py)\b")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
        names = set(named.findall(page.read_text(encoding="utf-8"))) - MADE_BY_RECIPES
        missing = [name for name in names if not any(file.endswith(f"/{name}") for file in files)]
        assert missing == [], page.name


def test_tests_that_pages_name_exist():
    named = {
        (path, *test)
        for path in (ROOT / "docs").rglob("*.md")
        for test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", path.read_text(encoding="utf-8"))
    }
    assert len(named) > 30
    missing = [
        (path.name, file, name)
        for path, file, name in sorted(named)
        if not (ROOT / file).is_file() or (name and f"def {name}(" not in (ROOT / file).read_text(encoding="utf-8"))
    ]
    assert missing == []
