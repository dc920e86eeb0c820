"""Checks the action and the snippets of the documentation by the schemas of GitHub and GitLab.

  python ci_files.py DIRECTORY

The schemas are those that check-jsonschema carries. Other YAML of the documentation must be YAML.
"""

import pathlib
import re
import subprocess
import sys
import textwrap

from ruamel.yaml import YAML

ROOT = pathlib.Path(__file__).resolve().parents[2]

# A snippet says in its first line what file it is.
SCHEMAS = {
    "# .github/workflows/": "vendor.github-workflows",
    "# .gitlab-ci.yml": "vendor.gitlab-ci",
}

BLOCK = re.compile(r"^( *)```yaml\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def check(schema, path):
    subprocess.check_call(["check-jsonschema", "--builtin-schema", schema, path])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: ci_files.py DIRECTORY")
    directory = pathlib.Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    check("vendor.github-actions", ROOT / "action.yml")
    found = dict.fromkeys(SCHEMAS, 0)
    blocks = BLOCK.findall((ROOT / "docs/gate.md").read_text(encoding="utf-8"))
    for number, (_, text) in enumerate(blocks):
        text = textwrap.dedent(text)
        path = directory / f"{number}.yml"
        path.write_text(text, encoding="utf-8")
        YAML(typ="safe").load(text)
        for start, schema in SCHEMAS.items():
            if text.startswith(start):
                check(schema, path)
                found[start] += 1
    assert all(found.values()), f"the documentation has no such snippet: {found}"
    print(f"the action and {sum(found.values())} snippets are what GitHub and GitLab take")


if __name__ == "__main__":
    main()
