#!/usr/bin/env bash
# Installs warpgauge on a runner, and adds it to the path of the steps that follow.
#
# From the environment: INSTALL (a wheel or tarball: a path or an https:// address; empty: what the path has, or else a
# build of these sources), SHA256 (of that file; an address needs it), SOURCES (this repository), RUNNER_TEMP, GITHUB_PATH.
set -euo pipefail

fail() {
    printf '::error title=warpgauge::%s\n' "$1"
    exit 1
}

if [ -z "$INSTALL" ]; then
    if command -v warpgauge >/dev/null; then
        exit 0
    fi
    command -v cargo >/dev/null ||
        fail 'warpgauge is not on the PATH, and there is no cargo to build it: give the input `install` a wheel or a tarball'
    built="$RUNNER_TEMP/warpgauge-build"
    cargo build --release --locked --manifest-path "$SOURCES/Cargo.toml" --target-dir "$built" \
        -p warpgauge -p warpgauge-emulator
    printf '%s\n' "$built/release" >>"$GITHUB_PATH"
    exit 0
fi

place="$RUNNER_TEMP/warpgauge"
mkdir -p "$place"
case "$INSTALL" in
    https://*)
        [ -n "$SHA256" ] || fail 'a file of the network needs its SHA-256: give the input `sha256`'
        name=${INSTALL%%[?#]*}
        file="$place/${name##*/}"
        curl --fail --silent --show-error --location --proto '=https' --output "$file" "$INSTALL" ||
            fail "$INSTALL cannot be fetched"
        ;;
    http://*) fail "$INSTALL: only https:// is fetched" ;;
    *) file=$INSTALL ;;
esac
[ -f "$file" ] || fail "there is no file $file (input \`install\`)"
if [ -n "$SHA256" ]; then
    printf '%s  %s\n' "$SHA256" "$file" | sha256sum --check --status ||
        fail "$file has not the SHA-256 that the input \`sha256\` gives"
fi
case "$file" in
    *.whl)
        python3 -m venv "$place/venv" || fail 'a wheel needs python3 with venv'
        "$place/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$file"
        directory="$place/venv/bin"
        ;;
    *.tar.gz)
        mkdir -p "$place/program"
        tar --extract --gzip --no-same-owner --strip-components 1 --directory "$place/program" --file "$file"
        directory="$place/program"
        ;;
    *) fail "$file is neither a wheel (.whl) nor a tarball (.tar.gz)" ;;
esac
"$directory/warpgauge" --version || fail "the program of $file does not start on this runner"
printf '%s\n' "$directory" >>"$GITHUB_PATH"
