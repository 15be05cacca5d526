"""Names for maps in a kernel's terms: what would make a dump hold those elements.

Each name is decided by the elements themselves: it is given where all that were located follow it, and not
otherwise. Knows rows, columns, lanes, registers and slots; does not know values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from .dump_places import Index, Places
from .index_maps import Flags, Space
from .map_formulas import where_of

_PARTS = {4: "nibbles of a word", 8: "bytes of a word"}
IN_ORDER = "in the order of the layout"
_TILES = 4  # that are listed
_MATRIX = 8  # rows of a matrix that ldmatrix loads, and of 16 bytes each


@dataclass(frozen=True, kw_only=True)
class Found:
    """Where the elements of ``places`` that ``followed`` a map were located: ``row`` and ``column``, in a
    matrix. ``space`` is that of the map.
    """

    places: Places
    followed: Flags
    row: Index
    column: Index
    space: Space

    def of(self, values: Index) -> Index:
        """Return values of the places that followed."""
        return values[self.followed]


@dataclass(frozen=True)
class Name:
    """What was done, and what to change."""

    text: str
    advice: str


def names_of(found: Found, *, alone: bool = True) -> Name | None:
    """Return the first name that all located elements follow; of one part among others only an offset."""
    if not found.places.belongs:
        return None
    return next((name for check in (_CHECKS if alone else (_shifted,)) for name in check(found)), None)


# --- the place of a tile -----------------------------------------------------------------------------------


def origin_of(found: Found) -> tuple[int, int] | None:
    """Return row and column of the tile in which all located elements lie, in multiples of a tile's size."""
    places = found.places
    origin = []
    for values, size in ((found.row, places.rows), (found.column, places.columns)):
        tiles = np.unique(found.of(values) // size)
        if len(tiles) != 1:
            return None
        origin.append(int(tiles[0]) * size)
    return origin[0], origin[1]


def _inside(found: Found) -> tuple[Index, Index] | None:
    """Return the places, and the places where what they hold belongs, if it is all of one tile."""
    origin = origin_of(found)
    if origin is None:
        return None
    here = np.flatnonzero(found.followed)
    there = found.places.at[found.of(found.row) - origin[0], found.of(found.column) - origin[1]]
    return (here, there) if (there >= 0).all() else None


def _shifted(found: Found) -> Iterator[Name]:
    """Yield another tile, step or offset."""
    places = found.places
    down = np.unique(found.of(found.row) - found.of(places.row))
    across = np.unique(found.of(found.column) - found.of(places.column))
    if len(down) != 1 or len(across) != 1:
        return
    by = int(down[0]), int(across[0])
    if by[0] % places.rows or by[1] % places.columns:
        texts = [
            f"{abs(n)} {what}{'s'[: abs(n) != 1]} {way[n < 0]}"
            for n, what, way in ((by[0], "row", ("down", "up")), (by[1], "column", ("on", "back")))
            if n
        ]
        sizes = f"row + {by[0]}, column + {by[1]}".replace("+ -", "- ")
        yield Name(f"everything is taken {' and '.join(texts)} ({sizes})", "check the base address")
    else:
        yield Name(IN_ORDER, "")


# --- registers, slots, lanes -------------------------------------------------------------------------------


def _moved(found: Found) -> Iterator[Name]:
    """Yield whole registers, slots or lanes that hold what belongs in others."""
    both = _inside(found)
    if both is None:
        return
    here, there = both
    places = found.places
    same = {
        name: (values[here] == values[there]).all()
        for name, values in (("lane", places.lane), ("register", places.register), ("slot", places.slot))
    }
    if same["lane"] and same["slot"] and (order := _order(places.register, here, there)):
        yield _registers(places.operand, order)
    elif same["lane"] and same["register"] and (order := _order(places.slot, here, there)):
        yield _slots(places, order)
    elif same["register"] and same["slot"] and (order := _order(places.lane, here, there)):
        name = _lanes(order, by_rule=bool(places.legend))  # rows say more of metadata and scales
        if name is not None:
            yield name


def _order(values: Index, here: Index, there: Index) -> dict[int, int]:
    """Return which number each number holds; empty unless there is a single answer."""
    pairs = {(int(a), int(b)) for a, b in zip(values[here], values[there], strict=True)}
    order = dict(sorted(pairs))
    return order if len(order) == len(pairs) else {}


def _exchange(order: dict[int, int]) -> tuple[int, int] | None:
    moved = [(a, b) for a, b in order.items() if a != b]
    return moved[0] if len(moved) == 2 and moved[0] == moved[1][::-1] else None


def _registers(operand: str, order: dict[int, int]) -> Name:
    if swapped := _exchange(order):
        first, second = swapped
        text = f"registers {first} and {second} are exchanged"
        return Name(
            f"{text} ({operand}{first} holds what belongs in {operand}{second})", "store them in order"
        )
    copies = [f"{operand}{a} repeats {operand}{b}" for a, b in order.items() if a != b and order.get(b) == b]
    if copies:
        return Name(f"{', '.join(copies)}", "each register has elements of its own: check the addresses")
    held = tuple(order.values())
    return Name(f"register i holds what belongs in register {held}[i]", "reorder the registers")


def _slots(places: Places, order: dict[int, int]) -> Name:
    held = tuple(order.values())
    if places.operand == "e":
        return Name(
            f"fields of a word are in another order: field j is that of {held}[j]", "reorder the fields"
        )
    if places.legend:
        text = f"bytes {tuple(order)} of a word hold those that belong in {held}"
        return Name(text, "the scale of the first chunk of k belongs in the lowest byte")
    if len(held) == 2:
        return Name("the halves of each word are exchanged", "element 0 belongs in the lowest bits")
    what = _PARTS.get(places.bits, "elements of a word")
    text = f"{what} are in another order: {what.split()[0][:-1]} j is that of {held}[j]"
    if held == tuple(range(len(held)))[::-1]:
        text = f"{what} are in reverse order (big-endian)"
    elif held == tuple(j ^ 1 for j in range(len(held))):
        text = f"{what} are exchanged in pairs, {held}[j]"
    return Name(text, "element 0 belongs in the lowest bits, and the others follow in order")


def _lanes(order: dict[int, int], *, by_rule: bool) -> Name | None:
    """Return which lane each lane holds; ``by_rule``: None for an order that follows no rule."""
    mine, held = np.array(list(order)), np.array(list(order.values()))
    advice = "check the lane in the address"
    if rule := _lane_rule(mine, held):
        return Name(f"lane l holds what belongs in lane {rule}", advice)
    if (mine % 8 * 4 + mine // 8 % 4 + mine // 32 * 32 == held).all():
        text = "lane l holds row l % 8 and column pair l / 8, not row l / 4 and pair l % 4"
        return Name(text, "g = lane / 4 and t = lane % 4")
    if by_rule:
        return None
    moved = int((mine != held).sum())
    first = ", ".join(f"lane {a} that of lane {b}" for a, b in [p for p in order.items() if p[0] != p[1]][:3])
    return Name(f"{moved} lanes hold what belongs in others: {first}", advice)


def _lane_rule(mine: Index, held: Index) -> str:
    """Return an exclusive or, or a rotation, of lanes; empty for another order."""
    for bit in range(1, 128):
        if (mine ^ bit == held).all():
            return f"l ^ {bit}"
    for by in (*range(1, 32), *range(-31, 0)):
        if ((mine + by) % 32 + mine // 32 * 32 == held).all():
            return f"(l + {by}) % 32"
    return ""


# --- rows and columns -----------------------------------------------------------------------------------


def _transposed(found: Found) -> Iterator[Name]:
    """Yield blocks, or the whole, with rows and columns for each other."""
    both = _inside(found)
    if both is None:
        return
    places, (here, there) = found.places, both
    r, c, row, column = places.row[here], places.column[here], places.row[there], places.column[there]
    if (r == column).all() and (c == row).all():
        yield Name(
            "the matrix is transposed: it is read column-major", "exchange the strides of row and column"
        )
        return
    size = _MATRIX
    blocks = (r // size == row // size) & (c // size == column // size)
    turned = blocks & (r % size == column % size) & (c % size == row % size)
    if not turned.all():
        return
    if places.legend:
        rows, columns = places.axes
        yield Name(f"each {size} x {size} block has its {rows}s and {columns}s exchanged", "check the lane")
        return
    yield Name(
        f"each {size} x {size} block is transposed: ldmatrix with .trans where it must not be, or "
        "without .trans where it must",
        "A from rows and B from columns of contiguous k need no .trans; the other way round both do",
    )


def _halves(found: Found) -> Iterator[Name]:
    """Yield rows, or columns, that are those with a bit flipped, or another order of whole rows."""
    both = _inside(found)
    if both is None:
        return
    places, (here, there) = found.places, both
    for what, mine, other in (("row", places.row, places.column), ("column", places.column, places.row)):
        if (other[here] != other[there]).any():
            continue
        order = _order(mine, here, there)
        held = np.array(list(order.values()), np.intp)
        own = np.array(list(order), np.intp)
        if not order:
            continue
        flip = int(own[0] ^ held[0])
        if flip and ((own ^ flip) == held).all():
            pairs = (
                f" ({what}s 0 to {flip - 1} hold {what}s {flip} to {2 * flip - 1})"
                if flip in (2, 4, 8)
                else ""
            )
            text = f"{what}s are exchanged: {what} j holds {what} j ^ {flip}{pairs}"
            yield Name(text, f"check the {what} in the address")
        elif len(set(order.values())) < len(order) and (own % (held.max() + 1) == held).all():
            text = f"{what}s repeat: {what} j holds {what} j % {held.max() + 1}"
            yield Name(text, f"the addresses lack a part of the {what}")
        else:
            text = f"{what}s are in another order: {what} j holds {what} {tuple(held.tolist())}[j]"
            yield Name(text, f"check the {what} in the address")


def _swizzled(found: Found) -> Iterator[Name]:
    """Yield chunks of a row that are exchanged by an exclusive or with bits of the row."""
    places = found.places
    for row, column, source, size in (
        (places.row, places.column, (found.row, found.column), places.columns),
        (places.column, places.row, (found.column, found.row), places.rows),
    ):
        if (found.of(source[0]) != found.of(row)).any():
            continue
        chunk = max(1, 128 // places.bits)
        for first in range(0, int(source[1].max()) + 1, size):
            moved = found.of(source[1]) ^ (found.of(column) + first)
            if (moved % chunk).any() or not moved.any():
                continue
            for shift, mask in ((s, m) for m in (7, 3, 1) for s in (0, 1, 2)):
                if (moved // chunk == (found.of(row) >> shift & mask)).all():
                    what = f"chunks of {chunk} elements (16 bytes)"
                    by = f"row >> {shift} & {mask}" if shift else f"row & {mask}"
                    text = f"{what} are swizzled on one side only: chunk ^ ({by}), from column {first} on"
                    yield Name(text, "store and load by the same swizzle")
                    return


def _strided(found: Found) -> Iterator[Name]:
    """Yield a wrong distance between rows in memory."""
    space = found.space
    if space.xor:
        return
    plain = [
        Space(space.rows, space.columns, space.columns),
        Space(space.rows, space.columns, space.rows, across=True),
    ]
    for each in plain if space.separate else [space]:
        yield from _stride_of(found, each)


def _stride_of(found: Found, space: Space) -> Iterator[Name]:
    places = found.places
    address = found.of(space.addresses(found.row, found.column))
    row, column = found.of(places.row), found.of(places.column)
    system = np.stack([row, column, np.ones_like(address)], axis=1).astype(np.float64)
    solved, _, rank, _ = np.linalg.lstsq(system, address.astype(np.float64), rcond=None)
    down, along, base = (round(float(each)) for each in solved)
    if rank < 3 or min(down, along) < 1 or (row * down + column * along + base != address).any():
        return
    stride, own = space.stride, space.rows if space.across else space.columns
    outer, inner, right = ("column", "row", (1, stride)) if space.across else ("row", "column", (stride, 1))
    if (down, along) == right and stride == own:
        return
    start = f" {'-+'[base > 0]} {abs(base)}" if base else ""
    padded = f" ({outer}s padded by {stride - own})" if stride > own else ""
    read = " + ".join(what if by == 1 else f"{by}*{what}" for by, what in ((down, "row"), (along, "column")))
    text = f"read at {read}{start}, where it lies at {stride}*{outer} + {inner}{padded}: a wrong stride (ld)"
    if (down == 1) != space.across:
        text = text.replace("a wrong stride (ld)", "another order, row-major against column-major")
    yield Name(text, "store and load with the same strides")


def _of_several_tiles(found: Found) -> Iterator[Name]:
    """Yield a tile in the order of the layout whose parts are of several tiles or steps."""
    places = found.places
    down, across = (
        found.of(found.row) - found.of(places.row),
        found.of(found.column) - found.of(places.column),
    )
    if (down % places.rows).any() or (across % places.columns).any():
        return
    tiles = np.unique(np.stack([down, across], axis=1), axis=0)
    if not 1 < len(tiles) <= _TILES:
        return
    texts = []
    for row, column in tiles.tolist():
        chosen = np.zeros_like(found.followed)
        chosen[found.followed] = (down == row) & (across == column)
        which = where_of(places, chosen, by_row=True) or f"{int(chosen.sum())} elements"
        along = row // places.rows if places.operand == "b" else column // places.columns
        step = f" (k step {along})" if places.operand in "abe" else ""
        texts.append(f"{which} from row {row}, column {column} on{step}")
    yield Name(f"{IN_ORDER}, but of several tiles: {'; '.join(texts)}", "check the address of each load")


_CHECKS: tuple[Callable[[Found], Iterator[Name]], ...] = (
    _shifted,
    _moved,
    _transposed,
    _swizzled,
    _strided,
    _halves,
    _of_several_tiles,
)
