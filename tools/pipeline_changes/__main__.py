"""``python -m tools.pipeline_changes [--entry NAME] [--only TEXT] [--show]``: what launches say of changes."""

from __future__ import annotations

import json, time, sys
from pathlib import Path

import click

from .changes import changes
from .kernels import PIPELINES
from .trial import became


@click.command()
@click.option("--entry", default="")
@click.option("--only", default="")
@click.option("--show", is_flag=True)
@click.option("--json", "file", type=click.Path(path_type=Path))
def main(entry, only, show, file):
    rows = []
    for pipeline in PIPELINES:
        if entry and pipeline.entry != entry: continue
        for change in changes(pipeline):
            name = f"{change.line} {change.statement}: {change.what}"
            if only not in name: continue
            t = time.time()
            found = became(pipeline, change.text)
            print(f"{found.word:9} {pipeline.entry} {name} {found.kind} {found.schedule} {time.time()-t:.1f}", flush=True)
            if show: print(found.message)
            rows.append(dict(entry=pipeline.entry, line=change.line, statement=change.statement, what=change.what, word=found.word, kind=found.kind, message=found.message, schedule=found.schedule))
            if file: file.write_text(json.dumps(rows, indent=0))
if __name__ == "__main__":
    main()
