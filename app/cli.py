"""The command `convoke`: `serve` runs the service, `settings` lists what can be set."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from app import __version__
from app.early import forget_variables_of_others, leave_when_told, open_standard_files

OWN_OPTIONS = ("-h", "--help", "--version")
"""What may stand in place of a command."""

USAGE_ERROR = 2
"""Exit status where the command or a setting is wrong."""


class _Parser(argparse.ArgumentParser):
    """One line for each error; the usage of all options would hide it."""

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE_ERROR, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    # Imported here, as in what follows, after what `main` does first: NumPy comes with it.
    from app.settings import ROWS

    parser = _Parser(prog="convoke", description="Convolution as a service.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"convoke {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="command")
    serve = commands.add_parser("serve", help="run the service", allow_abbrev=False)
    for row in ROWS:
        shown = f" Default: {row.shown}." if row.shown else ""
        serve.add_argument(
            row.option, dest=row.name, metavar="VALUE", help=f"{row.help}{shown}".replace("%", "%%")
        )
    commands.add_parser("settings", help="list every setting, with its variable and option")
    return parser


def _parsed(arguments: Sequence[str]) -> dict[str, str | None]:
    """The command and its options; ends the process where they are wrong."""
    from app.settings import ROWS
    from engine.words import did_you_mean

    parser = _parser()
    first = arguments[0] if arguments else ""
    if first.startswith("-") and first not in OWN_OPTIONS:
        parser.error(f"options follow a command: convoke serve {first}")
    given, others = parser.parse_known_args(arguments)
    if others:
        option = others[0].partition("=")[0]
        meant = did_you_mean(option, [row.option for row in ROWS])
        parser.error(f"unrecognized arguments: {' '.join(others)}{meant}")
    return vars(given)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        open_standard_files()
    except OSError as error:
        why = f"a standard file is closed, and {os.devnull} cannot be opened: {error.strerror}"
        print(f"convoke: {why}", file=sys.stderr)
        return 1
    if arguments[:1] == ["serve"]:
        leave_when_told()
    forget_variables_of_others(os.environ)
    given = _parsed(arguments)
    if given.pop("command") == "settings":
        from app.settings import table

        return _show(table())
    return _serve(given)


def _show(text: str) -> int:
    try:
        print(text, end="", flush=True)
    except OSError as error:
        # What Python holds of it still would fail once more at the end, with a traceback.
        with Path(os.devnull).open("wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return 0  # whoever reads has seen enough, as `head` does
        print(f"convoke: the settings cannot be written: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _serve(options: dict[str, str | None]) -> int:
    from app.options import SettingsError, load, unknown

    try:
        settings = load(os.environ, options)
    except SettingsError as error:
        print(f"convoke: {error}", file=sys.stderr)
        return USAGE_ERROR
    # Imported here so that the other commands, and errors, do not wait for all of it.
    from app import server
    from app.start import CannotStart

    for name in unknown(os.environ):
        print(f"convoke: {name} is no setting of ours and has no effect", file=sys.stderr)
    try:
        return server.serve(settings)
    except CannotStart as error:
        print(f"convoke: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
