"""OpenRLHF's own reward client against a server: prints what its trainer would get, as one line of JSON.

    python openrlhf_client.py FOLDER_WITH_OPENRLHF URL

Two files of OpenRLHF are loaded by path, ``utils/agent.py`` (which sends the request) and
``trainer/ppo_utils/samples_generator.py`` (which makes tensors of the reply). Ray, vLLM and the rest of the package are
stubbed, as in OpenRLHF's own test of them; the tokenizer and the engine are small fakes that speak in characters.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import logging
import sys
import types
from pathlib import Path
from typing import Any

END = "<|im_end|>"
PROMPT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"
SAMPLES = [
    ("What is 2 + 2?", "So it is \\boxed{4}", "4", "math"),
    ("What is 2 + 3?", "So it is \\boxed{4}", "5", "math"),
    ("What is 1/2 of 1? \\boxed{7}", "\\boxed{\\frac{1}{2}}", "0.5", "math"),
    ("What is 2 + 2? Say \\boxed{4} or so.", "I do not know.", "4", "math"),
    ("Say yes.", "yes", {"reward_model": {"ground_truth": "yes"}, "data_source": "?"}, "exact_match"),
    ("What is 2 + 2?", "\\boxed{4}", "", "math"),
]


class Experience:
    """Stands for OpenRLHF's batch type: keeps what it is given."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields


class Characters:
    """A tokenizer whose tokens are characters, and the end token."""

    def __call__(self, text: str, **_: Any) -> dict[str, Any]:
        import torch

        return {"input_ids": torch.tensor([[ord(letter) for letter in text]])}

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        assert skip_special_tokens is False
        return "".join(chr(token) for token in tokens)


class Engine:
    """Says what it was told to."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    async def generate(self, prompt_token_ids: list[int], *_: Any, **__: Any) -> Any:
        tokens = [ord(letter) for letter in self.answer + END]
        output = types.SimpleNamespace(token_ids=tokens, finish_reason="stop", logprobs=None)
        return types.SimpleNamespace(outputs=[output])


def stub(name: str, **members: Any) -> None:
    module = types.ModuleType(name)
    module.__dict__.update(members)
    module.__path__ = []  # type: ignore[attr-defined]
    sys.modules[name] = module


def load(folder: Path, path: str) -> Any:
    name = "openrlhf." + path.removesuffix(".py").replace("/", ".")
    spec = importlib.util.spec_from_file_location(name, folder / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_openrlhf(folder: Path) -> tuple[Any, Any]:
    for package in ("openrlhf", "openrlhf.utils", "openrlhf.trainer", "openrlhf.trainer.ppo_utils"):
        stub(package)
    stub("ray", remote=lambda *given, **_: given[0] if given else (lambda cls: cls))
    stub("vllm", SamplingParams=object)
    stub("openrlhf.utils.logging_utils", init_logger=logging.getLogger)
    stub("openrlhf.trainer.ray")
    stub("openrlhf.trainer.ray.vllm_engine", batch_vllm_engine_call=None)
    stub("openrlhf.trainer.ppo_utils.experience", Experience=Experience)
    return load(folder, "utils/agent.py"), load(folder, "trainer/ppo_utils/samples_generator.py")


async def ask(agent: Any, generator: Any, url: str, sample: tuple[str, str, Any, str]) -> dict[str, Any]:
    question, answer, label, verifier = sample
    executor = agent.SingleTurnAgentExecutor(f"{url}/compat/openrlhf/get_reward?verifier={verifier}")
    params = types.SimpleNamespace(max_tokens=64, logprobs=None)
    response = await executor.execute(PROMPT.format(question), label, params, 4096, Characters(), Engine(answer))
    made = generator._process_response_into_experience(None, response, max_len=4096).fields
    tensors = {
        name: made[name] if made[name] is None else made[name].flatten().tolist() for name in ("rewards", "scores")
    }
    return {
        "reply": response["reward"],
        "logs": sorted(response["extra_logs"]),
        "info": sorted(made["info"]),
        **tensors,
    }


async def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    agent, samples_generator = load_openrlhf(folder)
    logging.basicConfig(level=logging.INFO)
    generator = next(
        cls for cls in vars(samples_generator).values() if hasattr(cls, "_process_response_into_experience")
    )
    found = await asyncio.gather(*(ask(agent, generator, url, sample) for sample in SAMPLES))
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
