"""No input makes the server fail: schemathesis over the OpenAPI document, hypothesis over JSON of any shape."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance

from adjudge.types import FAILURES

CHECKS = (not_a_server_error, content_type_conformance, response_schema_conformance)


def test_the_openapi_document_holds(live_server: str) -> None:
    """Whatever fits (or nearly fits) the document gets a documented reply and never a 5xx."""
    document = schemathesis.openapi.from_url(f"{live_server}/openapi.json")
    operations = [found.ok() for found in document.get_all_operations()]
    assert len(operations) >= 11
    for operation in operations:

        @given(case=operation.as_strategy() | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))
        @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def holds(case: Any) -> None:
            case.call_and_validate(checks=CHECKS)

        holds()


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=-(10**60), max_value=10**60),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=40),
    st.sampled_from(
        ["\x00", "\\boxed{", "\\frac{1}{0}", "1e999", "9" * 5000, "<think>", "<answer>", "```python\n", "{"]
    ),
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
tasks = st.fixed_dictionaries(
    {"response": st.text(max_size=60) | scalars},
    optional={
        "verifier": st.sampled_from(["exact_match", "numeric", "multiple_choice", "format", "length", "math", "nope"]),
        "recipe": st.sampled_from(["nope"]) | anything,
        "reference": anything,
        "prompt": anything,
        "options": st.dictionaries(st.sampled_from(["ignore_case", "abs_tol", "conventions", "max", "x"]), anything),
        "metadata": anything,
        "timeout_s": scalars,
        "id": scalars,
    },
)


@given(batch=st.lists(tasks | anything, max_size=8), stream=st.booleans())
@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_any_json_gets_one_verdict_each(live_server: str, batch: list[Any], stream: bool) -> None:
    body = json.dumps({"tasks": batch, "defaults": {"timeout_s": 2.0}})
    headers = {"Content-Type": "application/json"} | ({"Accept": "application/x-ndjson"} if stream else {})
    reply = httpx2.post(f"{live_server}/v1/verify/batch", content=body.encode(), headers=headers, timeout=60)
    if reply.status_code == 400:  # integers beyond what any JSON parser is asked to hold
        assert reply.json()["type"] == "urn:adjudge:invalid-json"
        return
    assert reply.status_code == 200, reply.text
    verdicts = [json.loads(line)["verdict"] for line in reply.text.splitlines()] if stream else reply.json()["verdicts"]
    assert len(verdicts) == len(batch)
    for verdict in verdicts:
        assert (verdict["status"] == "ok") == (verdict["reward"] is not None)
        assert verdict["status"] in FAILURES | {"ok"}
        assert verdict["status"] not in ("verifier_error", "cancelled", "overloaded"), verdict


@given(rows=st.lists(st.fixed_dictionaries({"row": anything, "response": anything}) | anything, max_size=5))
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_any_row_gets_one_verdict(live_server: str, rows: list[Any]) -> None:
    for path in ("rows", "preflight"):
        reply = httpx2.post(f"{live_server}/v1/{path}", json={"rows": rows}, timeout=60)
        assert reply.status_code in (200, 400), reply.text
