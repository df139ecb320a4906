"""The application: commands by name, loaded when they are called, and one way to fail."""

from __future__ import annotations

import os
import sys
from pkgutil import resolve_name
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from wcll import __version__
from wcll.cli import STOPPED, begin, stop_in_order, tell
from wcll.exceptions import InputError

UsageError: type[Exception] = typer.BadParameter.__bases__[0]  # typer has it under different names in its versions

#: Every command: where it is, and what it does.
COMMANDS = {
    "demo": ("wcll.cli.experiments:demo", "Compare the paper's methods on real digits, and write a report."),
    "train": ("wcll.cli.models:train", "Learn a model from your own table, arrays or images."),
    "predict": ("wcll.cli.models:predict", "Predict classes with a model that train wrote."),
    "evaluate": ("wcll.cli.models:evaluate", "Say how good such a model is, without true labels or with them."),
    "export": ("wcll.cli.models:export", "Write such a model to an ONNX file, checked against torch."),
    "methods": ("wcll.cli.experiments:methods", "List the losses: what each needs, and its paper."),
    "simulate": ("wcll.cli.labels:simulate", "Turn ordinary labels into complementary ones."),
    "labels": ("wcll.cli.labels:app", "Say what complementary labels in a file tell of themselves."),
    "run": ("wcll.cli.experiments:run_suite", "Run what is missing of a suite, and print its tables."),
    "report": ("wcll.cli.experiments:report", "Make tables and figures from the results of a suite."),
    "paper": ("wcll.cli.paper:app", "The paper's experiments: every published number beside ours."),
    "bound": ("wcll.cli.paper:bound_app", "The paper's bounds, and what is measured beside them."),
    "results": ("wcll.cli.results:app", "List, filter, export, import and remove finished runs."),
    "data": ("wcll.cli.data:app", "List the data sets that are at hand, or download one."),
}

app = typer.Typer(
    name="wcll",
    help='Learn classifiers from complementary labels ("this is NOT a cat") when classes are imbalanced.',
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Later(TyperCommand):
    """Stands for a command in the list of commands; when it is called, it loads the command and lets it work."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """The context of the command itself, which is what is invoked then."""
        name = str(self.name)
        command, group = resolve_name(COMMANDS[name][0]), typer.Typer(rich_markup_mode=None)
        stop_in_order()
        if isinstance(command, typer.Typer):
            group.add_typer(command, name=name)
        else:
            group.command(name)(command)
        return get_group(group).commands[name].make_context(*arguments, **options)


for _name, (_, _help) in COMMANDS.items():
    app.command(_name, cls=Later, help=_help)(lambda: None)


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
    begin()
    try:
        code = app(arguments or ["--help"], prog_name="wcll", standalone_mode=False)
    except InputError as error:
        return _fail(str(error))
    except UsageError as error:
        return _fail(error.format_message())  # type: ignore[attr-defined]
    except BrokenPipeError:  # whoever read the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (MemoryError, RuntimeError) as error:
        if "home directory" in str(error):  # what pathlib says of ~somebody
            return _fail("path: expected ~ or the name of a user behind it, got somebody who is not known here")
        if not _out_of_memory(error):
            raise
        return _fail(f"out of memory: {str(error) or 'none is left'}")
    except (KeyboardInterrupt, typer.Abort):
        code = STOPPED
    if code == STOPPED:  # typer may turn Ctrl-C into this code itself
        tell("wcll: stopped")
    return code if isinstance(code, int) else 0


def _out_of_memory(error: Exception) -> bool:
    """Whether that is what an error says; torch has no class of its own for it on a CPU."""
    said = str(error)
    return isinstance(error, MemoryError | RecursionError) or "out of memory" in said or "can't allocate memory" in said


def _fail(message: str) -> int:
    tell(f"wcll: error: {' '.join(message.split())}")
    return 2
