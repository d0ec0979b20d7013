"""What can be set of attacks, defences, answers and detectors, read off the library's own tables."""

from __future__ import annotations

import inspect
import json
from dataclasses import dataclass, field
from typing import Any, Callable, Mapping, TypeVar, Union

from . import _core
from ._core import EvenkeelError

#: A value of a setting: a number, a name, a switch, or text such as "4/255"; None leaves it to the entry.
Setting = Union[bool, int, float, str, Any, None]
Function = TypeVar("Function", bound=Callable[..., Any])

#: Every table: its entries, each with the settings that it reads.
TABLES: dict[str, list[dict[str, Any]]] = json.loads(_core.tables())


@dataclass(frozen=True)
class Spec:
    """An entry of a table with settings; `ek.defence("equivariance", steps=5)` makes one.

    >>> import evenkeel as ek
    >>> ek.defence("equivariance", steps=5).values["steps"]
    5
    >>> ek.defence("equivariance", stepz=5)
    Traceback (most recent call last):
    ...
    evenkeel.EvenkeelError: defence equivariance: has no setting `stepz`; it reads epsilon, norm, steps, step_size, schedule, views, pairing, cells
    """

    table: str
    name: str
    given: Mapping[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.values  # refuses what cannot be used

    @property
    def values(self) -> dict[str, Setting]:
        """Every value that decides what it does, by its key in files."""
        values: dict[str, Setting] = json.loads(_core.settings(self.table, self.name, dict(self.given)))
        return values

    @property
    def pair(self) -> tuple[str, dict[str, Setting]]:
        return self.name, dict(self.given)


def names(table: str) -> list[str]:
    """The names of a table.

    >>> import evenkeel as ek
    >>> "equivariance" in ek.names("defence")
    True
    """
    if table not in TABLES:
        raise EvenkeelError(f"table {table}: is not one of {', '.join(TABLES)}")
    return [entry["name"] for entry in TABLES[table]]


def knobs(table: str) -> dict[str, dict[str, Any]]:
    """Every setting of a table."""
    found: dict[str, dict[str, Any]] = {}
    for entry in TABLES[table]:
        for knob in entry["settings"]:
            found.setdefault(knob["name"], knob)
    return found


def _lines(table: str, prefix: str) -> str:
    lines = []
    for knob in knobs(table).values():
        default = f" [default: {knob['default']}]" if knob["default"] is not None else ""
        lines.append(f"    {prefix}{knob['name']}: {knob['help']}; {knob['accepts']}{default}")
    return "\n".join(lines)


def _entries(table: str) -> str:
    lines = []
    for entry in TABLES[table]:
        reads = ", ".join(knob["name"] for knob in entry["settings"])
        lines.append(f"    {entry['name']}: {entry['about']}" + (f"\n        reads {reads}" if reads else ""))
    return "\n".join(lines)


def documented(**tables: str) -> Callable[[Function], Function]:
    """Adds the settings of tables, each under a prefix, to a function's signature and documentation."""

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)
        own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
        text = [inspect.cleandoc(function.__doc__ or "")]
        for table, prefix in tables.items():
            for knob in knobs(table):
                if prefix + knob not in signature.parameters:
                    kind = inspect.Parameter.KEYWORD_ONLY
                    own.append(inspect.Parameter(prefix + knob, kind, default=None, annotation="Setting"))
            plural = table + "s"
            text.append(f"{plural.capitalize()}:\n{_entries(table)}")
            text.append(f"Settings of {plural} (what an entry does not read is refused):\n{_lines(table, prefix)}")
        function.__signature__ = signature.replace(parameters=own)  # type: ignore[attr-defined]
        function.__doc__ = "\n\n".join(text)
        return function

    return decorate


def taken_apart(given: Mapping[str, Setting]) -> dict[str, dict[str, Setting]]:
    """Settings with prefixes (`defence_steps`) by table."""
    apart: dict[str, dict[str, Setting]] = {"defence": {}, "answer": {}, "detector": {}}
    for key, value in given.items():
        table, _, knob = key.partition("_")
        if table not in apart or not knob:
            raise EvenkeelError(f"`{key}`: settings of a pipeline start with defence_, answer_ or detector_")
        apart[table][knob] = value
    return apart


def spec_of(table: str, chosen: Union[str, Spec, None], given: Mapping[str, Setting]) -> Union[Spec, None]:
    """The spec that a name (or a spec) and settings make."""
    if chosen is None:
        if given:
            raise EvenkeelError(f"`{table}_{next(iter(given))}`: has no effect without {table}=NAME")
        return None
    if isinstance(chosen, Spec):
        if chosen.table != table:
            raise EvenkeelError(f"{table}: this is of the table {chosen.table}")
        return Spec(table, chosen.name, {**chosen.given, **given})
    if not isinstance(chosen, str):
        raise EvenkeelError(f"{table}: a name is needed, not a {type(chosen).__name__}")
    return Spec(table, chosen, dict(given))


@documented(defence="")
def defence(name: str, **settings: Setting) -> Spec:
    """A defence with its settings, for `ek.Pipeline`."""
    return Spec("defence", name, settings)


@documented(answer="")
def answer(name: str, **settings: Setting) -> Spec:
    """An answer with its settings, for `ek.Pipeline`."""
    return Spec("answer", name, settings)


@documented(detector="")
def detector(name: str, **settings: Setting) -> Spec:
    """A detector with its settings, for `ek.Pipeline`."""
    return Spec("detector", name, settings)
