"""Timelines as rows and as SVG: what stands where, in which order."""

from __future__ import annotations

from functools import cache
from xml.etree import ElementTree

from tests.helpers.recorded import recorded_tiles
from tests.observe.recording.test_timeline import timeline
from warpsim.observe.recording.strips import Timeline
from warpsim.show.views.timelines.timeline import folded_ctas, panels_of, rows_in, rows_of, shown_links
from warpsim.show.views.timelines.timeline_svg import draw_timeline

SVG = "{http://www.w3.org/2000/svg}"


@cache
def cooperative() -> Timeline:
    return timeline("cooperative_f16", "latest")


@cache
def picture() -> ElementTree.Element:
    return ElementTree.fromstring(draw_timeline(cooperative(), "a <kernel>", ["schedule latest"]))


def classed(name: str) -> list[ElementTree.Element]:
    return [one for one in picture().iter() if name in one.get("class", "").split()]


def test_rows_stand_by_cta_warpgroup_and_warp() -> None:
    rows = rows_of(cooperative())
    assert rows[0].label == "CTA (0, 0, 0)"
    assert [row.label for row in rows if row.sort == "group"] == [
        "warpgroup 0: wgmma, stores",
        "warpgroup 1: wgmma, stores",
        "warpgroup 2: copies",
    ]
    assert [row.label for row in rows if row.sort == "warp"] == [f"warp {warp}" for warp in range(12)]
    labels = [row.label for row in rows]
    assert labels[labels.index("warp 3") + 1] == "wgmma"
    assert labels[labels.index("warp 8") + 1] == "copies"


def test_every_strip_stands_in_one_row_and_none_overlaps_in_flight() -> None:
    rows = rows_of(cooperative())
    assert sum(len(row.strips) for row in rows) == len(cooperative().strips)
    for row in rows:
        pairs = zip(row.strips, row.strips[1:], strict=False)
        assert row.sort != "flight" or all((one.last or 0) < two.first for one, two in pairs)


def test_the_picture_has_a_box_for_each_strip() -> None:
    found = cooperative()
    assert len(panels_of(found)) == 1
    assert len(classed("strip")) == len(found.strips)
    assert len(classed("warp")) == 12
    titles = [one.findtext(f"{SVG}title", "") for one in classed("copy-strip")]
    assert len(titles) == 14
    assert titles[0].startswith("line 133: cp.async.bulk.tensor.2d.")
    assert titles[0].endswith("CTA (0, 0, 0), warp 8, event 7 to event 27\n16,384 bytes\nmbarrier 0x18000")


def test_arrows_come_from_the_nearest_row() -> None:
    links = shown_links(cooperative(), rows_of(cooperative()))
    assert len([one for one in classed("arrow") if one.find(f"{SVG}title") is not None]) == len(links)
    assert {(one.source.warp, one.target.warp) for one in links if one.source.kind == "wgmma"} == {
        (0, 3),
        (4, 7),
    }


def test_it_says_what_it_is() -> None:
    texts = [one.text or "" for one in picture().iter(f"{SVG}text")]
    assert texts[:2] == ["a <kernel>", "schedule latest"]
    assert any(one.startswith("An order of events, not a performance model") for one in texts)
    assert {"fence", "at a barrier", "ends the wait"} <= set(texts)
    assert "does not end" not in texts
    assert not [one for one in texts if "Point at" in one]  # paper cannot be pointed at


def test_a_long_axis_is_broken() -> None:
    found = timeline("bulk_ring normal", "random:7")
    panels = panels_of(found)
    assert [panel.first for panel in panels[1:]] == [panel.past for panel in panels[:-1]]
    assert (panels[0].first, panels[-1].past) == (0, found.moments)
    rows, links = rows_of(found), shown_links(found, rows_of(found))
    shown = [rows_in(panel, rows, links) for panel in panels]
    assert all(sum(row.sort == "warp" for row in some) == 3 for some in shown)
    assert any(len(some) < len(rows) for some in shown)
    root = ElementTree.fromstring(draw_timeline(found, "bulk_ring"))
    assert sum(one.get("class") == "panel" for one in root.iter()) == len(panels)


def test_many_ctas_are_folded_to_a_row_each() -> None:
    found = recorded_tiles(3).timeline
    assert found is not None
    folded = folded_ctas(found)
    assert len(folded) == 8
    rows = rows_of(found, folded)
    assert [row.sort for row in rows if row.cta in folded] == ["fold"] * 8
    assert rows[-1].label == "CTA (2, 2, 0)"
    whole = [strip for row in rows_of(found) if row.cta == folded[0] for strip in row.strips]
    kinds = {(strip.kind, strip.first, strip.last) for strip in whole}
    assert {(strip.kind, strip.first, strip.last) for strip in rows[-8].strips} == kinds
    assert len(rows[-8].strips) < len(whole)
    root = ElementTree.fromstring(str(draw_timeline(found, "tiles")))
    assert sum(one.get("class") == "row fold" for one in root.iter()) == 8
    assert float(root.get("height", "0")) < 9 * 17 + 300
    assert not folded_ctas(cooperative())
