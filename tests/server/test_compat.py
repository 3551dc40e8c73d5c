"""The trainers' wire formats, field by field; their own client code runs in tests/trainers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.testclient import TestClient

from adjudge_server.http.compat import cut_prompt

PROMPT = "<|im_start|>user\n1+1?<|im_end|>\n<|im_start|>assistant\n"
URL = "/compat/openrlhf/get_reward?verifier=math"


@pytest.mark.parametrize(
    ("query", "prompt", "expected"),
    [
        (PROMPT + "It is \\boxed{2}<|im_end|>", PROMPT, "It is \\boxed{2}"),
        (PROMPT + "It is 2<|im_end|>\n<|endoftext|><|endoftext|>", PROMPT, "It is 2"),
        ("<s> " + PROMPT + "It is 2</s>", PROMPT, "It is 2"),
        ("It is 2", "", "It is 2"),
        ("It is 2", None, "It is 2"),
        (PROMPT + "A" + "<|im_start|>assistant\nB", PROMPT, "A<|im_start|>assistant\nB"),
        ("x" + PROMPT + "A" + "<|im_start|>assistant\nB", PROMPT, "A<|im_start|>assistant\nB"),
        (PROMPT + "<|im_end|>", PROMPT, ""),
    ],
)
def test_cutting(query: str, prompt: Any, expected: str) -> None:
    assert cut_prompt(query, prompt) == expected


def test_openrlhf(client: TestClient) -> None:
    body = {
        "query": [PROMPT + "\\boxed{2}<|im_end|>", PROMPT + "\\boxed{3}<|im_end|>"],
        "prompts": [PROMPT, PROMPT],
        "labels": ["2", "2"],
    }
    reply = client.post(URL, json=body).json()
    assert reply["rewards"] == reply["scores"] == [1.0, 0.0]
    assert reply["extra_logs"]["valid"] == [1.0, 1.0]
    assert all(isinstance(value, float) for values in reply["extra_logs"].values() for value in values)


def test_openrlhf_with_nothing_to_judge(client: TestClient) -> None:
    for body in ({"query": []}, {"query": [], "prompts": [], "labels": []}, {}):
        assert client.post(URL, json=body).json() == {"rewards": [], "scores": [], "extra_logs": {}}


def test_openrlhf_without_labels_needs_a_verifier_without_reference(client: TestClient) -> None:
    body = {"query": ["<think>a</think><answer>b</answer>"], "prompts": [""]}
    reply = client.post('/compat/openrlhf/get_reward?verifier=format&opt.require=["think","answer"]', json=body)
    assert reply.status_code == 200, reply.text


def test_labels_may_be_rows(client: TestClient) -> None:
    row = {"data_source": "openai/gsm8k", "reward_model": {"ground_truth": "18"}}
    body = {"query": ["#### 18", "#### 19"], "prompts": ["", ""], "labels": [row, json.dumps(row)]}
    assert client.post("/compat/openrlhf/get_reward", json=body).json()["rewards"] == [1.0, 0.0]


def test_failures_are_errors_unless_zero_is_asked_for(client: TestClient) -> None:
    body = {"query": ["a"], "prompts": [""], "labels": ["b"]}
    reply = client.post("/compat/openrlhf/get_reward?verifier=maths", json=body)
    assert reply.status_code == 422
    assert reply.json()["type"] == "urn:adjudge:no-reward"
    act = "?verifier=test_cpu&opt.act=raise"
    reply = client.post(f"/compat/openrlhf/get_reward{act}", json=body)
    assert (reply.status_code, reply.json()["type"]) == (503, "urn:adjudge:no-reward-now")
    zero = client.post(f"/compat/openrlhf/get_reward{act}&on_error=zero", json=body).json()
    assert (zero["rewards"], zero["extra_logs"]["valid"]) == ([0.0], [0.0])
    sample = {"prompt": "", "response": "a", "label": "b"}
    assert client.post(f"/compat/slime{act}", json=sample).status_code == 503
    assert client.post(f"/compat/slime{act}&on_error=zero", json=sample).json() == 0.0


def test_slime(client: TestClient) -> None:
    url = "/compat/slime?verifier=math"
    sample = {"prompt": [{"role": "user", "content": "1+1?"}], "response": "\\boxed{2}<|im_end|>", "label": "2"}
    reply = client.post(url, json=sample)
    assert reply.headers["content-type"] == "application/json"
    assert reply.json() == 1.0
    assert client.post(url, json={**sample, "label": 3}).json() == 0.0
    assert client.post(url, json=[]).json() == []
    assert client.post(url, json=[sample, {**sample, "label": "3"}]).json() == [1.0, 0.0]
    full = client.post(f"{url}&reply=dict&reward_key=score", json=sample).json()
    assert full["score"] == 1.0
    assert all(isinstance(value, float) for value in full.values())


def test_url_parameters_are_checked(client: TestClient) -> None:
    sample = {"prompt": "", "response": "Yes", "label": "yes"}
    url = "/compat/slime?verifier=exact_match"
    assert client.post(f"{url}&opt.ignore_case=true", json=sample).json() == 1.0
    assert client.post(f"{url}&opt.ignore_case=false", json=sample).json() == 0.0
    reply = client.post(f"{url}&on_eror=zero", json=sample)
    assert reply.status_code == 422
    assert "on_error" in reply.json()["detail"]
