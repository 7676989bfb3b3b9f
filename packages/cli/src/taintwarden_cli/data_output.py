"""Output for scripts: JSON or YAML."""

import msgspec

from taintwarden_cli.output import WIDTH, write
from taintwarden_cli.rehearsal.yaml_documents import dump


def write_data(data: msgspec.Struct, form: str) -> None:
    """Print ``data`` as ``json`` or ``yaml``, ASCII only, fields in their order."""
    if form == "json":
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
        write("".join(one if one < "\x7f" else _escaped(one) for one in text))
    else:
        write(dump(msgspec.to_builtins(data, builtin_types=()), width=WIDTH).rstrip("\n"))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))
