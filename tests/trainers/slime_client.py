"""slime's reward client against a server: prints the rewards of some samples as one line of JSON.

    python slime_client.py URL [FOLDER_WITH_SLIME]

With a checkout of slime its own ``slime/rollout/rm_hub/__init__.py`` is loaded, its siblings stubbed. slime is not on
PyPI; without a checkout :func:`remote_rm` below does the same on the wire: one POST per sample, the URL as given, the
JSON of the reply as the reward, every failure tried again with growing pauses.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

TRIES = 10


@dataclass
class Sample:
    """The fields of slime's ``Sample`` that its reward client looks at."""

    prompt: Any
    response: str
    label: Any
    metadata: dict[str, Any] = field(default_factory=dict)
    custom_rm_path: str | None = None


SAMPLES = [
    Sample("What is 2 + 2?", "So it is \\boxed{4}<|im_end|>", "4"),
    Sample("What is 2 + 2?", "So it is \\boxed{5}<|im_end|>", "4"),
    Sample([{"role": "user", "content": "A half?"}], "\\boxed{\\frac{1}{2}}", "0.5"),
    Sample("What is 2 + 2?", "", "4"),
    *(Sample(f"What is {i} + {i}?", f"\\boxed{{{2 * i}}}", str(2 * i)) for i in range(96)),
]


class PlainClient:
    """What slime does on the wire."""

    def __init__(self) -> None:
        self._session: aiohttp.ClientSession | None = None

    def _get_shared_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=64)
            self._session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=120))
        return self._session

    async def remote_rm(self, args: Any, sample: Sample) -> Any:
        payload = {"prompt": sample.prompt, "response": sample.response, "label": sample.label}
        for attempt in range(TRIES):
            try:
                async with self._get_shared_session().post(args.rm_url, json=payload) as reply:
                    reply.raise_for_status()
                    return await reply.json()
            except (aiohttp.ClientError, TimeoutError, ValueError):
                if attempt + 1 == TRIES:
                    raise
                await asyncio.sleep(min(2**attempt, 30))
        return None

    async def batched_async_rm(self, args: Any, samples: list[Sample]) -> list[Any]:
        return await asyncio.gather(*(self.remote_rm(args, sample) for sample in samples))


def load_slime(folder: Path) -> Any:
    nothing = {
        "slime.utils.misc": "load_function",
        "slime.rollout.rm_hub.deepscaler": "get_deepscaler_rule_based_reward",
        "slime.rollout.rm_hub.f1": "f1_score",
        "slime.rollout.rm_hub.gpqa": "compute_gpqa_reward",
        "slime.rollout.rm_hub.math_dapo_utils": "compute_score",
    }
    for package in ("slime", "slime.utils", "slime.rollout"):
        sys.modules[package] = types.ModuleType(package)
    for name, member in nothing.items():
        sys.modules[name] = types.ModuleType(name)
        setattr(sys.modules[name], member, None)
    maths = sys.modules["slime.rollout.rm_hub.math_utils"] = types.ModuleType("slime.rollout.rm_hub.math_utils")
    maths.extract_answer = maths.grade_answer_verl = None  # type: ignore[attr-defined]
    sys.modules["slime.utils.types"] = types.ModuleType("slime.utils.types")
    sys.modules["slime.utils.types"].Sample = Sample  # type: ignore[attr-defined]
    path = folder / "slime/rollout/rm_hub/__init__.py"
    spec = importlib.util.spec_from_file_location("slime.rollout.rm_hub", path, submodule_search_locations=[])
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def main() -> None:
    url = f"{sys.argv[1]}/compat/slime?verifier=math"
    hub = load_slime(Path(sys.argv[2])) if len(sys.argv) > 2 else PlainClient()

    def args(query: str = "") -> Any:
        return types.SimpleNamespace(rm_url=url + query, rm_type="remote_rm", custom_rm_path=None)

    numbers = await hub.batched_async_rm(args(), SAMPLES)
    dicts = await hub.batched_async_rm(args("&reply=dict&reward_key=score"), SAMPLES[:2])
    unusable = await hub.batched_async_rm(args("&on_error=zero&reply=dict"), [Sample("p", "\\boxed{1}", "")])
    async with hub._get_shared_session().post(url, json=[]) as reply:
        nothing = await reply.json()
    await hub._get_shared_session().close()
    print(json.dumps({"numbers": numbers, "dicts": dicts, "unusable": unusable, "nothing": nothing}))


if __name__ == "__main__":
    asyncio.run(main())
