"""The shipped CustomResourceDefinitions: in the package's folder of a wheel, or in `crds/` of a checkout."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

import taintwarden

_PACKAGE = Path(taintwarden.__file__).parent
PLACES = (_PACKAGE / "crds", _PACKAGE.parent.parent / "crds")


class MissingDefinitionsError(Exception):
    """No CustomResourceDefinition was found. The message names the paths."""


def shipped_definitions(places: Iterable[Path] = PLACES) -> list[dict[str, Any]]:
    """Return the definitions in the first of ``places`` that has any.

    Raises:
        MissingDefinitionsError: none of them has any.

    """
    places = tuple(places)
    for place in places:
        documents = [
            one for path in sorted(place.glob("*.yaml")) for one in yaml.safe_load_all(path.read_text("utf-8"))
        ]
        found = [document for document in documents if document and document.get("kind") == "CustomResourceDefinition"]
        if found:
            return found
    looked = " and ".join(str(place) for place in places)
    msg = f"found no CustomResourceDefinition in {looked}: run the demo from a checkout, or install the package again"
    raise MissingDefinitionsError(msg)
