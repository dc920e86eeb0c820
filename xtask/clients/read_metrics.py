"""Reads /metrics of a running server with the reference parser of the OpenMetrics format."""

import sys
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families

EXPECTED = {
    "warpgauge_build": "info",
    "warpgauge_uptime_seconds": "gauge",
    "warpgauge_stage_duration_seconds": "histogram",
    "warpgauge_http_request_duration_seconds": "histogram",
    "warpgauge_http_responses": "counter",
    "warpgauge_jobs_ended": "counter",
    "warpgauge_device_busy_seconds": "counter",
    "warpgauge_requests_rejected": "counter",
}


def main(url: str) -> None:
    with urllib.request.urlopen(f"{url}/health"):
        pass
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        kind = answer.headers["content-type"]
        text = answer.read().decode()
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8", kind
    families = {family.name: family for family in text_string_to_metric_families(text)}
    for name, expected in EXPECTED.items():
        assert families[name].type == expected, (name, families[name].type)
    requests = families["warpgauge_http_request_duration_seconds"].samples
    health = [
        sample.value
        for sample in requests
        if sample.name.endswith("_count") and sample.labels.get("route") == "/health"
    ]
    assert health and health[0] >= 1, requests
    print(f"{len(families)} families, {sum(len(f.samples) for f in families.values())} samples")


if __name__ == "__main__":
    main(sys.argv[1])
