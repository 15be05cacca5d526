"""Verbs as typed functions: the signature is the command line, and click is the parser.

Parameters before ``*`` are arguments, those after it options. A parameter whose type is a dataclass stands
for the fields that its constructor takes, and the verb is given the record. The type says which values there
are: bool a flag, Literal a choice, Path a file, a tuple several values; None or a default makes it optional.
Annotated adds the rest: a text that begins with a dash is the name, another the help, an Option other facts.
options.py has the types that verbs share.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, overload

import click

from ...base.errors import WarpsimError
from .output import CONTEXT, Ended, fail

_OLDER = "older_"  # before the name of a parameter: the value given under its older name


@dataclass(frozen=True, kw_only=True)
class Option:
    """The facts of an option or an argument that its type does not state.

    ``flag`` is for a Literal of two values: that without and that with the flag. ``parse`` makes a value of a
    text; it raises WarpsimError, ValueError or UsageError. ``older`` is a name that stays valid and is not
    shown. ``shown`` is the default in words. ``suggest`` yields completions of a text.
    """

    names: tuple[str, ...] = ()
    help: str | None = None
    metavar: str | None = None
    flag: bool = False
    type: Any = None  # of click, where the Python type is not enough
    parse: Callable[[str], Any] | None = None
    older: str = ""
    shown: str = ""
    suggest: Callable[[click.Context, str], Iterable[str]] | None = None

    def amended(self, more: Option | str) -> Option:
        """Return this with the facts of a further annotation, which take precedence."""
        if isinstance(more, str):
            return replace(self, names=(more,)) if more.startswith("-") else replace(self, help=more)
        given = {each.name: getattr(more, each.name) for each in fields(Option)}
        return replace(
            self, **{name: value for name, value in given.items() if value not in (None, "", (), False)}
        )


Json = Annotated[bool, "--json", "Print one JSON document instead of text."]


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """A parameter of a verb or a field of its records; ``default`` is MISSING where a value is required."""

    name: str
    type: Any
    option: Option
    default: Any
    positional: bool

    @classmethod
    def of(cls, name: str, annotation: Any, default: Any, *, positional: bool) -> Parameter:
        """Return the parameter that an annotation describes."""
        found: Any = annotation
        facts = tuple[Option | str, ...]()
        if get_origin(annotation) is Annotated:
            found, facts = annotation.__origin__, annotation.__metadata__
        option = Option()
        for each in facts:
            option = option.amended(each)
        if get_origin(found) in (Union, UnionType):
            (found,) = (each for each in get_args(found) if each is not NoneType)
            default = None if default is MISSING else default
        elif found is bool or option.flag:
            default = False
        elif get_args(found)[-1:] == (...,) and not positional:
            default = ()
        return cls(name=name, type=found, option=option, default=default, positional=positional)

    @property
    def _flag(self) -> bool:
        return self.type is bool or self.option.flag

    @property
    def _sizes(self) -> tuple[Any, ...]:
        """The types of several values, the last an ellipsis where there is any number of them."""
        return get_args(self.type) if get_origin(self.type) is tuple else ()

    def made(self) -> Iterator[click.Parameter]:
        """Yield the parameter of click, and that of the older name, which is hidden."""
        option, given, several = self.option, self._given(), self._sizes[-1:] == (...,)
        if self.positional:
            given |= {"nargs": -1} if several else {}
            yield click.Argument([self.name], **given)
            return
        names = option.names or ("--" + self.name.replace("_", "-"),)
        given |= {"is_flag": True} if self._flag else {"multiple": several}
        shown: Any = option.shown or "default" in given
        yield click.Option([*names, self.name], help=option.help, show_default=shown, **given)
        if option.older:
            given = {name: value for name, value in given.items() if name not in ("required", "default")}
            yield click.Option([option.older, _OLDER + self.name], hidden=True, **given)

    def _given(self) -> dict[str, Any]:
        option, given = self.option, dict[str, Any]()
        given |= {"required": self.default is MISSING, "metavar": option.metavar, "callback": self._parsed}
        if not self._flag:
            given["type"] = option.type or self._type()
        if self._sizes and ... not in self._sizes and option.parse is None:
            given["nargs"] = len(self._sizes)
        if not any(self.default is each for each in (None, False, (), MISSING)):
            given["default"] = self.default
        if suggest := option.suggest:
            given["shell_complete"] = lambda context, _, text: list(suggest(context, text))
        return given

    def _type(self) -> Any:
        item = self._sizes[0] if self._sizes else self.type
        if get_origin(item) is Literal:
            return click.Choice(get_args(item))
        if self.option.parse is not None:
            return str
        return click.Path(path_type=Path, dir_okay=False) if item is Path else item

    def _parsed(self, context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        """Return the value of a text. Raises BadParameter."""
        parse = self.option.parse
        if self.option.flag:
            return get_args(self.type)[bool(value)]
        if value is None or parse is None:
            return value
        try:
            return tuple(map(parse, value)) if isinstance(value, tuple) else parse(value)
        except WarpsimError as error:
            excerpt = "" if error.location is None else f"\n{error.location.excerpt()}"
            raise click.BadParameter(f"{error.message}{excerpt}") from None
        except ValueError as error:
            raise click.BadParameter(str(error)) from None

    def settle(self, given: dict[str, Any]) -> None:
        """Put the value that is given under the older name in its place. Raises UsageError for both."""
        older = given.pop(_OLDER + self.name, None)
        if older is None:
            return
        if given[self.name] != (None if self.default is MISSING else self.default):
            name = (self.option.names or (f"--{self.name}",))[-1]
            raise click.UsageError(f"{self.option.older} is another name of {name}: give one of them")
        given[self.name] = older


@overload
def verb(function: Callable[..., int]) -> click.Command: ...


@overload
def verb(
    *, json: bool, kind: type[click.Command], **settings: Any
) -> Callable[[Callable[..., int]], click.Command]: ...


def verb(
    function: Callable[..., int] | None = None,
    *,
    json: bool = True,
    kind: type[click.Command] = click.Command,
    **settings: Any,
) -> Any:
    """Return the command of a function, which returns an exit code; its docstring is the help.

    ``settings`` are those of click's context. ``json`` adds --json, which a verb may take as ``as_json``.
    """
    if function is None:
        return lambda decorated: _command(decorated, json, kind, settings)
    return _command(function, json, kind, settings)


def _command(
    function: Callable[..., int], json: bool, kind: type[click.Command], settings: Mapping[str, Any]
) -> click.Command:
    parameters, records = _taken(function)
    if json and "as_json" not in parameters:
        parameters["as_json"] = Parameter.of("as_json", Json, False, positional=False)
    taken = inspect.signature(function).parameters.keys() - records.keys()

    def run(**given: Any) -> int:
        for each in parameters.values():
            each.settle(given)
        made = {each: record(fields_of, given) for each, fields_of in records.items()}
        try:
            return function(**made, **{each: given[each] for each in taken})
        except Ended as ended:
            return fail(ended.failure, given.get("as_json", False), ended.rest)

    return kind(
        function.__name__,
        params=[made for each in parameters.values() for made in each.made()],
        callback=run,
        help=function.__doc__,
        context_settings={**CONTEXT, **settings},
    )


def _taken(function: Callable[..., int]) -> tuple[dict[str, Parameter], dict[str, type]]:
    """Return the parameters of a function, those of its records in their place, and the records by name."""
    annotations = inspect.get_annotations(function, eval_str=True)
    parameters, records = dict[str, Parameter](), dict[str, type]()
    for name, each in inspect.signature(function).parameters.items():
        annotation = annotations[name]
        if is_dataclass(annotation):
            records[name] = annotation  # type: ignore[assignment]
            parameters |= _fields(annotation)
            continue
        default = MISSING if each.default is each.empty else each.default
        positional = each.kind is not each.KEYWORD_ONLY
        parameters[name] = Parameter.of(name, annotation, default, positional=positional)
    return parameters, records


def _fields(record: Any) -> dict[str, Parameter]:
    """Return the fields that a record is made of; other annotations may name types that are not imported."""
    found = {}
    for each in fields(record):
        if each.init:
            owner = next(base for base in record.__mro__ if each.name in inspect.get_annotations(base))
            annotation = eval(
                str(each.type), vars(sys.modules[owner.__module__])
            )  # as inspect does of a function
            found[each.name] = Parameter.of(each.name, annotation, each.default, positional=False)
    return found


def record(kind: Any, given: Mapping[str, Any]) -> Any:
    """Return a record of options, of the values of a command line."""
    return kind(**{each.name: given[each.name] for each in fields(kind) if each.init})


def stated() -> set[str]:
    """Return the parameters of the running verb that the command line states."""
    context = click.get_current_context()
    default = click.core.ParameterSource.DEFAULT
    return {
        name.removeprefix(_OLDER)
        for name in context.params
        if context.get_parameter_source(name) is not default
    }
