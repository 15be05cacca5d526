"""From wrong keys to a record: outputs as a whole, then elements one by one, then the proof on several of
them.

Knows a comparison with provenance; does not execute.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from ....base.errors import Location
from ....machine.run.wave import Record
from ....ptx.statements import InstructionStatement, operand_names
from ..equivalence import Output
from ..keys.constant_keys import LOG2E
from ..keys.key_index import Index
from ..leaves import Leaves
from ..provenance import Provenance
from ..shadow_arrays import Shadow, Trace
from .expansions import SUMS
from .formula_alignment import Aligner
from .formula_graphs import KernelGraph, Name, ReferenceGraph, rational
from .located_record import CHOICES, Certainty, Located, user_location
from .operand_copies import copies_of, loads_of
from .output_maps import index_map, whole_output
from .value_edits import Edit, cost, is_restated

_TRIED = 8  # wrong elements that a mistake is searched in
_MOST_EVALUATED = 100_000  # values, of further elements on which it is proven
_NAMELESS, _LONGEST = "a value without a name", 100  # characters of a formula with values without names
_SPREAD = 7919  # a prime: places one behind the other become places far apart
_METADATA = 4  # the operand of mma.sp that chooses
_FEW = 3  # kinds of edits that are one mistake: a sum and what divides by it


class Sides(NamedTuple):
    """Both sides of a comparison: provenance, trace of the reference, and names of arguments."""

    outputs: Sequence[Output]
    provenance: Provenance
    leaves: Leaves
    trace: Trace
    names: Sequence[str]
    code: Sequence[Record]
    written_by: Mapping[tuple[int, str], Set[int]]


class Element(NamedTuple):
    """A wrong element: its edits, and whether they make it the reference's."""

    place: Index
    edits: list[Edit]
    proven: bool

    @property
    def kinds(self) -> set[tuple[str, str]]:
        """The kinds of its edits, with their operations."""
        return {(edit.kind, edit.detail) for edit in self.edits}


def located(sides: Sides) -> Located | None:
    """Return where the kernel leaves the reference, for the output with most wrong elements, if any."""
    wrong = [output for output in sides.outputs if output.other.any()]
    if not wrong:
        return None
    return _Search(sides, max(wrong, key=lambda output: int(output.other.sum()))).found()


class _Search:
    def __init__(self, sides: Sides, output: Output) -> None:
        self.sides, self.output = sides, output
        values = [(sides.leaves.value(sides.trace, own), own) for own in sides.leaves.arguments]
        given = [each if isinstance(each, Shadow) else None for each, _ in values]
        self.numbers = {  # of arguments that the reference does not use
            int(each.keys): own.name
            for each, own in values
            if isinstance(each, Shadow) and own.keys is None and not each.ndim
        }
        self.reference = ReferenceGraph(sides.trace, given, sides.names)
        self.kernel = KernelGraph(sides.provenance)
        self.name = sides.names[output.argument]
        self.seen = set[tuple[str, str]]()  # kinds of edits of the elements that are searched

    def found(self) -> Located:
        places = self.sides.leaves.arguments[self.output.argument].places
        whole = whole_output(self.output, self.sides.provenance.stores, places)
        chosen = self._chosen()
        first = [self._element(index) for index in chosen[:_TRIED]]
        self.seen = {kind for element in first if element.proven for kind in element.kinds}
        best = self._of_elements([self._decided(element) for element in first])
        if whole is None:
            return self._proven_on(chosen[_TRIED:], best)
        return Located(
            kind=whole.kind, pc=whole.pc, location=self._location(whole.pc), map=whole.words,
            output=self.name, first=whole.first, elements=int(self.output.other.sum()),
            checked=whole.elements, tried=whole.elements, certainty="proven",
            copies=best.copies if whole.kind == "moved" and best.kind == "operand" else (),
        )  # fmt: skip

    def _location(self, pc: int) -> Location | None:
        return user_location(self._statement(pc).location()) if pc >= 0 else None

    def _chosen(self) -> list[Index]:
        """Return wrong elements whose keys are no constants, first some that are far apart."""
        every = [tuple(map(int, index)) for index in np.argwhere(self.output.other)]
        both = [(int(self.output.kernel[index]), int(self.output.reference[index])) for index in every]
        varies = [all(key and self.reference.constant(key) is None for key in keys) for keys in both]
        plain = [*compress(every, varies)] or every
        places = np.unique(np.linspace(0, len(plain) - 1, _TRIED).astype(int)).tolist()
        rest = sorted(set(range(len(plain))) - set(places), key=lambda place: place * _SPREAD % len(plain))
        return [plain[place] for place in (*places, *rest)]

    def _proven_on(self, more: Sequence[Index], found: Located) -> Located:
        """Return a proven mistake with further elements tried, as many as the budget allows."""
        start, main = self.kernel.evaluated, (found.kind, found.operation)
        for index in more if found.proven else ():
            if self.kernel.evaluated - start > _MOST_EVALUATED:
                break
            element = self._decided(self._element(index))
            right = element.proven and main in element.kinds
            if element.proven and not right and element.kinds <= self.seen:
                continue  # another of the mistakes
            certainty: Certainty = "proven" if right else "located"
            found = replace(found, tried=found.tried + 1, checked=found.checked + right, certainty=certainty)
            if not right:
                break
        return found

    def _element(self, index: Index, wanted: int | None = None) -> Element:
        """Return an element compared with its key of the reference, or with another."""
        key = int(self.output.kernel[index])
        wanted = int(self.output.reference[index]) if wanted is None else wanted
        aligner = Aligner(self.kernel, self.reference, key, wanted)
        edits = aligner.edits(key, wanted)
        extra = [key for edit in edits if edit.kind == "extra term" for key in (edit.found, edit.partner)]
        strange = not all(self.reference.known(key) for key in extra if key)
        trivial = any(edit.kind == "unknown" for edit in edits) or (strange and is_restated(edits))
        return Element(index, edits, not trivial and aligner.proves(edits, key, wanted))

    def _decided(self, element: Element) -> Element:
        """Return an element whose wrong values took another decision, beside what the reference has there:
        with mistakes that other elements prove, and no others.
        """
        if not element.proven and self.seen:
            for other in self.reference.alternatives(int(self.output.reference[element.place])):
                found = self._element(element.place, other)
                if found.proven and found.edits and found.kinds <= self.seen:
                    return found
        return element

    # --- from elements to a record ---

    def _group(self, edit: Edit) -> tuple[Any, ...]:
        arrays = tuple(name.array if (name := self._name(key)) else "" for key in (edit.found, edit.wanted))
        operation = edit.detail if edit.kind in ("missing", "extra", "operation", "order") else ""
        return edit.kind, operation, *(arrays if edit.kind == "operand" else ())

    def _name(self, key: int) -> Name | None:
        return self.reference.name(key) if key else None

    def _of_elements(self, elements: list[Element]) -> Located:
        own = [dict.fromkeys(map(self._group, element.edits)) for element in elements]
        groups = Counter(group for each in own for group in each)
        sizes = Counter(self._group(edit) for element in elements for edit in element.edits)
        main = max(groups, key=lambda group: (group[0] != "unknown", groups[group], sizes[group]))
        mine = [element for element in elements if any(self._group(edit) == main for edit in element.edits)]
        middle = mine[len(mine) // 2 :] + mine[: len(mine) // 2]
        best = max(middle, key=lambda element: (element.proven, -round(cost(element.edits), 1)))
        edits = list(dict.fromkeys(edit for edit in best.edits if self._group(edit) == main))
        proven = sum(element.proven for element in mine)
        kinds = len({self._group(edit) for edit in best.edits})
        certainty: Certainty = "suspected"
        if main[0] == "unknown":
            inside = edits[0].pc >= 0 and edits[0].value != int(self.output.kernel[best.place])
            certainty = "located" if inside else "suspected"
        elif proven:
            every = all(element.proven for element in elements)
            rivals = self._is_result(edits[0]) and (len(mine) < len(elements) or self._is_elsewhere(edits[0]))
            certainty = "proven" if every and kinds <= _FEW and not rivals else "located"
        tried = len(mine) if certainty == "proven" else len(elements)
        return self._record(edits, best.place, (tried, proven), certainty, kinds - 1)

    def _is_result(self, edit: Edit) -> bool:
        """Return whether a result stands for another element of the same result.

        Where other elements are wrong in another way, each is right for a place that is wrong.
        """
        found, wanted = self._name(edit.found), self._name(edit.wanted)
        of_same = found is not None and wanted is not None and found.array == wanted.array
        return edit.kind == "operand" and of_same and wanted is not None and wanted.number >= 0

    def _is_elsewhere(self, edit: Edit) -> bool:
        """Return whether another thread has what belongs in place of a thread's own result: the rows of an
        operand are wrong, or the thread's own, with everything that it takes by these.
        """
        in_other = self.kernel.in_other_thread
        return edit.kind == "operand" and in_other(edit.value, edit.found, edit.wanted)

    def _record(
        self, edits: list[Edit], index: Index, counts: tuple[int, int], certainty: Certainty, others: int
    ) -> Located:
        twin = self._twin(edits[0]) if edits[0].kind == "operand" else []
        edits = twin or edits
        edit, (tried, proven) = edits[len(edits) // 2], counts
        pc = self._place_of_missing(edit, index) if edit.kind == "missing" else edit.pc
        pc = pc if pc >= 0 else int(self.output.writers[index])
        own = edit.value if edit.kind == "missing" and edit.detail not in CHOICES else 0
        partner = edit.partner or own
        moved, elsewhere = edit.kind == "operand" and self._is_moved(edit, index), self._is_elsewhere(edit)
        brought = [each._replace(found=each.partner) for each in edits] if elsewhere else edits
        role = self._operand(edit)
        way = copies_of(self.sides, brought, self._name, role * bool(twin)) if moved or twin else ((), None)
        copies, loaded = way
        loaded = None if elsewhere else loaded
        statement = self._statement(pc) if pc >= 0 else None
        words = () if statement is None else (statement.opcode, *statement.modifiers)
        chosen = any(word.partition("::")[0] == "sp" for word in words)
        if statement is not None and chosen and edit.kind == "operand":  # the load of the metadata
            loads = loads_of(self.sides.code, pc, operand_names((statement.operands or ())[_METADATA]))
            loaded = next((at for at in loads if "param" not in self._statement(at).modifiers), None)
        return Located(
            kind=edit.kind, pc=pc, location=self._location(pc), operation=edit.detail,
            found=self.say(edit.found), wanted=self.say(edit.wanted),
            partner=self.say(partner) if partner or edit.detail in CHOICES else "",
            map=self._map(edits), places=len(edits), output=self.name, first=index,
            elements=int(self.output.other.sum()), tried=tried, checked=proven, certainty=certainty,
            copies=tuple(filter(None, map(self._location, copies))),
            loaded=self._location(-1 if loaded is None else loaded),
            others=others, chosen=chosen, operand=role, elsewhere=elsewhere,
        )  # fmt: skip

    def _twin(self, edit: Edit) -> list[Edit]:
        """Return the elements that stand for those of another array in a matrix product, where two products
        are the same and the kernel lacks that of the reference; none where a use takes the wrong product.
        """
        user, sides = self.kernel.value(edit.value), self.sides
        found, wanted = (self.reference.value(key) for key in (edit.found, edit.wanted))
        lacks = self.kernel.value(edit.wanted) is None
        if not found or not wanted or user is None or edit.pc < 0 or not lacks:
            return []
        made = {each.pc for each in sides.provenance.products if (each.made == edit.found).any()}
        given = zip((self._statement(edit.pc).operands or ())[1:], user.operands, strict=False)
        names = [operand_names(each) for each, key in given if key == edit.found]
        used = {at for each in names for at in loads_of(sides.code, edit.pc, each, made) if at in made}
        pairs = [*zip(found.terms, wanted.terms, strict=False)]
        sides_of = {tuple(x != y for x, y in zip(*pair, strict=True)) for pair in pairs}
        alike = len(found.terms) == len(wanted.terms) and sides_of in ({(True, False)}, {(False, True)})
        if len(made) < 2 or len(used) != 1 or not alike:
            return []
        side, (pc,) = int((False, True) in sides_of), used
        own = [each for each in sides.provenance.products if each.pc == pc]
        held = np.concatenate([x.ravel() for each in own for x in (each.a, each.b)])
        return [
            Edit("operand", edit.value, edit.delta, pc, mine[side], theirs[side], mine[1 - side])
            for mine, theirs in pairs
            if mine[side] in held
        ]

    def _statement(self, pc: int) -> InstructionStatement:
        return self.sides.code[pc].statement

    def _is_moved(self, edit: Edit, index: Index) -> bool:
        """Return whether an element stands for another element, so that its load may be wrong: not where a
        result belongs, or another array of which this element is in the formula, too.
        """
        found, wanted = self._name(edit.found), self._name(edit.wanted)
        if found is None or wanted is None or found.array == wanted.array:
            return True
        own = self.reference.cone(int(self.output.reference[index]))
        return wanted.number < 0 and not own.has(edit.found)

    def _operand(self, edit: Edit) -> str:
        """Return which operand of a matrix instruction holds what was found; "" for none."""
        products = (each for each in self.sides.provenance.products if each.pc == edit.pc)
        holding = (role for each in products for role in "ab" if (getattr(each, role) == edit.found).any())
        return next(holding, "") if edit.found else ""

    def _place_of_missing(self, edit: Edit, index: Index) -> int:
        """Return where an operation is missing: at the user or the store of a sum, else at the value."""
        made = self.kernel.value(edit.found)
        if made is None or made.name not in SUMS or edit.value != edit.found:
            return edit.pc
        used = self.kernel.user(edit.found)
        return used if used >= 0 else int(self.output.writers[index])

    def _map(self, edits: list[Edit]) -> str:
        """Return how indices found follow from those wanted; of terms, which indices they have."""
        if edits[0].kind.endswith("term"):
            names = [self._name(edit.found or edit.wanted) for edit in edits]
            places = [name.place for name in names if name is not None]
            same_axes = len({len(place) for place in places}) == 1
            return _spans(places) if same_axes else f"{len(edits)} terms"
        pairs = [(self._name(edit.found), self._name(edit.wanted)) for edit in edits]
        same = [(a.place, b.place) for a, b in pairs if a and b and a.array == b.array]
        return index_map(same) if len(same) == len(pairs) and same else ""

    def say(self, key: int) -> str:
        """Return a key in words: its name, its number, or what it is computed of."""
        text = self._expression(key, 3)
        return text if len(text) < _LONGEST or _NAMELESS not in text else self._number(key)

    def _expression(self, key: int, depth: int) -> str:
        name, number = self._name(key), self.reference.constant(key)
        if key == LOG2E:
            return "log2(e)"
        if number is not None or key == 0:
            own = self.numbers.get(key, "")
            return f"{number or 0:g}" + f" (the value of {own})" * bool(own)
        if name is not None and (name.number < 0 or not name.array.startswith(("(shr", "(shl", "(and"))):
            return str(name)  # that of a line with several operations on bits is that of all of these
        made = self.kernel.value(key) if name is None else None
        made = made or self.reference.value(key)
        if made is None or depth == 0 or made.terms:
            return self._number(key)
        inner = [self._expression(each, depth - 1) for each in made.operands]
        sign = {"shr": ">>", "shl": "<<", "and": "&"}.get(made.name, made.name)
        if len(inner) == 2 and not sign.isalnum():
            return f"({inner[0]} {sign} {inner[1]})"
        return f"{made.name}({', '.join(inner)})"

    @staticmethod
    def _number(key: int) -> str:
        found = rational(key)
        return _NAMELESS if found is None else f"{found:.7g}"


def _spans(places: Sequence[Index]) -> str:
    """Return which indices there are, along the axes where they differ."""
    words = []
    for axis, numbers in enumerate(zip(*places, strict=True)):
        if len(set(numbers)) > 1 or len(places) == 1:
            words.append(f"index {axis}: {min(numbers)} to {max(numbers)}")
    return ", ".join(words) or f"{len(places)} terms"
