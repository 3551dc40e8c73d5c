"""Images: is it there, and what is in one of its folders.

Reading a folder runs nothing: the engine is asked for the files of a container that is never started.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from ..errors import InvalidProgram

__all__ = ["ensure", "read_folder"]

_TIMEOUT_S = 120
_NOT_THERE = ("ImageNotFound", "NotFound", "NullResource", "InvalidRepository")


def ensure(client: Any, image: str, *, pull: bool) -> None:
    """Raises :class:`InvalidProgram` if ``image`` is not on the engine and may not be fetched."""
    if not image:
        raise InvalidProgram("no container image was named, and the server has none by default")
    try:
        client.inspect_image(image)
    except Exception as error:
        if type(error).__name__ not in _NOT_THERE:
            raise
        if not pull:
            raise InvalidProgram(f"the engine has no image {image[:200]!r}, and fetching images is off") from None
        client.pull(image)


def read_folder(client: Any, image: str, folder: str, labels: Mapping[str, str], max_mib: int) -> bytes:
    """``folder`` of ``image`` as a tar archive, whose names begin with the folder's own."""
    identity = client.create_container(image, ["true"], labels=dict(labels), network_disabled=True)["Id"]
    url = f"{client.base_url}/v{client.api_version}/containers/{identity}/archive"
    data = bytearray()
    try:
        # not by the SDK's get_archive, which leaves the connection open when we stop in the middle
        with client.get(url, params={"path": folder}, stream=True, timeout=_TIMEOUT_S) as response:
            if response.status_code == 404:
                raise InvalidProgram(f"the image {image[:200]!r} has no folder {folder[:200]!r}")
            response.raise_for_status()
            for part in response.iter_content(1 << 20):
                data += part
                if len(data) > max_mib << 20:
                    raise InvalidProgram(f"{folder[:200]!r} of the image holds more than {max_mib} MiB")
    finally:
        with contextlib.suppress(Exception):
            client.remove_container(identity, force=True, v=True)
    return bytes(data)
