"""The application: commands by name, and one way to fail."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wcll import __version__
from wcll.checks import InputError
from wcll.cli import bound, data, demo, methods, paper, results, simulate, suites
from wcll.cli.output import STOPPED

UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # typer has it under different names in its versions

app = typer.Typer(
    name="wcll",
    help='Learn classifiers from complementary labels ("this is NOT a cat") when classes are imbalanced.',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("methods")(methods.methods)
app.command("simulate")(simulate.simulate)
app.command("run")(suites.run)
app.command("report")(suites.report)
app.add_typer(paper.app, name="paper")
app.add_typer(bound.app, name="bound")
app.add_typer(results.app, name="results")
app.add_typer(data.app, name="data")


def _version(asked: bool) -> None:
    if asked:
        print(f"wcll {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    try:
        code = app(arguments or ["--help"], prog_name="wcll", standalone_mode=False)
    except InputError as error:
        return _fail(str(error))
    except UsageError as error:
        return _fail(error.format_message())  # type: ignore[attr-defined]
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    if code == STOPPED:  # typer may turn Ctrl-C into this code itself
        print("wcll: stopped", file=sys.stderr)
    return code if isinstance(code, int) else 0


def _fail(message: str) -> int:
    print(f"wcll: error: {' '.join(message.split())}", file=sys.stderr)
    return 2
