"""A trace as text, Mermaid and picture: the same way from texts to a version, three times."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.ancestry import Manifest
from tasks.lineage import Hop, Trace

SHAPES = {  # Mermaid: how a node's text is enclosed
    "corpus": ("[(", ")]"),
    "dataset": ("[(", ")]"),
    "stage": ("([", "])"),
    "package": ("[[", "]]"),
}
COLOURS = {"corpus": "#d9ead3", "dataset": "#d9ead3", "stage": "#cfe2f3", "package": "#fff2cc"}
PLAIN = "#eeeeee"
TRAINED = ("tokenizer", "stage", "package")


def text(trace: Trace) -> str:
    """One line a hop, texts first, then what was made of them."""
    found = trace.version
    pointing = f" ({', '.join(found.aliases)})" if found.aliases else ""
    lines = [f"{found.name} version {found.number}{pointing}, told by {trace.told_by}"]
    for hop in trace.hops:
        manifest = hop.manifest
        commit = (hop.commit or "no git")[:12] + (
            "+" if manifest.details.get("git", {}).get("dirty") else ""
        )
        lines.append(
            f"  {manifest.name:<32} key {manifest.key[:12]}  digest {manifest.digest[:12]}"
            f"  commit {commit}{_of_kind(hop)}"
        )
    return "\n".join(lines)


def mermaid(trace: Trace) -> str:
    """A Mermaid flow chart; contracts are left to the reports, so that it stays readable."""
    lines = ["flowchart LR"]
    names = {hop.manifest.key: f"n{i}" for i, hop in enumerate(_drawn(trace))}
    for hop in _drawn(trace):
        manifest = hop.manifest
        opening, closing = SHAPES.get(manifest.kind, ("[", "]"))
        label = f'"{_safe(manifest.name)}<br/>{manifest.key[:7]}"'
        lines.append(f"  {names[manifest.key]}{opening}{label}{closing}")
    for parent, child in _edges(trace):
        lines.append(f"  {names[parent.key]} --> {names[child.key]}")
    found = trace.version
    lines.append(f'  version{{{{"{_safe(found.name)} version {found.number}"}}}}')
    lines.append(f"  {names[found.key]} --> version")
    return "\n".join(lines)


def picture(trace: Trace) -> bytes:
    """The same chart as a PNG, for pages that draw no Mermaid."""
    from tasks.plots import figure, png

    hops = _drawn(trace)
    column = _columns(trace)
    rows: dict[int, list[Hop]] = {}
    for hop in hops:
        rows.setdefault(column[hop.manifest.key], []).append(hop)
    # What is trained stands in one line at the top, texts and tokens below it.
    place: dict[str, tuple[int, int]] = {}
    for x, some in rows.items():
        below = 1
        for hop in some:
            top = hop.manifest.kind in TRAINED
            place[hop.manifest.key] = (x, 0 if top else below)
            below += not top
    height = 1 + max(y for _, y in place.values())
    drawn = figure(1.7 * (max(rows) + 2), 0.75 * height + 0.6)
    axes = drawn.add_subplot()
    for parent, child in _edges(trace):
        axes.annotate(
            "",
            xy=place[child.key],
            xytext=place[parent.key],
            arrowprops={"arrowstyle": "-|>", "color": "#888888", "shrinkA": 0, "shrinkB": 36},
        )
    for hop in hops:
        manifest = hop.manifest
        axes.text(
            *place[manifest.key],
            f"{_wrapped(manifest.name)}\n{manifest.key[:7]}",
            ha="center",
            va="center",
            fontsize=7,
            bbox={
                "boxstyle": "round,pad=0.35",
                "facecolor": COLOURS.get(manifest.kind, PLAIN),
                "edgecolor": "#666666",
            },
        )
    axes.set_xlim(-0.6, max(rows) + 0.6)
    axes.set_ylim(height - 0.4, -0.6)
    axes.axis("off")
    drawn.subplots_adjust(left=0.01, right=0.99, bottom=0.02, top=0.9)
    axes.set_title(f"{trace.version.name} version {trace.version.number}", fontsize=9)
    return png(drawn)


def _drawn(trace: Trace) -> list[Hop]:
    left_out = ("contract", "evaluation", "measurement")
    return [hop for hop in trace.hops if hop.manifest.kind not in left_out]


def _edges(trace: Trace) -> Iterator[tuple[Manifest, Manifest]]:
    """Parents and children, but not where a longer way leads from one to the other as well."""
    drawn = {hop.manifest.key: hop.manifest for hop in _drawn(trace)}
    before: dict[str, set[str]] = {}  # everything drawn that a thing comes from
    for child in drawn.values():
        parents = {reference["key"] for reference in child.inputs.values()} & drawn.keys()
        further = set().union(*(before.get(key, set()) for key in parents))
        before[child.key] = parents | further
        for key in sorted(parents - further):
            yield drawn[key], child


def _columns(trace: Trace) -> dict[str, int]:
    """How many hops each thing is from its furthest text."""
    column: dict[str, int] = {}
    for hop in _drawn(trace):
        parents = [reference["key"] for reference in hop.manifest.inputs.values()]
        column[hop.manifest.key] = 1 + max((column.get(key, -1) for key in parents), default=-1)
    return column


def _of_kind(hop: Hop) -> str:
    manifest = hop.manifest
    if source := manifest.source:
        snapshot = str(manifest.settings.get("snapshot", ""))[:12]
        return f"  {source.get('licence', 'no licence named')}, snapshot {snapshot}"
    if hop.run_id:
        return f"  run {hop.run_id[:12]}, model {(hop.model_id or 'none')[:14]}"
    return ""


def _safe(label: str) -> str:
    return label.replace('"', "'").replace("<", "").replace(">", "")


def _wrapped(name: str) -> str:
    """A step's name over two lines: what it is, and which."""
    first, _, rest = name.partition(" ")
    return f"{first}\n{rest}" if rest else first
