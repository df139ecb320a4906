"""``wcll train``, ``predict``, ``evaluate`` and ``export``: models of a user's own data."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

from wcll._files import (
    check_folder_target,
    check_output,
    check_outside_models,
    csv_line,
    is_inside,
    replacing,
    replacing_folder,
)
from wcll.cli import show, tell
from wcll.cli.console import ForceOption, console, duration, grid, time_span
from wcll.datasets.arrays import read_array
from wcll.estimator import BATCH_SIZE
from wcll.exceptions import InputError
from wcll.onnx import OPSET, OPSETS, TOLERANCE, check_extra
from wcll.owndata.card import card_of, features_in_words, markdown
from wcll.owndata.examples import made_up
from wcll.owndata.exporting import to_onnx
from wcll.owndata.folder import FILES, OwnModel, is_model_folder
from wcll.owndata.learning import Learnt, Settings, check_settings, learn
from wcll.owndata.sources import Reading, Roles, Samples, check_categories, check_no_truth, read_samples
from wcll.owndata.standing import Streaming
from wcll.owndata.streaming import read_stream
from wcll.owndata.unfinished import Unfinished
from wcll.owndata.using import Evaluated, predictions
from wcll.owndata.using import evaluate as evaluated
from wcll.report.model_report import own_page
from wcll.report.render import literal
from wcll.training.distributed import Ranks, together

DATA = "A table (.csv, .parquet), arrays (.npz), or a folder of images with manifest.csv (path, not_label[, group])."

DataArgument = Annotated[Path, typer.Argument(help=DATA)]
ModelArgument = Annotated[Path, typer.Argument(help="The folder that wcll train wrote.")]
NotLabelOption = Annotated[
    list[str] | None,
    typer.Option(help="Column with a class that the row is NOT (several as cat|dog); may come again."),
]
ItemOption = Annotated[
    str | None, typer.Option(help="Column that says which sample a row is of, if several are of one.")
]
LabelsOption = Annotated[
    Path | None,
    typer.Option(help="Another table that has the labels: columns item and not_label, as labels import makes."),
]
SkipOption = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out images that cannot be decoded; they are counted.")
]
Unknown = Literal["error", "ignore"]
UnknownOption = Annotated[
    Unknown, typer.Option("--unknown-category", help="What a category is that training did not have.")
]


def class_list(text: str | None) -> tuple[str, ...] | None:
    """Names of classes, separated by commas."""
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    if len(names) < 2 or len(set(names)) < len(names) or not all(names):
        raise InputError("--classes", "at least two names, each once, separated by commas", repr(text))
    return names


def tell_notes(notes: tuple[str, ...]) -> None:
    """A line each, on standard error."""
    for line in notes:
        tell(f"wcll: note: {line}")


def predict(
    model: ModelArgument,
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The .csv file that predictions go to.")],
    item: ItemOption = None,
    unknown: UnknownOption = "error",
    skip_bad: SkipOption = False,
    force: ForceOption = False,
) -> None:
    """Write the likeliest class of every sample, and how likely each class is."""
    check_output(out, "--out", model, data, force=force)
    if out.suffix != ".csv":
        raise InputError("--out", "a .csv file", out.name)
    own = OwnModel.load(model)
    reading = own.reading(labels=False, skip_bad=skip_bad)
    n, notes = 0, tuple[str, ...]()
    with replacing(out, "--out") as draft, draft.open("w", encoding="utf-8", newline="") as file:
        for part in predictions(own, data, Roles(item=item), reading, ignore_unknown=unknown == "ignore"):
            file.writelines(part.lines(heads=not n))
            n, notes = n + len(part.samples), part.samples.notes
    tell_notes(notes)
    show(f"{n} predictions: {out}")


ENOUGH = "give it a part: thousands of rows tell as much as can be told"  #: of data that do not fit into memory


def evaluate(
    model: ModelArgument,
    data: DataArgument,
    not_label: NotLabelOption = None,
    true_label: Annotated[
        str | None, typer.Option(help="Column of true labels: for this evaluation, and for nothing else.")
    ] = None,
    item: ItemOption = None,
    labels: LabelsOption = None,
    unknown: UnknownOption = "error",
    skip_bad: SkipOption = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Estimate accuracy from complementary labels, with intervals and verdicts; or measure it with true ones."""
    own = OwnModel.load(model)
    samples = _read(own, data, Roles(tuple(not_label or ()), item, None, true_label), skip_bad, labels)
    found = evaluated(own, samples, ignore_unknown=unknown == "ignore")
    tell_notes(found.notes)
    if as_json:
        print(json.dumps(found.to_dict(), indent=2))
        return
    _print_evaluation(found)


def _read(own: OwnModel, data: DataArgument, roles: Roles, skip_bad: bool, labels: Path | None) -> Samples:
    """Samples with labels: complementary ones in the columns that training had, unless others are named.

    Rows of one item are one sample, as labels of one item are one witness.
    """
    if roles.true_label is not None and roles.true_label in own.preprocessing.kinds:
        raise InputError("--true-label", "a column that is no feature of the model", repr(roles.true_label))
    needed = bool(roles.not_label or labels) or roles.true_label is None
    reading = own.reading(labels=needed, optional=needed, skip_bad=skip_bad)
    reading = replace(reading, labels_in=labels, usual_item=own.roles.item, too_large=ENOUGH)
    if data.suffix != ".npz":
        usual = own.roles.not_label if needed and labels is None else ()
        classes = tuple(map(str, own.classifier.classes_))
        roles = replace(roles, not_label=roles.not_label or usual, classes=classes)
    return read_samples(data, roles, reading)


def _print_evaluation(found: Evaluated) -> None:
    screen = console()
    if found.complementary is not None:
        screen.print(str(found.complementary), soft_wrap=True)
    true = found.confusion
    if true is None:
        return
    screen.print(f"Measured with {int(true.counts.sum())} true labels.", soft_wrap=True)
    figures = {"accuracy": true.accuracy, "balanced accuracy": true.balanced_accuracy, "macro F1": true.macro_f1}
    figures |= {f"recall of {name}": r for name, r in zip(found.classes, true.recall.tolist(), strict=True)}
    rows = [(name, "-" if value != value else f"{value:.3f}") for name, value in figures.items()]
    screen.print(grid(("figure", "measured"), rows, right=("measured",)))


def export(
    model: ModelArgument,
    onnx: Annotated[Path, typer.Option(help="The .onnx file that the model goes to.")],
    check: Annotated[
        Path | None, typer.Option(help=f"Samples to check the file on (default: some that are made up). {DATA}")
    ] = None,
    opset: Annotated[int, typer.Option(help="Version of ONNX's operators.", min=OPSETS[0], max=OPSETS[-1])] = OPSET,
    tolerance: Annotated[float, typer.Option(help="What probabilities may differ from torch's by.", min=0)] = TOLERANCE,
    force: ForceOption = False,
) -> None:
    """Write a model, its preprocessing and names of classes to one ONNX file, if that gives what torch gives."""
    check_output(onnx, "--onnx", model, check, force=force)
    if onnx.suffix != ".onnx":
        raise InputError("--onnx", "a .onnx file", onnx.name)
    check_extra()
    own = OwnModel.load(model)
    features = made_up(own) if check is None else read_samples(check, Roles(), own.reading(labels=False)).features
    checked = to_onnx(own, onnx, features, opset=opset, tolerance=tolerance)
    samples = f"{checked.samples} samples" + (", made up (--check DATA takes yours)" if check is None else "")
    show(f"{onnx}: at most {checked.difference:.1e} from torch on {samples}")


WAIT = timedelta(minutes=30)  #: for a process that does not answer, such as one that reads data from a slow disk
GRACE = 1.0  #: seconds until the others leave, in which the one that speaks says why


@dataclass(frozen=True)
class Company:
    """The processes of a command; most often it is one alone."""

    ranks: Ranks | None = None
    device: str | None = None  #: what they compute on, if that is not as the user says

    @property
    def speaks(self) -> bool:
        """Whether this process is the one that says what is done, and writes."""
        return self.ranks is None or self.ranks.number == 0

    def say(self, line: str) -> None:
        """Say it once."""
        if self.speaks:
            tell(f"wcll: {line}")

    @contextmanager
    def agreeing(self) -> Iterator[None]:
        """What is wrong in one process ends all of them, with one line; they wait for one another at the end of it."""
        error: InputError | OSError | None = None
        try:
            yield
        except (InputError, OSError) as found:
            error = found
        if self.ranks is not None:
            lines = self.ranks.lines("" if error is None else str(error))
            wrong = [f"process {rank}: {line}" for rank, line in enumerate(lines) if line]
            if wrong and (error is None or not self.speaks):
                self._leave(wrong[0])
        if error is not None:
            raise error

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """What is wrong in all processes alike is said by one."""
        try:
            yield
        except InputError as error:
            if self.speaks:
                raise
            self._leave(str(error))

    def _leave(self, line: str) -> NoReturn:
        if self.speaks:
            tell(f"wcll: error: {line}")
        else:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends all as soon as one is gone
            time.sleep(GRACE)
        raise typer.Exit(2)


@contextmanager
def company(device: str) -> Iterator[Company]:
    """The processes that torchrun has started, ready to train together; without torchrun, this one."""
    import torch
    from torch import distributed

    if not distributed.is_torchelastic_launched() or int(os.environ["WORLD_SIZE"]) == 1:
        yield Company()
        return
    here, number = int(os.environ["LOCAL_WORLD_SIZE"]), int(os.environ["LOCAL_RANK"])
    gpus = torch.cuda.device_count()
    if device == "cuda" and gpus < here:
        with Company(Ranks(int(os.environ["RANK"]), here, torch.device("cpu"))).quiet():
            expected = f"a GPU for each of {here} processes"
            raise InputError("--device", expected, f"{gpus} GPUs", "start fewer, or take cpu")
    on_gpu = device in ("auto", "cuda") and gpus >= here
    if on_gpu:
        torch.cuda.set_device(number)
    _introduce("nccl" if on_gpu else "gloo", alone=here == int(os.environ["WORLD_SIZE"]))
    try:
        with together() as ranks:
            yield Company(ranks, "cuda" if on_gpu else "cpu")
    finally:
        distributed.destroy_process_group()


def _introduce(backend: str, *, alone: bool) -> None:
    """Let processes find each other; those of one machine by a file and through loopback, so that nobody else can."""
    from torch import distributed

    attempt = os.environ.get("TORCHELASTIC_ERROR_FILE")  # in a folder that torchrun has made for this start alone
    if not alone or not attempt:
        distributed.init_process_group(backend, timeout=WAIT)
        return
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), "lo")
    for library in ("GLOO", "NCCL"):
        os.environ.setdefault(f"{library}_SOCKET_IFNAME", loopback)
    count, number = int(os.environ["WORLD_SIZE"]), int(os.environ["RANK"])
    meeting = (Path(attempt).parent.parent / "wcll").as_uri()
    distributed.init_process_group(backend, meeting, rank=number, world_size=count, timeout=WAIT)


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
            matrix = None if transition is None or not transition.endswith(".npy") else Path(transition)
            if here.speaks:
                _check_out(out, force, resume, data, labels, matrix)
            pixels = None if size is None else _pixels(size)
            seconds = None if max_time is None else time_span("--max-time", max_time)
            told = transition if matrix is None else read_array(matrix)
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
