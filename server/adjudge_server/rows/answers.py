"""The answer of a row: text, chat messages, a chat completion, or an object of the OpenAI Responses API."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter, ValidationError

from adjudge.types import Message

from .base import RowError

__all__ = ["RESPONSE_KEYS", "read_prompt", "read_response"]

RESPONSE_KEYS = ("response", "llm_response", "completion", "solution_str", "model_output", "output")
"""Where rows that were already answered keep the answer, in this order."""

_MESSAGES: TypeAdapter[list[Message]] = TypeAdapter(list[Message])


def read_response(response: Any, layout: str) -> str | list[Message]:
    """``response`` as a task's response. Raises :class:`RowError` if it is none."""
    if response is None:
        raise RowError(f"Read as layout {layout!r}: there is no answer. Send it as `response` beside the row.")
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        return _from_object(response, layout)
    if isinstance(response, list):
        return _from_list(response, layout)
    raise RowError(f"The response is text or chat messages, not {type(response).__name__}.")


def _from_object(response: dict[str, Any], layout: str) -> str | list[Message]:
    if isinstance(response.get("output"), list):
        return _responses_text(response["output"])
    choices = response.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        message = choices[0].get("message")
        return read_response(message if message is not None else choices[0].get("text"), layout)
    if isinstance(response.get("role"), str):
        return _from_list([response], layout)
    if isinstance(response.get("output_text"), str):
        return str(response["output_text"])
    raise RowError("The response is an object, but neither a chat message, a completion nor an OpenAI response.")


def _from_list(items: list[Any], layout: str) -> str | list[Message]:
    if any(isinstance(item, dict) and "role" not in item and isinstance(item.get("type"), str) for item in items):
        return _responses_text(items)
    try:
        return _MESSAGES.validate_python(items)
    except ValidationError:
        raise RowError("The response is a list, but not of chat messages ({role, content}).") from None


def _responses_text(items: list[Any]) -> str:
    """The text of all message items; reasoning, tool calls and the user's own items are no part of the answer."""
    parts: list[str] = []
    for item in items:
        if not isinstance(item, dict) or item.get("type", "message") != "message":
            continue
        if item.get("role", "assistant") != "assistant":
            continue
        content = item.get("content")
        if isinstance(content, str):
            parts.append(content)
        elif isinstance(content, list):
            parts += [
                part["text"]
                for part in content
                if isinstance(part, dict)
                and part.get("type", "output_text") in ("output_text", "text")
                and isinstance(part.get("text"), str)
            ]
    return "".join(parts)


def read_prompt(prompt: Any) -> str | list[Message] | None:
    """A prompt, if it is text or chat messages; it is context, so anything else is dropped."""
    if isinstance(prompt, str) or prompt is None:
        return prompt
    if isinstance(prompt, list) and prompt:
        try:
            return _MESSAGES.validate_python(prompt)
        except ValidationError:
            return None
    return None
