"""What the tests of verifiers share: one way of calling a verifier, as the engine does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from adjudge.types import Verdict
from adjudge_verifiers import registry
from adjudge_verifiers.base import Call, Context
from adjudge_verifiers.errors import InvalidOptions, InvalidReference, boundary

Judge = Callable[..., Verdict]


@pytest.fixture(scope="session")
def judge() -> Judge:
    """``judge(name, response, reference, options, metadata)``: check the input, extract, verify."""

    def run(
        name: str,
        response: str,
        reference: Any = None,
        options: dict[str, Any] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Verdict:
        verifier = registry.get(name)
        with boundary(f"verifier {name!r}") as outcome:
            try:
                checked_options = type(verifier).Options.model_validate(options or {})
            except ValidationError as error:
                raise InvalidOptions(str(error)) from None
            try:
                checked_reference = type(verifier).reference_adapter().validate_python(reference)
            except ValidationError as error:
                raise InvalidReference(str(error)) from None
            extraction = verifier.extract(response, checked_options)
            call: Call[Any, Any] = Call(
                response="" if extraction else response,
                reference=checked_reference,
                options=checked_options,
                extraction=extraction,
                metadata=metadata or {},
            )
            verdict = verifier.verify(call, Context())
            assert isinstance(verdict, Verdict)
            return verdict
        assert outcome.failure is not None
        return outcome.failure

    return run
