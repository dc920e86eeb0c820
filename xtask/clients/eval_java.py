"""Generates a Java client with openapi-generator, compiles it, and evaluates a kernel through it.

    python eval_java.py SPEC SERVER

SPEC is what `warpgauge openapi --client` prints, SERVER a URL. Needs openapi-generator-cli and a JDK on the PATH.
What the client needs besides, Jackson, is in the generator's own archive; only the annotation with
which it marks generated code, which no JDK has any more, comes from elsewhere.
"""

import importlib.resources
import pathlib
import subprocess
import sys
import tempfile

# Debian, Ubuntu: libgeronimo-annotation-1.3-spec-java.
ANNOTATIONS = pathlib.Path("/usr/share/java/geronimo-annotation-1.3-spec.jar")
PROGRAM = pathlib.Path(__file__).with_name("EvaluateKernel.java")


def run(what: str, *command: object) -> None:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{what} failed:\n{done.stdout}{done.stderr}")


def main(spec: str, server: str) -> None:
    if not ANNOTATIONS.is_file():
        sys.exit(f"{ANNOTATIONS} is missing: install libgeronimo-annotation-1.3-spec-java")
    archive = importlib.resources.files("openapi_generator_cli") / "openapi-generator.jar"
    with tempfile.TemporaryDirectory() as folder:
        client, classes = pathlib.Path(folder) / "client", pathlib.Path(folder) / "classes"
        run("the generator", "openapi-generator-cli", "generate", "-g", "java", "--library", "native",
            "-i", spec, "-o", client, "--invoker-package", "warpgauge.client",
            "--api-package", "warpgauge.client.api", "--model-package", "warpgauge.client.model",
            "--additional-properties", "openApiNullable=false", "--global-property",
            "apis,models,supportingFiles,apiTests=false,modelTests=false,apiDocs=false,modelDocs=false")
        sources = (client / "src/main/java").rglob("*.java")
        run("the compiler", "javac", "-proc:none", "-nowarn", "-encoding", "UTF-8", "-d", classes,
            "-cp", f"{archive}:{ANNOTATIONS}", PROGRAM, *sources)
        program = ["java", "-cp", f"{classes}:{archive}", PROGRAM.stem, spec, server]
        subprocess.run(program, check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
