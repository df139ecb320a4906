"""What tests of engines share."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch


class NoStream:
    """In place of a stream of a GPU: all that is done is done at once."""

    def wait_stream(self, other):
        pass


@pytest.fixture
def without_streams(monkeypatch):
    """An engine for GPUs can be run on a CPU."""
    monkeypatch.setattr("wcll.training.cuda_graph.side_stream", lambda device: NoStream())
    monkeypatch.setattr(torch.cuda, "current_stream", NoStream)
    monkeypatch.setattr(torch.cuda, "stream", nullcontext)
