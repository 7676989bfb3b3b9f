"""The output format ``json``, for scripts."""

from collections.abc import Callable

import msgspec

from taintwarden_cli.output import write


def write_answer(data: msgspec.Struct, form: str, text: Callable[[], str]) -> None:
    """Print ``data`` as JSON in ASCII if ``form`` is ``json``, else what ``text`` returns."""
    if form != "json":
        write(text())
        return
    found = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    write("".join(one if one < "\x7f" else _escaped(one) for one in found))


def _escaped(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[index : index + 4]}" for index in range(0, len(units), 4))
