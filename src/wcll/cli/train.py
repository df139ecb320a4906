"""``wcll train``: from a user's own data to a model in a folder."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from wcll._files import check_folder_target, check_outside_models, csv_line, is_inside, replacing_folder
from wcll.cli.messages import tell
from wcll.cli.output import console, duration, time_span
from wcll.cli.own_options import (
    DataArgument,
    ItemOption,
    LabelsOption,
    NotLabelOption,
    SkipOption,
    class_list,
    tell_notes,
)
from wcll.cli.torchrun import company
from wcll.datasets.arrays import read_array
from wcll.estimator import BATCH_SIZE
from wcll.exceptions import InputError
from wcll.owndata.card import card_of, features_in_words, markdown
from wcll.owndata.folder import FILES, is_model_folder
from wcll.owndata.learning import Learnt, Settings, check_settings, learn
from wcll.owndata.sources import Reading, Roles, Samples, check_categories, check_no_truth, read_samples
from wcll.owndata.standing import Streaming
from wcll.owndata.streaming import read_stream
from wcll.owndata.unfinished import Unfinished
from wcll.report.model_report import own_page
from wcll.report.render import literal

SEEDS = 2**31 - 1
MOST = 10**9  #: of epochs and steps
SIDE = 4096  #: the longest of an image that is resized
SHOWN = 30  #: names of features on the terminal; the card has all

USUAL = {"loss": "auto", "seed": 0, "batch_size": BATCH_SIZE}  #: what need not be said

Columns = list[str] | None


def train(  # noqa: PLR0913  (a command's options)
    context: typer.Context,
    data: DataArgument,
    out: Annotated[Path, typer.Option(help="The folder that the model goes to.")],
    not_label: NotLabelOption = None,
    item: ItemOption = None,
    labels: LabelsOption = None,
    group: Annotated[
        str | None, typer.Option(help="Column of groups, such as patients, that stay on one side of every split.")
    ] = None,
    ignore: Annotated[Columns, typer.Option(help="Column that is no feature; may come again.")] = None,
    category: Annotated[Columns, typer.Option(help="Column whose numbers are names; may come again.")] = None,
    feature: Annotated[
        Columns, typer.Option(help="Column that is a feature, though it looks like a true label; can be repeated.")
    ] = None,
    classes: Annotated[str | None, typer.Option(help="All classes, separated by commas (default: all named).")] = None,
    loss: Annotated[str, typer.Option(help="auto chooses everything; or one of wcll methods.")] = "auto",
    model: Annotated[str | None, typer.Option(help="linear, mlp, cnn9 or resnet18 (default: chosen).")] = None,
    transition: Annotated[
        str | None,
        typer.Option(help="How labels are chosen: a family such as popularity, or a .npy file with Q[y, ybar]."),
    ] = None,
    training: Annotated[
        str | None, typer.Option(help="plain, or strong, for networks for images (default: as suits the data).")
    ] = None,
    lr: Annotated[float | None, typer.Option(help="The learning rate (default: chosen).")] = None,
    epochs: Annotated[int | None, typer.Option(help="How many at most (default: chosen).", min=1, max=MOST)] = None,
    batch_size: Annotated[int, typer.Option(help="Samples of a step.", min=1, max=MOST)] = BATCH_SIZE,
    budget: Annotated[int | None, typer.Option(help="About how many steps all may take.", min=1, max=MOST)] = None,
    max_time: Annotated[str | None, typer.Option(help="When nothing further is tried: 90s, 9m, 1.5h.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of all draws.", min=0, max=SEEDS)] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    size: Annotated[
        str | None, typer.Option(help="What images are brought to, such as 64x64 (default: as is).")
    ] = None,
    skip_bad: SkipOption = False,
    stream: Annotated[
        bool, typer.Option("--stream", help="Read what does not fit into memory, .parquet or images, a part at a time.")
    ] = False,
    sample: Annotated[
        int | None,
        typer.Option(help="Samples of a stream that choices are made by (default: 100000).", min=100, max=MOST),
    ] = None,
    buffer: Annotated[
        int | None,
        typer.Option(help="Samples of a stream that are shuffled together (default: 128 MB).", min=1, max=MOST),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a training that was stopped or killed.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a model that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the model card as JSON.")] = False,
) -> None:
    """Learn from complementary labels in your own data; without a true label, and without writing Python."""
    with company(device) as here:
        with here.agreeing():
            if here.speaks:
                matrix = None if transition is None or not transition.endswith(".npy") else Path(transition)
                _check_out(out, force, resume, data, labels, matrix)
            pixels = None if size is None else _pixels(size)
            seconds = None if max_time is None else time_span("--max-time", max_time)
            told = None if transition is None else _transition(transition)
            where = here.device or device
            settings = Settings(loss, model, told, lr, epochs, budget, seconds, seed, where, training, batch_size)
            check_settings(settings)
            roles = Roles(tuple(not_label or ()), item, group, None, tuple(ignore or ()), class_list(classes))
            reading = Reading(
                skip_bad=skip_bad, size=pixels, labels_in=labels, too_large="--stream reads it a part at a time"
            )
            streaming, unfinished = _streaming(stream, sample, buffer, seed), Unfinished.beside(out)
            named, kept = category or [], feature or []
            if streaming is None:
                whole, samples = None, _samples(data, roles, reading, named, kept)
            else:
                whole = read_stream(data, roles, reading, streaming, named, unfinished, kept)
                samples = whole.samples
        try:
            with here.quiet():
                learnt = learn(
                    samples,
                    roles,
                    settings,
                    categories=tuple(category or ()),
                    size=pixels,
                    unfinished=unfinished,
                    resume=resume,
                    say=here.say,
                    stream=whole,
                )
        except KeyboardInterrupt:
            if Unfinished(unfinished).there:
                here.say("the same command with --resume goes on from here")
            raise
        if here.speaks:
            card = card_of(samples, learnt, _command(context.params))
            _write(out, samples, learnt, card)
            Unfinished(unfinished).clear()
            _tell(learnt, card, out, as_json)


def _tell(learnt: Learnt, card: dict[str, Any], out: Path, as_json: bool) -> None:
    """What came of it."""
    tell_notes(learnt.notes)
    for line in card["alarms"]:
        tell(f"wcll: warning: {line}")
    if as_json:
        print(json.dumps(card, indent=2))
    else:
        _print_model(card, out)


def _check_out(out: Path, force: bool, resume: bool, *inputs: Path | None) -> None:
    check_folder_target(out, "--out")
    check_outside_models(out, "--out")
    begun = Unfinished(Unfinished.beside(out))
    if any(one is not None and (is_inside(one, out) or is_inside(one, begun.folder)) for one in inputs):
        raise InputError("--out", "another folder than those that are read", str(out), "name another folder")
    begun.check()
    if begun.there and not (force or resume):
        got, remedy = f"an unfinished one in {begun.folder.name}", "--resume goes on with it, --force starts anew"
        raise InputError("--out", "a new training", got, remedy)
    if out.exists() and any(out.iterdir()):
        if not is_model_folder(out):
            raise InputError("--out", "a new folder, or one of a model", f"{out}, which holds other files")
        if not force:
            raise InputError("--out", "a new folder", f"{out}, which holds a model", "add --force to replace it")


def _pixels(text: str) -> tuple[int, int]:
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdecimal() and len(part) < 6 for part in parts) or len(parts) not in (1, 2):
        raise InputError("--size", "a width and a height such as 64x64", repr(text))
    width, height = (int(part) for part in (*parts, parts[0])[:2])
    if not (1 <= width <= SIDE and 1 <= height <= SIDE):
        raise InputError("--size", f"from 1 to {SIDE} pixels", repr(text))
    return width, height


def _transition(text: str) -> Any:
    """A family, or a matrix from a file."""
    return read_array(Path(text)) if text.endswith(".npy") else text


def _streaming(stream: bool, sample: int | None, buffer: int | None, seed: int) -> Streaming | None:
    for option, value in (("--sample", sample), ("--buffer", buffer)):
        if value is not None and not stream:
            raise InputError(option, "--stream beside it", "none")
    return Streaming(sample, buffer, seed) if stream else None


def _samples(data: Path, roles: Roles, reading: Reading, category: list[str], kept: list[str]) -> Samples:
    samples = read_samples(data, roles, reading)
    check_categories(samples.features, category)
    check_categories(samples.features, kept, "--feature")
    return check_no_truth(samples, kept)


def _command(given: dict[str, Any]) -> str:
    """The command as it may be given again, without folders of this machine."""
    words = ["wcll", "train", given["data"].name]
    for name, value in given.items():
        if name in ("data", "out", "device", "as_json", "resume", "force") or value in (None, False, USUAL.get(name)):
            continue
        option = f"--{name.replace('_', '-')}"
        values = value if isinstance(value, list | tuple) else [value]
        words += [option] if value is True else [word for one in values for word in (option, _plain(one))]
    return shlex.join([*words, "--out", given["out"].name])


def _plain(value: Any) -> str:
    return value.name if isinstance(value, Path) else str(value)


def _write(out: Path, samples: Samples, learnt: Learnt, card: dict[str, Any]) -> None:
    """All files of the model at once, or none."""
    with replacing_folder(out, "--out", FILES) as draft:
        learnt.own.save(draft)
        rows = learnt.own.classifier.history_
        history = [csv_line(["epoch", "loss", "seconds"]), *(csv_line(row.values()) for row in rows)]
        texts = {
            "card.json": json.dumps(card, indent=1) + "\n",
            "card.md": markdown(card, literal),
            "history.csv": "".join(history),
            "page.html": own_page(samples, learnt, card),
        }
        for name, text in texts.items():  # names of files may be any bytes
            (draft / name).write_text(text, encoding="utf-8", errors="backslashreplace")


def _print_model(card: dict[str, Any], out: Path) -> None:
    screen = console()
    if "columns" in card["data"]:
        screen.print(f"{features_in_words(card['data'], SHOWN)}.", soft_wrap=True)
    training = card["training"]
    for line in training["report"]:
        screen.print(line, soft_wrap=True)
    screen.print(f"{duration(card['made']['seconds'])}; model: {out}, page: {out / 'page.html'}", soft_wrap=True)
