"""``wcll export``: a model that ``wcll train`` wrote as one ONNX file, for where there is no Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wcll._files import check_output
from wcll.cli.messages import show
from wcll.cli.output import ForceOption
from wcll.cli.own_options import DATA, ModelArgument
from wcll.exceptions import InputError
from wcll.onnx import OPSET, OPSETS, TOLERANCE, check_extra
from wcll.owndata.examples import made_up
from wcll.owndata.exporting import to_onnx
from wcll.owndata.folder import OwnModel
from wcll.owndata.sources import Roles, read_samples


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
