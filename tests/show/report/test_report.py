"""The interactive report: its data, its page, and its scripts in an engine without a browser."""

from __future__ import annotations

import base64
import json
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np
import pytest

import warpsim
from tests.helpers.families import sample
from tests.helpers.nasty import arithmetics
from tests.helpers.nasty import name as form_name
from tests.helpers.reports import PATHS, TRACES, Scripts, data, example, nasty_run, run_of
from warpsim.isa.formats import FORMATS, Specials
from warpsim.isa.fragments import metadata_map
from warpsim.isa.operand_places.places import feeds, lane_places, places
from warpsim.show.cli import cli
from warpsim.show.cli import main as run_cli
from warpsim.show.report.arrays import Pool
from warpsim.show.report.document import gather
from warpsim.show.report.expectations import expectations
from warpsim.show.report.layouts import PLACE_FIELDS, format_documents
from warpsim.show.report.page import bundle
from warpsim.show.views.explanation_documents import explanation_document
from warpsim.sums.execution.pipeline import rule_for
from warpsim.workbench.explanation.explain import explain_inputs
from warpsim.workbench.explanation.gathered_operands import from_registers
from warpsim.workbench.traces.reading import read_trace
from warpsim.workbench.traces.running import run_trace

SPARSE = "mma_sp_m16n8k32_f16"
STATIC = Path(warpsim.__file__).parent / "show" / "report" / "static"


@pytest.fixture(scope="module")
def scripts() -> Iterator[Scripts]:
    engine = Scripts()
    yield engine
    engine.close()


def flipped(folder: Path, array: str = "d3", word: tuple[int, int] = (27, 0), bit: int = 20) -> Path:
    """The sparse example with one bit of what it expects flipped."""
    text = (TRACES / f"{SPARSE}.ptx").read_text()
    arrays = dict(np.load(TRACES / f"{SPARSE}.npz"))
    arrays[array][word] ^= np.uint32(1 << bit)
    np.savez(folder / f"{SPARSE}.npz", **arrays)
    path = folder / f"{SPARSE}.ptx"
    path.write_text(text)
    return path


# --- arrays ----------------------------------------------------------------------------------------


def test_arrays_come_back_and_equal_ones_are_kept_once():
    pool = Pool()
    words = np.arange(6, dtype=np.uint32).reshape(2, 3)
    first, small, again = pool.add(words), pool.add_narrow(np.array([3, 300])), pool.add(words.copy())
    assert first == again == {"at": 0, "count": 6, "bytes": 4}
    assert small == {"at": 24, "count": 2, "bytes": 2}
    assert pool.add(words.astype(np.uint64))["at"] == 32  # aligned, and not the same as in four bytes
    content = zlib.decompress(base64.b64decode(pool.text()))
    assert content == pool.content
    assert np.frombuffer(content, "<u4", 6, 0).tolist() == words.ravel().tolist()
    assert np.frombuffer(content, "<u2", 2, 24).tolist() == [3, 300]


def read(report, reference) -> np.ndarray:
    return np.frombuffer(report.pool.content, f"<u{reference['bytes']}", reference["count"], reference["at"])


# --- the data --------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sample(PATHS, 5), ids=lambda path: path.stem)
def test_words_and_places_are_those_of_the_run(scripts, path):
    run, report = example(path.stem), data(path.stem)
    scripts.load(report)
    shown, seen = iter(enumerate(report.document["instructions"])), set()
    for event in run.events:
        for _, inputs, d in event.executions():
            index, document = next(shown)
            layout = report.document["layouts"][document["layout"]]
            assert layout["mnemonic"] == event.instruction.mnemonic
            for role, words in {**inputs.registers, "d": d}.items():
                assert scripts("words", index, role) == [str(word) for word in words.ravel().tolist()]
            if document["layout"] in seen:
                continue
            seen.add(document["layout"])
            for role, operand in layout["operands"].items():
                held = places(event.instruction, role, inputs.selector, inputs.scale_selectors)
                table = read(report, operand["places"]).reshape(len(PLACE_FIELDS), len(held))
                assert [tuple(row) for row in table.T.tolist()] == [
                    tuple(getattr(place, name) for name in PLACE_FIELDS) for place in held
                ]
    assert next(shown, None) is None


def test_a_chain_keeps_the_accumulator_once():
    """C of the second instruction is D of the first: one array."""
    first, second = data(SPARSE).document["instructions"][:2]
    assert second["words"]["c"] == first["words"]["d"]


def test_instructions_of_one_form_and_selector_share_their_layout():
    keys = [(event.instruction, event.inputs.selector) for event in example(SPARSE).events]
    shown = [one["layout"] for one in data(SPARSE).document["instructions"]]
    assert len(set(keys)) == len(set(shown)) == len(data(SPARSE).document["layouts"])
    assert [keys.index(key) for key in keys] == [shown.index(one) for one in shown]


@pytest.mark.parametrize("name", ["wgmma_m64n16k16_f16", "wgmma_m64n8k256_b1", "wgmma_sp_m64n16k32_f16"])
def test_addresses_in_shared_memory_hold_the_codes(name):
    """Every byte that the report points at has the bits of the element; signs are those before imm-scale."""
    for event, document in zip(example(name).events, data(name).document["instructions"], strict=True):
        inputs = replace(event.inputs, negate=(False, False))
        operands = from_registers(event.instruction, inputs).operands
        assert document["memory"]
        for side, memory in document["memory"].items():
            codes, bits = getattr(operands, side), event.instruction.format(side).bits
            addresses = read(data(name), memory["addresses"]).reshape(codes.shape).astype(int)
            found = sum(
                event.inputs.shared[addresses + byte].astype(int) << 8 * byte
                for byte in range(max(bits // 8, 1))
            )
            if bits == 1:
                k = np.arange(codes.shape[1]) if side == "a" else np.arange(codes.shape[0])[:, None]
                found = found >> k % 8 & 1
            assert (found == codes).all()


def test_codes_are_given_where_registers_do_not_hold_them():
    """Operands in shared memory, and those whose signs imm-scale flips."""
    name = "wgmma_m64n16k16_f16"
    flips = 0
    for event, document in zip(example(name).events, data(name).document["instructions"], strict=True):
        given = {"b"} | ({"a"} if event.inputs.a_descriptor is not None or event.inputs.negate[0] else set())
        assert set(document["codes"]) == given
        operands = from_registers(event.instruction, event.inputs).operands
        for side in given:
            assert (
                read(data(name), document["codes"][side]).tolist() == getattr(operands, side).ravel().tolist()
            )
        flips += event.inputs.negate[0] and event.inputs.a_descriptor is None
    assert flips


def test_an_mma_in_a_warpgroup_is_one_instruction_for_each_warp_that_executes_it():
    group = warpsim.Warpgroup()
    group["%p"] = np.repeat([True, False, True, True], 32)
    for name, count in (("a", 2), ("b", 1), ("c", 4)):
        group[f"%{name}<{count}>"] = np.arange(128 * count, dtype=np.uint32).reshape(128, count)
    group["%d<4>"] = 0
    text = (
        "@%p mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, {%b0}, "
        "{%c0, %c1, %c2, %c3};"
    )
    report = gather(run_of(group, text))
    assert [one["warp"] for one in report.document["instructions"]] == [0, 2, 3]
    words = [read(report, one["words"]["a"])[0] for one in report.document["instructions"]]
    assert words == [0, 128, 192]


def test_names_are_the_statements_own():
    sparse, group = (
        data(SPARSE).document["instructions"][7],
        data("wgmma_m64n16k16_f16").document["instructions"][0],
    )
    assert sparse["names"]["a"] == ["%a3t1_0", "%a3t1_1", "%a3t1_2", "%a3t1_3"]
    assert sparse["names"]["e"] == ["%e3_0"]
    assert group["names"]["c"] == group["names"]["d"]
    assert sparse["statement"].startswith(
        "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%d3_0,"
    )


def test_evidence_rule_and_formats_are_those_of_the_package():
    for name in (SPARSE, "wgmma_m64n8k32_f8"):
        for layout in data(name).document["layouts"]:
            form = warpsim.decode(layout["mnemonic"], target=layout["target"])
            assert layout["evidence"]["text"] == str(rule_for(form).evidence)
            assert layout["rule"]["rule"] == type(rule_for(form)).__name__
    documents = format_documents()
    assert {name: Specials(one["specials"]) for name, one in documents.items()} == {
        name: element.specials for name, element in FORMATS.items()
    }
    assert documents["f64"]["nan"] == "0x7ff8000000000000"
    assert documents["f16"]["nan"] == "0x7fff"
    assert documents["e2m1"]["nan"] is None


# --- expectations ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sample(PATHS, 2), ids=lambda path: path.stem)
def test_every_check_of_registers_is_traced_to_its_instruction(path):
    run = example(path.stem)
    traced = {one.check for one in expectations(run)}
    assert traced == {at for at, check in enumerate(run.checks) if not check.registers.startswith("shared")}


def test_a_difference_is_shown_where_it_is(tmp_path):
    report = gather(run_trace(read_trace(flipped(tmp_path))))
    *others, last = report.document["instructions"]
    assert [one["different"] for one in others] == [0] * 7
    assert (last["different"], last["checked"], last["checks"]) == (1, [0, 1, 2, 3], [3])
    expected, actual = (
        read(report, last[key] if key == "expected" else last["words"]["d"]) for key in ("expected", "d")
    )
    assert np.flatnonzero(expected != actual).tolist() == [27 * 4]
    assert int(expected[27 * 4]) ^ int(actual[27 * 4]) == 1 << 20
    failed = report.document["checks"][3]
    assert (failed["instruction"], failed["different"], failed["lane"]) == (7, 1, 27)
    assert failed["first"].endswith("D[6,6]: expected 1.6373471, got 1.5123471")


def test_a_check_in_the_middle_is_about_what_was_written_before_it():
    """Both instructions of the chain write %d3_0; a check between them is about the first."""
    run = example(SPARSE)
    first, second = run.events[6:8]
    between = replace(
        next(load for load in run.trace.loads.values() if load.registers == "%d3_<4>"), words=first.d
    )
    check = replace(run.checks[-1])
    made = replace(run, trace=replace(run.trace, loads={second.statement.start - 1: between}), checks=[check])
    assert [(one.event, one.register) for one in expectations(made)] == [(6, 0), (6, 1), (6, 2), (6, 3)]


def test_a_check_of_moved_registers_is_not_ascribed(tmp_path):
    """Words that were moved since cannot be traced by name: nothing false is shown."""
    text = (TRACES / "mma_m16n8k8_tf32.ptx").read_text()
    (expect,) = re.findall(r"//! expect %d0_<4> = (\w+)\n", text)
    moves = "".join(f"mov.b32 %m{i}, %d0_{i};\n" for i in range(4))
    text = text.replace(
        f"//! expect %d0_<4> = {expect}\n", f".reg .b32 %m<4>;\n{moves}//! expect %m<4> = {expect}\n"
    )
    (tmp_path / "moved.ptx").write_text(text)
    (tmp_path / "mma_m16n8k8_tf32.npz").write_bytes((TRACES / "mma_m16n8k8_tf32.npz").read_bytes())
    run = run_trace(read_trace(tmp_path / "moved.ptx"))
    assert run.passed
    assert expectations(run) == []
    assert gather(run).document["checks"][0]["instruction"] is None


def test_hazards_are_listed(tmp_path):
    text = (TRACES / "wgmma_m64n16k16_f16.ptx").read_text()
    (tmp_path / "wgmma_m64n16k16_f16.npz").write_bytes((TRACES / "wgmma_m64n16k16_f16.npz").read_bytes())
    path = tmp_path / "forgotten.ptx"
    path.write_text("".join(line for line in text.splitlines(True) if "wait_group" not in line))
    report = warpsim.view(path)
    assert report.document["hazards"][0]["severity"] == "error"
    assert "no wgmma.wait_group has followed" in report.document["hazards"][0]["message"]
    assert "no wgmma.wait_group has followed" in report.html.partition('id="document"')[0]


# --- explanations in the page ----------------------------------------------------------------------


def elements(form, count, seed):
    random = np.random.default_rng(seed)
    shape = (form.shape.m, form.shape.n, form.products)
    return [tuple(int(random.integers(limit)) for limit in shape) for _ in range(count)]


@pytest.mark.parametrize("path", sample(PATHS, 5, 2), ids=lambda path: path.stem)
def test_the_page_computes_every_element_of_d(scripts, path):
    """Bit for bit what execute gave; of some elements the whole explanation is that of warpsim explain."""
    run, report = example(path.stem), data(path.stem)
    scripts.load(report)
    index = 0
    for event in run.events:
        for _, inputs, _ in event.executions():
            form = event.instruction
            if form.shape.m * form.shape.n <= 1024:
                assert scripts("unequal", index) == []
            for row, column, product in elements(form, 1, index):
                expected = json.loads(
                    json.dumps(explanation_document(explain_inputs(form, inputs, row, column, product)))
                )
                found = scripts("explained", index, row, column, product)
                found["evidence"].pop("text")
                assert found == expected
            index += 1


def chosen_forms():
    """One form for each kind of rule, result and scale among the warp-level ones."""
    found = {}
    for form in arithmetics():
        if form.lanes == 32:
            rule = rule_for(form)
            key = (
                type(rule),
                str(getattr(rule, "output", "")),
                form.d.name,
                form.scale and form.scale.name,
                form.rounding,
                form.sparse,
            )
            found.setdefault(key, form)
    return list(found.values())


@pytest.mark.parametrize("form", sample(chosen_forms(), 2), ids=form_name)
def test_the_page_computes_nasty_values(scripts, form):
    """Inf, NaN, subnormals, both zeros, overflow: on every kind of arithmetic."""
    run = nasty_run(form)
    scripts.load(gather(run))
    assert scripts("unequal", 0) == []
    (event,) = run.events
    for row, column, product in [(2, 2, 0), (3, 3, 0), (2, 5, 0), *elements(form, 3, 1)]:
        expected = json.loads(
            json.dumps(explanation_document(explain_inputs(form, event.inputs, row, column, product)))
        )
        found = scripts("explained", 0, row, column, product)
        found["evidence"].pop("text")
        assert found == expected


# --- what lights up --------------------------------------------------------------------------------


def lit(scripts, index, key, product=0):
    lights, words = scripts("lit", index, product, key)
    return dict(lights), dict(words)


def keys_of(held):
    return {f"{place.operand}/{place.row}/{place.column}" for place in held}


@pytest.mark.parametrize(
    ("name", "index"),
    [(SPARSE, 7), ("mma_m16n8k32_mxf8f6f4", 3), ("mma_m8n8k4_f16_volta", 2), ("mma_sp_m16n8k16_tf32", 0)],
)
def test_an_element_of_d_lights_what_feeds_it(scripts, name, index):
    scripts.load(data(name))
    event = example(name).events[index]
    form, inputs = event.instruction, event.inputs
    columns = from_registers(form, inputs).operands.columns
    for row, column, product in elements(form, 5, 3):
        lights, words = lit(scripts, index, f"d/{row}/{column}", product)
        found = feeds(
            form, row, column, product=product, selector=inputs.selector, scales=inputs.scale_selectors
        )
        kept = range(form.shape.k) if columns is None else columns[row].tolist()
        chosen = [
            found.c,
            *found.a,
            *(found.b[k] for k in kept),
            *found.metadata,
            *found.scale_a,
            *found.scale_b,
        ]
        logical = {f"l/{row}/{k}" for k in kept} if form.sparse else set()
        lit_elements = {key for key in lights if not key.startswith("word/")}
        assert lit_elements == keys_of(chosen) | logical | {f"d/{row}/{column}"}
        assert lights[f"d/{row}/{column}"] == "here"
        bits = {(name, bit["low"], bit["high"]) for name, each in words.items() for bit in each}
        assert bits == {
            (f"word/{place.operand}/{place.lane}/{place.register}", place.low_bit, place.high_bit)
            for place in [*chosen, found.d]
        }


def test_a_lane_a_register_and_a_word_light_what_they_hold(scripts):
    scripts.load(data(SPARSE))
    form, selector = example(SPARSE).events[7].instruction, example(SPARSE).events[7].inputs.selector
    held = [place for operand in "abcde" for place in lane_places(form, operand, 6, selector=selector)]
    lights, _ = lit(scripts, 7, "lane/6")
    assert keys_of(held) == {key for key in lights if key.split("/")[0] in {"a", "b", "c", "d", "e"}}
    lights, words = lit(scripts, 7, "word/a/6/2")
    assert keys_of(lane_places(form, "a", 6, 2)) == {key for key in lights if key.startswith("a/")}
    assert words == {
        "word/a/6/2": [{"low": 0, "high": 15, "level": "here"}, {"low": 16, "high": 31, "level": "here"}]
    }
    lights, _ = lit(scripts, 7, "register/b/1")
    assert keys_of(place for place in places(form, "b") if place.register == 1) == {
        key for key in lights if key.startswith("b/")
    }


def test_a_metadata_field_lights_what_it_keeps_and_drops(scripts):
    scripts.load(data(SPARSE))
    event = example(SPARSE).events[7]
    form = event.instruction
    columns = from_registers(form, event.inputs).operands.columns
    for lane, bit, _, row, chunk in metadata_map(form, event.inputs.selector)[::17].tolist():
        lights, words = lit(scripts, 7, f"e/{row}/{chunk}")
        kept = columns[row, 2 * chunk : 2 * chunk + 2].tolist()
        assert {key: level for key, level in lights.items() if key.startswith("l/")} == {
            f"l/{row}/{k}": "to" if k in kept else "with" for k in range(4 * chunk, 4 * chunk + 4)
        }
        assert words[f"word/e/{lane}/0"] == [{"low": bit, "high": bit + 3, "level": "here"}]
        assert {key for key in lights if key.startswith("a/")} == {
            f"a/{row}/{2 * chunk}",
            f"a/{row}/{2 * chunk + 1}",
        }


def test_an_element_of_b_lights_only_rows_that_keep_it(scripts):
    scripts.load(data(SPARSE))
    event = example(SPARSE).events[7]
    columns = from_registers(event.instruction, event.inputs).operands.columns
    for k in (0, 5, 31):
        rows = np.flatnonzero((columns == k).any(axis=1)).tolist()
        lights, _ = lit(scripts, 7, f"b/{k}/4")
        assert {key for key in lights if key.startswith("d/")} == {f"d/{row}/4" for row in rows}
        lights, _ = lit(scripts, 7, f"l/{(set(range(16)) - set(rows)).pop()}/{k}")
        assert {key.split("/")[0] for key in lights} == {"l", "e", "word"}  # a dropped element meets nothing


def test_the_line_at_the_bottom_says_it_in_words(scripts, tmp_path):
    scripts.load(gather(run_trace(read_trace(flipped(tmp_path)))))
    assert scripts("described", 7, 0, "d/6/6") == (
        "D[6,6] 1.5123471 0x3fc19497 T27 %d3_0[31..0] expected 1.6373471 0x3fd19497 differing bits "
        "0x00100000 = A row 6: T24..T27 %a3t1_0..%a3t1_2 kept by metadata T26..T27 %e3_0 \u00d7 "
        "B column 6: T24..T27 %b3t1_0..%b3t1_3 + C: T27 %d3_0[31..0]"
    )
    assert scripts("described", 7, 0, "word/a/6/2").startswith("T6 %a3t1_2 0x")
    assert scripts("described", 7, 0, "e/6/1").startswith(
        "metadata T26 %e3_0[7..4] 1101 keeps columns 5,7 of 4..7 in row 6 of A"
    )
    assert scripts("described", 7, 0, "l/6/4") == (
        "A[6,4] is dropped: zero by metadata T26 %e3_0[7..4] = 1101 which takes columns 5,7"
    )


# --- the page --------------------------------------------------------------------------------------


def test_the_page_loads_nothing_and_is_the_same_every_time():
    html = warpsim.view(example(SPARSE)).html
    assert html == warpsim.view(example(SPARSE)).html
    assert not re.search(r"\b(src|href)\s*=\s*[\"'](?!#)", html)
    assert not re.search(r"https?://|\bfetch\(|XMLHttpRequest|import\(|@import|url\(", html)
    assert html.count("<script") == html.count("</script>") == 3
    (document,) = re.findall(r'<script type="application/json" id="document">(.*?)</script>', html, re.DOTALL)
    assert json.loads(document) == data(SPARSE).document


def test_text_from_outside_cannot_become_markup(tmp_path):
    name = "<img onerror=alert(1)>&.ptx"
    (tmp_path / name).write_text((TRACES / "mma_m16n8k8_tf32.ptx").read_text())
    (tmp_path / "mma_m16n8k8_tf32.npz").write_bytes((TRACES / "mma_m16n8k8_tf32.npz").read_bytes())
    report = warpsim.view(tmp_path / name)
    assert "<img" not in report.html
    assert "&lt;img onerror=alert(1)&gt;&amp;.ptx" in report.html
    assert "<img" not in report._repr_html_()


def test_a_notebook_shows_the_page_in_a_frame():
    report = warpsim.view(example(SPARSE))
    shown = report._repr_html_()
    assert shown.startswith('<iframe title="mma_sp_m16n8k32_f16.ptx" sandbox="allow-scripts" ')
    (inner,) = re.findall(r'srcdoc="([^"]*)"', shown)
    assert (
        inner.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", '"')
        .replace("&#x27;", "'")
        .replace("&amp;", "&")
        == report.html
    )


def test_the_header_says_what_was_checked(tmp_path):
    passed = warpsim.view(example(SPARSE)).html
    assert "✓ 4 checks passed, 384 words as expected" in passed
    failed = warpsim.view(flipped(tmp_path)).html
    assert "✗ 1 of 4 checks failed: 1 word not as expected" in failed
    assert '<span class="state failed" title="words of D that are not as expected">✗ 1</span>' in failed
    warp = warpsim.Warp("sm_80")
    empty = warpsim.view(run_of(warp, "mov.b32 %r0, 1;")).html
    assert "nothing was checked" in empty
    assert "The trace executed no matrix instruction." in empty


def test_a_run_that_was_made_is_not_run_again():
    with pytest.raises(TypeError):
        warpsim.view(example(SPARSE), "sm_80")
    assert warpsim.view(TRACES / f"{SPARSE}.ptx", target="sm_80").document["target"] == "sm_80"


SIZES = {  # bytes of the page, 64 instructions on random bits; the goal is 2 MB
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32": 500_000,
    "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32": 420_000,
}


@pytest.mark.parametrize("mnemonic", SIZES)
def test_the_page_of_64_instructions_is_small(mnemonic):
    form = warpsim.decode(mnemonic, target="sm_90a")
    runs = [nasty_run(form, seed) for seed in range(4)]
    random = np.random.default_rng(0)
    events = []
    for number in range(64):
        event = runs[number % 4].events[0]
        words = {
            role: random.integers(0, 1 << 32, array.shape, np.uint32)
            for role, array in event.inputs.registers.items()
        }
        if "e" in words:
            words["e"] = event.inputs.registers["e"]
        d = random.integers(0, 1 << 32, event.d.shape, np.uint32)
        events.append(replace(event, inputs=replace(event.inputs, registers=words), d=d))
    run = replace(runs[0], events=events)
    assert len(warpsim.view(run).html.encode()) < SIZES[mnemonic]


# --- the scripts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_modules_import_what_others_export_and_use_it(path):
    text = path.read_text()
    body = re.sub(r'^import \{.*?\} from ".*?";\n', "", text, flags=re.DOTALL | re.MULTILINE)
    for names, origin in re.findall(r'^import \{([^}]*)\} from "\./(.*?)";$', text, re.MULTILINE):
        exported = re.findall(
            r"^export (?:async )?(?:function|const|class) (\w+)", (STATIC / origin).read_text(), re.MULTILINE
        )
        for name in filter(None, (one.strip() for one in names.split(","))):
            assert name in exported, f"{origin} does not export {name}"
            assert re.search(rf"\b{name}\b", body), f"{name} of {origin} is not used"
    everything = "".join(one.read_text() for one in STATIC.glob("*.js") if one != path)
    for name in re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE):
        assert re.search(rf"\b{name}\b", everything), f"nobody imports {name}"
    assert text.startswith("// ")
    assert "innerHTML" not in text


def test_the_bundle_has_every_module_once_and_dependencies_first():
    text = bundle("main.js")
    order = re.findall(r'^modules\["(.*?)"\] = ', text, re.MULTILINE)
    assert sorted(order) == sorted(path.name for path in STATIC.glob("*.js"))
    for name in order:
        for imported in re.findall(r'from "\./(.*?)"', (STATIC / name).read_text()):
            assert order.index(imported) < order.index(name)
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)


# --- the command -----------------------------------------------------------------------------------


def view(capsys, *arguments):
    """Exit code, stdout and stderr of ``warpsim view``."""
    with pytest.raises(SystemExit) as stopped:
        run_cli(["view", *map(str, arguments)])
    printed = capsys.readouterr()
    return stopped.value.code, printed.out, printed.err


def test_the_command_writes_the_page(capsys, tmp_path):
    out = tmp_path / "report.html"
    code, text, complaints = view(capsys, TRACES / f"{SPARSE}.ptx", "-o", out)
    assert (code, complaints) == (0, "")
    assert re.fullmatch(rf"{re.escape(out.as_posix())}: 8 instructions, 4 checks passed, 0\.\d MB\n", text)
    assert out.read_text(encoding="utf-8") == warpsim.view(example(SPARSE)).html


def test_the_command_tells_of_failed_checks(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    code, text, _ = view(capsys, flipped(tmp_path / "in"), "--json")
    document = json.loads(text)
    size = (tmp_path / f"{SPARSE}.html").stat().st_size
    assert code == 1
    assert document == {
        "trace": (tmp_path / "in" / f"{SPARSE}.ptx").as_posix(),
        "report": f"{SPARSE}.html",
        "bytes": size,
        "target": "sm_90a",
        "instructions": 8,
        "passed": False,
        "checks": 4,
        "failed_checks": 1,
    }


def test_the_command_reports_what_it_cannot_do(capsys, tmp_path):
    missing = tmp_path / "missing.ptx"
    code, text, complaint = view(capsys, missing, "-o", tmp_path / "x.html")
    assert (code, text) == (3, "")
    assert complaint == f"{missing}: error: No such file or directory\n"
    nowhere = tmp_path / "nowhere" / "x.html"
    code, text, complaint = view(capsys, TRACES / f"{SPARSE}.ptx", "-o", nowhere)
    assert (code, text) == (3, "")
    assert complaint == f"{nowhere}: error: No such file or directory\n"
    code, _, complaint = view(capsys, TRACES / f"{SPARSE}.ptx", "--target", "sm_1")
    assert code == 2


def test_the_verb_is_listed_and_needs_no_template_library_to_be_so():
    assert "view" in cli.list_commands(click.Context(cli))
    assert "jinja2" not in sys.modules or "warpsim.show.report.page" in sys.modules
