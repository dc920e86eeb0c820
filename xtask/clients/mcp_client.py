"""Uses the server as an agent does, through the official SDK of the Model Context Protocol.

    python mcp_client.py SPEC PROGRAM DATA SERVER

SPEC is what `warpgauge openapi --client` prints, PROGRAM warpgauge itself, DATA a data directory for it, SERVER a URL. Over HTTP at SERVER/mcp, and over
standard input and output: `warpgauge mcp`, on this machine and at SERVER. Each in the protocol's newest version
and in the older ones, which have sessions.
"""

import json
import pathlib
import sys

import anyio
import jsonschema
from mcp import Client, MCPError, StdioServerParameters

# Longest time for all of it, seconds.
PATIENCE_S = 300

TOOLS = ["evaluate_kernel", "compare_kernels", "profile_kernel", "get_job", "list_devices", "import_report"]


class Agent:
    """What an agent does, at one end of one transport."""

    def __init__(self, client: Client, contract: dict, comparison: dict) -> None:
        self.client, self.contract, self.comparison = client, contract, comparison
        self.schemas = {}

    async def everything(self) -> None:
        tools = (await self.client.list_tools()).tools
        assert [tool.name for tool in tools] == TOOLS, tools
        self.schemas = {tool.name: tool for tool in tools}
        await self.evaluate()
        await self.compare()
        await self.profile()
        await self.refusals()
        await self.imports()
        await self.cancel()
        devices = await self.call("list_devices", {})
        assert devices["devices"][0]["device"]["kind"] == "emulator", devices

    async def call(self, tool: str, arguments: dict, **more) -> dict:
        """The answer of a tool, checked against its schemas."""
        jsonschema.validate(arguments, self.schemas[tool].input_schema)
        result = await self.client.call_tool(tool, arguments, **more)
        jsonschema.validate(result.structured_content, self.schemas[tool].output_schema)
        assert len(result.content[0].text) < 5000, len(result.content[0].text)
        return result.structured_content | {
            "text": [block.text for block in result.content], "failed": result.is_error}

    async def evaluate(self) -> None:
        told = []

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            told.append((progress, message))

        answer = await self.call(
            "evaluate_kernel", {"request": self.contract}, progress_callback=on_progress)
        assert answer["verdict"] == "correct" and not answer["failed"], answer
        assert answer["text"][0].startswith("CORRECT: square"), answer["text"]
        assert "emulated device" in answer["facts"][0], answer["facts"]
        assert answer["kernel_exec_result"]["correctness"] is True, answer
        numbers = [progress for progress, _ in told]
        assert told and numbers == sorted(set(numbers)), told

        job = answer["job_id"]
        again = await self.call("get_job", {"job_id": job, "read": "ptx"})
        assert again["verdict"] == "correct" and ".visible .entry" in again["text"][1], again["text"]
        templates = (await self.client.list_resource_templates()).resource_templates
        assert len(templates) == 2, templates
        report = await self.client.read_resource(answer["resources"][0])
        report = json.loads(report.contents[0].text)
        assert report["job_id"] == job and report["result"]["status"] == "success", report

        wrong = json.loads(json.dumps(self.contract))
        wrong["kernel"]["source_code"] = wrong["kernel"]["source_code"].replace("x[i] * x[i]", "x[i] + 1.0f")
        answer = await self.call("evaluate_kernel", {"request": wrong})
        assert answer["verdict"] == "wrong" and "expected" in answer["facts"][0], answer
        broken = wrong | {"kernel": wrong["kernel"] | {"source_code": "__global__ void square( {"}}
        answer = await self.call("evaluate_kernel", {"contract_yaml": json.dumps(broken)})
        assert answer["verdict"] == "not_compiled" and not answer["failed"], answer
        assert answer["facts"][0].startswith("kernel.cu:1:"), answer

    async def compare(self) -> None:
        answer = await self.call("compare_kernels", {"request": self.comparison})
        assert answer["verdict"] == "less_work", answer
        assert answer["candidates"][0]["name"] == "custom", answer

    async def profile(self) -> None:
        answer = await self.call("profile_kernel", {"request": self.contract, "label": "profiled"})
        assert answer["verdict"] == "correct", answer
        assert any("limits it" in fact or "bound by" in fact for fact in answer["facts"]), answer

    async def imports(self) -> None:
        page = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","copy","%d"\n'
        answer = await self.call("import_report", {"content": page % 500, "against": page % 1000})
        assert answer["kind"] == "changes" and answer["kernels"][0]["time_ratio"] == 0.5, answer
        answer = await self.call("import_report", {"content": "SQLite format 3"})
        assert answer["failed"] and answer["error"]["path"] == "content", answer

    async def refusals(self) -> None:
        misspelt = {"kernel": self.contract["kernel"] | {"kernel_typ": "cuda"}}
        answer = await self.call("evaluate_kernel", {"request": misspelt})
        assert answer["failed"] and answer["verdict"] == "refused", answer
        assert answer["error"]["path"] == "kernel.kernel_typ", answer
        answer = await self.call("get_job", {"job_id": "nonsense"})
        assert answer["failed"] and "no job nonsense" in answer["summary"], answer
        try:
            await self.client.read_resource("warpgauge://jobs/nonsense/report")
        except MCPError as error:
            assert "no job nonsense" in error.error.message, error
        else:
            raise AssertionError("a job that does not exist was read")

    async def cancel(self) -> None:
        """A call that is cancelled ends its job, which another call then says."""
        endless = json.loads(json.dumps(self.contract))
        source = endless["kernel"]["source_code"]
        endless["kernel"]["source_code"] = source.replace(
            "if (i < n)", "for (volatile int spin = 0; spin >= 0; ) {} if (i < n)")
        endless["timeout"] = 120
        # By its key the same request is the same job, so that its id can be had before its end.
        key = f"cancelled-{id(self)}-{anyio.current_time()}"
        arguments = {"request": endless, "idempotency_key": key}
        started = await self.call("evaluate_kernel", arguments | {"wait_s": 0.5})
        assert started["verdict"] == "running", started
        told = anyio.Event()

        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            if message.startswith("running"):
                told.set()

        async with anyio.create_task_group() as group:
            group.start_soon(lambda: self.client.call_tool(
                "evaluate_kernel", arguments, progress_callback=on_progress))
            await told.wait()
            group.cancel_scope.cancel()
        ended = await self.call("get_job", {"job_id": started["job_id"], "wait_s": 60})
        assert ended["state"] == "cancelled" and ended["verdict"] == "cancelled", ended


async def main(spec: str, program: str, data: str, server: str) -> None:
    paths = json.loads(pathlib.Path(spec).read_text())["paths"]

    comparison = paths["/compare"]["post"]["requestBody"]["content"]["application/json"]["example"]
    kernel = comparison["ref_kernel"]
    simple = {field: value for field, value in kernel.items() if field != "io"}
    contract = {"kernel": kernel, "expected": {"y": {"kernel": simple}}, "num_trials": 5}
    with anyio.fail_after(PATIENCE_S):
        here = StdioServerParameters(
            command=program, args=["mcp", "--device", "emulator"], env={"WARPGAUGE_DATA_DIR": data})
        there = StdioServerParameters(command=program, args=["mcp", "--server", server])
        for name, at in [("HTTP", f"{server}/mcp"), ("stdio", here), ("stdio, at a server", there)]:
            for mode in ["auto", "legacy"]:
                async with Client(at, mode=mode, read_timeout_seconds=120) as client:
                    agent = Agent(client, contract, comparison)
                    await agent.everything()
                    print(f"{name}: {client.server_info.name}, protocol {client.protocol_version}")


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:])
