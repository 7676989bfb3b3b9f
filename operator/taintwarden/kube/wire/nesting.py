"""JSON that is nested deeper than a decoder follows: the API server takes objects that are nested 10,000 levels deep.

Only ``metadata.managedFields`` can be so: a client that creates an object may write anything there, and all other
fields have a schema. Nothing of it is used, so it is cut out, but only of what does not decode with it.
"""

import re
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

MANAGED_FIELDS: Final = re.compile(
    rb'"managedFields"\s*+:\s*+\[[^"\]]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"\]]*+)*+\]', re.DOTALL
)
"""The key and its list. Outside of its strings the list contains no other one. Linear: 9 ms a megabyte."""


def decoded_flat(decode: Callable[[bytes], T], body: bytes) -> T:
    """What ``decode`` makes of ``body``, without the managed fields if it cannot follow them.

    Raises:
        RecursionError: something else is nested too deeply.

    """
    try:
        return decode(body)
    except RecursionError:
        return decode(MANAGED_FIELDS.sub(b'"managedFields":[]', body))
