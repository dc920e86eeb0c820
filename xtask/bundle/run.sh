#!/usr/bin/env bash
# Runs the self-test, every example, the tests and the benchmark of this bundle on this machine.
# Needs a CUDA driver and NVRTC (for example a CUDA toolkit); no Rust.
#
#   ./run.sh [step…]     steps: machine self-test examples tests bench; default: all
#
# Logs and figures go to $OUT (default ./out). $DEVICE chooses the device (default auto).
set -uo pipefail
cd "$(dirname "$0")" || exit 1

OUT=${OUT:-$PWD/out}
DEVICE=${DEVICE:-auto}
mkdir -p "$OUT" || exit 1
# The user's own cache and settings stay as they are.
export WARPGAUGE_DATA_DIR=${WARPGAUGE_DATA_DIR:-$PWD/data}

failed=()
# step NAME COMMAND…: runs a command, keeps its output in $OUT/NAME.log, and goes on if it fails.
step() {
    local name=$1 start=$SECONDS status
    shift
    "$@" >"$OUT/$name.log" 2>&1
    status=$?
    printf '%-28s %s  %4d s\n' "$name" "$([ $status -eq 0 ] && echo ok || echo "FAILED ($status)")" \
        $((SECONDS - start))
    if [ $status -ne 0 ]; then
        failed+=("$name")
        tail -n 15 "$OUT/$name.log" | sed 's/^/    /'
    fi
    return $status
}

machine() {
    step machine sh -c 'uname -a; nvidia-smi; true'
    step toolchain ./warpgauge toolchain show
    step devices ./warpgauge devices
}

# image NAME KERNEL [OPTION…]: compiles selftest/NAME.cu for the device into $OUT/images.
image() {
    local name=$1 kernel=$2 extension=ptx
    shift 2
    mkdir -p "$OUT/images"
    step "image-$name" ./warpgauge --device "$DEVICE" compile "selftest/$name.cu" \
        --kernel-name "$kernel" "$@" -o "$OUT/images/$name" || return
    # A GPU gets machine code (ELF), the emulator PTX.
    head -c 4 "$OUT/images/$name" | grep -q ELF && extension=cubin
    mv "$OUT/images/$name" "$OUT/images/$name.$extension"
}

self_test() {
    local emulator=()
    rm -rf "$OUT/images"
    image support wg_write --compiler-option=--fmad=false
    image selftest st_nothing
    [ -f "$OUT/images/selftest.ptx" ] && emulator=(--emulator ./libwarpgauge_emulator.so)
    step self-test ./warpgauge __worker --self-test --images "$OUT/images" "${emulator[@]}"
    sed 's/^/    /' "$OUT/self-test.log"
}

examples() {
    local contract name
    for contract in kernels/*/contract.yaml; do
        name=$(basename "$(dirname "$contract")")
        case $name in
        torch_*)
            if ! ./warpgauge toolchain show --json | grep -Eq '"torch": ?\{'; then
                echo "    example-$name needs PyTorch"
                continue
            fi
            ;;
        esac
        step "example-$name" sh -c \
            './warpgauge --device "$2" eval "$1" && ./warpgauge --device "$2" eval "$1" --json >"$3"' \
            sh "$contract" "$DEVICE" "$OUT/example-$name.json"
    done
}

tests() {
    # What a test needs and this machine lacks, it writes there.
    local skipped=$OUT/skipped.txt
    : >"$skipped" || exit 1
    # The tests take the program and its files from here, not from where they were built.
    step tests env WARPGAUGE_BIN="$PWD/warpgauge" WARPGAUGE_TEST_ROOT="$PWD" \
        WARPGAUGE_TEST_DEVICE="$DEVICE" WARPGAUGE_TESTS_SKIPPED="$skipped" \
        ./it-tests --test-threads=4
    grep '^test result' "$OUT/tests.log" | sed 's/^/    /'
    ./xtask skipped "$skipped" | sed 's/^/    /'
}

bench() {
    step bench-service ./xtask bench service --program ./warpgauge --device "$DEVICE" \
        --out "$OUT/bench-service.json"
    grep '^|' "$OUT/bench-service.log" | sed 's/^/    /'
}

for name in "${@:-all}"; do
    case $name in
    all)
        machine
        self_test
        examples
        tests
        bench
        ;;
    machine | examples | tests | bench) "$name" ;;
    self-test) self_test ;;
    *)
        echo "unknown step: $name" >&2
        exit 2
        ;;
    esac
done

if [ ${#failed[@]} -gt 0 ]; then
    echo "failed: ${failed[*]}"
    exit 1
fi
echo "all steps passed"
