#!/usr/bin/env python3
"""What evaluations with verified launches take, for one or several builds of the program.

    verified_launches.py NAME=PROGRAM… [--load SECONDS] [--load-elements MI,…] [--clients N] [--rounds N] [--device WHICH]

Starts `PROGRAM serve` for each, one after the other, and sends sums of two vectors from one caller on the
same machine: of 1 Mi and 16 Mi elements, with and without a reference kernel, 20 and 100 launches, sealed
or not. Each is sent four times or more, so that everything is compiled and warm; figures are medians of
the evaluations from the fourth on. Then `--clients` callers send the sum of 1 Mi elements (or of what
`--load-elements` says), 100 launches, for so many seconds. Tables are printed as Markdown; `--out FILE` has
every stage's time as well.

Needs nothing but Python.
"""
import argparse
import http.client
import json
import statistics
import subprocess
import sys
import threading
import time

WARM = 3

SOURCE = """extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = %s;
    }
}
"""


def kernel(expression):
    return {"kernel_type": "cuda", "source_code": SOURCE % expression, "metadata": {"kernel_name": "vector_add"}}


def request(elements, launches, reference=True, isolation=None):
    def tensor(name, role, seed=None):
        spec = {"shape": [elements], "dtype": "float32"}
        if seed is not None:
            spec["init"] = {"kind": "randn", "seed": seed}
        return {"name": name, "type": "tensor", "role": role, "tensor_spec": spec}
    body = {
        "kernel": kernel("a[i] + b[i]") | {"io": {
            "args": [tensor("a", "input", 1), tensor("b", "input", 2), tensor("c", "output"),
                     {"name": "n", "type": "int", "value": elements}],
            "launch": {"grid": {"x": "ceil_div(n, 256)"}, "block": {"x": 256}}}},
        "num_trials": launches,
    }
    if reference:
        body["expected"] = {"c": {"kernel": kernel("(float)((double)a[i] + (double)b[i])")}}
    if isolation:
        body["isolation"] = isolation
    return body


class Server:
    """A server of its own, on a free port."""

    def __init__(self, program, device):
        arguments = [program, "serve", "--host", "127.0.0.1", "--port", "0", "--device", device]
        self.process = subprocess.Popen(
            arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, bufsize=1)
        self.place, said = None, []
        for line in self.process.stdout:
            said.append(line)
            if "http://" in line:
                self.place = line.split("http://", 1)[1].split("/")[0].split()[0].rstrip(".,;")
                break
        if self.place is None:
            sys.exit("the server did not say where it listens:\n" + "".join(said))
        # What else it says must not fill the pipe.
        threading.Thread(target=lambda: [None for _ in self.process.stdout], daemon=True).start()

    def connect(self):
        return http.client.HTTPConnection(self.place, timeout=600)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def send(connection, bytes_):
    began = time.perf_counter()
    connection.request("POST", "/evaluate", bytes_, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    return answer.status, text, (time.perf_counter() - began) * 1e3


def evaluate(server, body, rounds):
    connection, bytes_, taken = server.connect(), json.dumps(body).encode(), []
    for _ in range(WARM + rounds):
        status, text, ms = send(connection, bytes_)
        report = json.loads(text)
        expected = "correct" if "expected" in body else "not_checked"
        if status != 200 or report.get("verdict") != expected:
            sys.exit(f"HTTP {status}, verdict {report.get('verdict')}: {text[:2000]}")
        timings = report["timings"]
        taken.append({
            "round trip": ms, "server": timings["total"], "busy": timings["device_busy"],
            "verifying": timings.get("verify", 0.0),
            "median_us": report["measurement"]["summary"]["median"] * 1e3,
        } | {f"stage {key}": value for key, value in timings.items() if isinstance(value, (int, float))})
    last = taken[WARM:]
    return {key: statistics.median(one.get(key, 0.0) for one in last) for key in last[0]}


def load(server, body, clients, seconds):
    bytes_, lock = json.dumps(body).encode(), threading.Lock()
    verdict = b'"verdict":"correct"' if "expected" in body else b'"verdict":"not_checked"'
    done = {"count": 0, "busy": 0.0, "other": 0}
    began = time.perf_counter()

    def client():
        connection = server.connect()
        while time.perf_counter() - began < seconds:
            status, text, _ = send(connection, bytes_)
            if status == 429:
                time.sleep(0.1)
                continue
            # Without reading the whole report: this process shares the machine with the server.
            at = text.find(b'"device_busy":')
            busy = float(text[at + 14:at + 40].split(b",")[0].split(b"}")[0]) if at > 0 else 0.0
            with lock:
                if status == 200 and verdict in text:
                    done["count"] += 1
                    done["busy"] += busy
                else:
                    done["other"] += 1

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done, time.perf_counter() - began


CASES = [
    ("1 Mi, 20 (all verified)", 1 << 20, 20, True, None),
    ("1 Mi, 20, no expectation", 1 << 20, 20, False, None),
    ("1 Mi, 100", 1 << 20, 100, True, None),
    ("1 Mi, 100, no expectation", 1 << 20, 100, False, None),
    ("16 Mi, 20 (all verified)", 16 << 20, 20, True, None),
    ("16 Mi, 20, no expectation", 16 << 20, 20, False, None),
    ("16 Mi, 100", 16 << 20, 100, True, None),
    ("1 Mi, 100, all sealed", 1 << 20, 100, True, "sealed"),
    ("1 Mi, 100, all sealed, no expectation", 1 << 20, 100, False, "sealed"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="+", metavar="NAME=PROGRAM")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--load", type=float, default=10.0)
    parser.add_argument("--load-elements", default="1", metavar="MI,…")
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--out")
    options = parser.parse_args()
    kept = []
    for given in options.programs:
        name, _, program = given.rpartition("=")
        server = Server(program, options.device)
        print(f"\n{name}\n\n| elements, launches | round trip | in the server | of it device-busy | verifying |"
              " median |\n| --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
        try:
            for label, elements, launches, reference, isolation in CASES:
                figures = evaluate(server, request(elements, launches, reference, isolation), options.rounds)
                kept.append({"build": name, "case": label} | figures)
                print(f"| {label} | {figures['round trip']:.1f} ms | {figures['server']:.1f} ms | "
                      f"{figures['busy']:.1f} ms | {figures['verifying']:.1f} ms | "
                      f"{figures['median_us']:.2f} µs |", flush=True)
            loads = [(int(mi), reference) for mi in options.load_elements.split(",")
                     for reference in (False, True) if options.load > 0]
            for mi, reference in loads:
                body = request(mi << 20, 100, reference)
                done, seconds = load(server, body, options.clients, options.load)
                rate, each = done["count"] / seconds, done["busy"] / max(done["count"], 1)
                share = done["busy"] / seconds / 10
                kept.append({"build": name, "load": reference, "elements": mi << 20, "rate": rate, "busy": each,
                             "share": share})
                what = "with a reference" if reference else "no expectation"
                print(f"\n{options.clients} callers, {mi} Mi, 100, {what}: {rate:.1f}/s, {each:.2f} ms device-busy "
                      f"each, {share:.1f} % of {seconds:.1f} s; other answers: {done['other']}", flush=True)
        finally:
            server.stop()
    if options.out:
        with open(options.out, "w") as file:
            json.dump(kept, file, indent=1)


if __name__ == "__main__":
    main()
