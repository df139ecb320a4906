"""Verdicts on claims, and how answers become one: over protocols that fit, over protocols that were run in full.

A claim is asked of several protocols, as the paper does not say which one is its own. Where all agree that it holds, it
holds; where some say yes and others no, it depends on what the paper does not say. Answers that noise leaves open are
heeded: a verdict needs :data:`AGREEMENT` of all answers, and none against it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from wcll.paper.evidence import say
from wcll.paper.fitting import Question
from wcll.paper.named import N_PROTOCOLS
from wcll.paper.reproduction import Reproduction
from wcll.paper.worlds import World

HOLDS, FAILS = "holds", "does not hold"
DEPENDS, UNTOLD = "depends on what the paper does not say", "can't be told"
AGREEMENT = 0.9  #: the share of answers that makes a verdict, if no answer is to the contrary
ENOUGH = 3  #: protocols run in full without which none of their answers is a verdict

Answer = bool | None


@dataclass(frozen=True)
class Claim:
    """One claim, our verdict, and why."""

    statement: str
    verdict: str
    evidence: str


Judged = tuple[str, str]  #: a verdict, and why
CLAIMS: dict[str, Callable[[Reproduction], Judged]] = {}


def verdict_of(answers: Sequence[Answer]) -> str:
    """What several answers to one question make.

    >>> verdict_of([True] * 9 + [None]), verdict_of([True, None]), verdict_of([True, False, None])
    ('holds', "can't be told", 'depends on what the paper does not say')
    """
    yes, no = (sum(answer is wanted for answer in answers) for wanted in (True, False))
    if yes and no:
        return DEPENDS
    if yes + no < AGREEMENT * len(answers) or not answers:
        return UNTOLD
    return HOLDS if yes else FAILS


def verdict_over_worlds(answers: Mapping[str, Answer], worlds: int) -> str:
    """The same of protocols that were run in full: too few of them may contradict each other, but not agree.

    >>> verdict_over_worlds({"the protocol of the tables": True}, 1)
    "can't be told"
    """
    verdict = verdict_of(list(answers.values()))
    return verdict if worlds >= ENOUGH or verdict == DEPENDS else UNTOLD


def claim(statement: str) -> Callable[[Callable[[Reproduction], Judged]], None]:
    """Decorator: the function judges a claim of the paper from all that was found."""

    def register(judge: Callable[[Reproduction], Judged]) -> None:
        CLAIMS[statement] = judge

    return register


#: From what was found to the question for each protocol that fits, and what our own runs say of it.
OnMeans = Callable[[Reproduction], tuple[Question, str]]


def claim_on_means(statement: str) -> Callable[[OnMeans], None]:
    """Decorator: a claim on mean accuracies, asked of every protocol that fits the printed numbers."""

    def register(asked: OnMeans) -> None:
        def judge(found: Reproduction) -> Judged:
            question, evidence = asked(found)
            fits = found.fits
            if fits is None:
                return UNTOLD, f"{evidence} {say('claims', 'no_search')}"
            count = fits.ask(question)
            return verdict_of(list(count.fitting.values())), f"{evidence} {say('claims', 'over_protocols', count)}"

        CLAIMS[statement] = judge

    return register


OnWorld = Callable[[World], tuple[Answer, str]]


def claim_on_worlds(statement: str) -> Callable[[OnWorld], None]:
    """Decorator: a claim on recalls, spreads or epochs, asked of every protocol that was run in full."""

    def register(asked: OnWorld) -> None:
        def judge(found: Reproduction) -> Judged:
            judged = {world.title: asked(world) for world in found.worlds}
            answers = {title: answer for title, (answer, _) in judged.items()}
            own = judged[found.worlds[0].title][1]
            tail = say("claims", "over_worlds", answers, len(answers), N_PROTOCOLS, ENOUGH)
            return verdict_over_worlds(answers, len(answers)), f"{own} {tail}"

        CLAIMS[statement] = judge

    return register
