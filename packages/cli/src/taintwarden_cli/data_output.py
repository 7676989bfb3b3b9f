"""Output for scripts: JSON, YAML, or names."""

from collections.abc import Sequence

import click
import msgspec

from taintwarden_cli.output import WIDTH, printable, write
from taintwarden_cli.rehearsal.yaml_documents import dump


def write_data(data: msgspec.Struct, form: str) -> None:
    """Print ``data`` as ``json`` or ``yaml``, ASCII only, fields in their order; or names."""
    if form == "name":
        for name in _names(data):
            write(printable(name))
    elif form == "json":
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
        write("".join(one if one < "\x7f" else _escaped(one) for one in text))
    else:
        write(dump(msgspec.to_builtins(data, builtin_types=()), width=WIDTH).rstrip("\n"))


def _names(data: msgspec.Struct) -> Sequence[str]:
    names: Sequence[str] | None = getattr(data, "resource_names", None)
    if names is None:
        raise click.UsageError("this command has no names to print: leave out -o name")
    return names


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))
