"""A verdict in words, the same wherever it is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuconsole.images.verdict import Effect, Judgement, Verdict, Word

OF_THE_MACHINE = frozenset({"missing-driver", "missing-compute-capability", "missing-architecture"})
"""What is missing of the machine is said once, above all images."""
_KEPT_BACK = frozenset({"no-native-fp8", "facts-unsure"})
"""Notes that are not told with the reasons: of every older GPU, and what is told by itself."""
_WORDS = {
    Word.RUNS: "runs",
    Word.RUNS_WITH: "with limits",
    Word.UNKNOWN: "unknown",
    Word.WILL_NOT_RUN: "will not run",
}


def plain_words(word: Word) -> str:
    """The verdict in words: ``will not run``."""
    return _WORDS[word]


def explained(verdict: Verdict) -> Iterator[str]:
    """Why, in sentences: nothing where it simply runs; each kind of GPU by name where they differ."""
    if len({each.word for each in verdict.gpus}) > 1:
        for words, label in grouped((_why(each), each.gpu) for each in verdict.gpus):
            yield f"{label}: {words}"
        return
    yield from decisive(verdict)


def _why(judgement: Judgement) -> str:
    words = plain_words(judgement.word)
    told = "; ".join(decisive(judgement))
    return f"{words}: {told}" if told else words


def decisive(verdict: Verdict | Judgement, *, of_the_machine: bool = False) -> list[str]:
    """The reasons that make the verdict, without what is only a note beside a worse one.

    Args:
        verdict: Of one GPU, or of all.
        of_the_machine: Also what is missing of the machine, where that is not told above all images.
    """
    if verdict.word is Word.RUNS:
        return [
            reason.text for reason in verdict.reasons if reason.effect is Effect.NOTE and reason.id not in _KEPT_BACK
        ]
    worst = verdict.reasons[0].effect
    told = (each for each in verdict.reasons if each.effect is worst)
    return list(dict.fromkeys(each.text for each in told if of_the_machine or each.id not in OF_THE_MACHINE))


def grouped(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """What is the same of several GPUs, with the GPUs; of GPUs with one name the numbers are enough."""
    groups: dict[tuple[str, str], list[str]] = {}
    for words, label in pairs:
        number, _, name = label.partition(" (")
        groups.setdefault((words, name), []).append(number.removeprefix("GPU "))
    for (words, name), numbers in groups.items():
        kind = "GPU" if len(numbers) == 1 else "GPUs"
        yield words, f"{kind} {' '.join(numbers)}{f' ({name}' if name else ''}"
