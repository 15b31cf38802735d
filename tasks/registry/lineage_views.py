"""Views of a version's lineage: text, Mermaid and picture."""

from __future__ import annotations

from collections.abc import Iterator

from tasks.registry.lineage import Hop, Trace
from tasks.store.ancestry import Manifest
from tasks.store.steps import BEFORE_LABELS

SHAPES = {  # Mermaid: delimiters of a node's label
    "corpus": ("[(", ")]"),
    "dataset": ("[(", ")]"),
    "stage": ("([", "])"),
    "package": ("[[", "]]"),
}
COLOURS = {"corpus": "#d9ead3", "dataset": "#d9ead3", "stage": "#cfe2f3", "package": "#fff2cc"}
PLAIN = "#eeeeee"
TRAINED = ("tokenizer", "stage", "package")
EDGE = 0.3  # half the height of a box in the picture, in levels
# Levels of the picture, the last ones, and boxes of a level beside what is trained: a stage that
# continues every night adds one of each, and its picture would soon fill the memory.
LEVELS, WIDEST = 24, 24


def text(trace: Trace) -> str:
    """The lineage as text: one line per hop, parents before children."""
    found = trace.version
    pointing = f" ({', '.join(found.aliases)})" if found.aliases else ""
    lines = [f"{found.name} version {found.number}{pointing}, told by {trace.told_by}"]
    width = max(len(hop.manifest.name) for hop in trace.hops)
    for hop in trace.hops:
        manifest = hop.manifest
        commit = (hop.commit or "no git")[:12] + (
            "+" if manifest.notes.get("git", {}).get("dirty") else ""
        )
        lines.append(
            f"  {manifest.name:<{width}}  key {manifest.key[:12]}  digest {manifest.digest[:12]}"
            f"  commit {commit}{_of_kind(hop)}"
        )
    return "\n".join(lines)


def mermaid(trace: Trace) -> str:
    """The lineage as a Mermaid flow chart, without contracts and scores, to keep it readable."""
    lines = ["flowchart TD"]
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
    """The lineage as a PNG, for pages that do not render Mermaid; of a large one a part."""
    from tasks.reports.plots import figure, png

    depth = _depths(trace)
    above = max(0, max(depth.values()) + 1 - LEVELS)
    hops = [hop for hop in _drawn(trace) if depth[hop.manifest.key] >= above]
    levels: dict[int, list[Hop]] = {}
    for hop in hops:
        levels.setdefault(depth[hop.manifest.key] - above, []).append(hop)
    # From top to bottom, because pages are narrow. Trained artifacts form the leftmost column,
    # texts and tokens are beside it.
    place: dict[str, tuple[int, int]] = {}
    for y, some in levels.items():
        beside = 1
        for hop in some:
            trained = hop.manifest.kind in TRAINED
            if trained or beside <= WIDEST:
                place[hop.manifest.key] = (0 if trained else beside, y)
            beside += not trained
    width = 1 + max(x for x, _ in place.values())
    drawn = figure(1.9 * width, 0.62 * (max(levels) + 1) + 0.4)
    axes = drawn.add_subplot()
    for parent, child in _edges(trace):
        if not {parent.key, child.key} <= place.keys():
            continue
        (x, y), (to_x, to_y) = place[parent.key], place[child.key]
        axes.annotate(
            "",
            xy=(to_x, to_y - EDGE),
            xytext=(x, y + EDGE),
            arrowprops={"arrowstyle": "-|>", "color": "#888888", "shrinkA": 0, "shrinkB": 0},
        )
    for manifest in (hop.manifest for hop in hops if hop.manifest.key in place):
        axes.text(
            *place[manifest.key],
            f"{manifest.name}\n{manifest.key[:7]}",
            ha="center",
            va="center",
            fontsize=8,
            bbox={
                "boxstyle": "round,pad=0.35",
                "facecolor": COLOURS.get(manifest.kind, PLAIN),
                "edgecolor": "#666666",
            },
        )
    axes.set_xlim(-0.5, width - 0.5)
    axes.set_ylim(max(levels) + 0.5, -0.5)
    axes.axis("off")
    drawn.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.94)
    part = ", in part" if len(place) < len(depth) else ""
    axes.set_title(f"{trace.version.name} version {trace.version.number}{part}", fontsize=10)
    return png(drawn)


def _drawn(trace: Trace) -> list[Hop]:
    left_out = ("contract", "measurement", "evaluation", *BEFORE_LABELS)
    return [hop for hop in trace.hops if hop.manifest.kind not in left_out]


def _edges(trace: Trace) -> Iterator[tuple[Manifest, Manifest]]:
    """Pairs of parent and child, except those that a longer path connects too."""
    drawn = {hop.manifest.key: hop.manifest for hop in _drawn(trace)}
    before: dict[str, set[str]] = {}  # drawn ancestors by key
    for child in drawn.values():
        parents = {reference["key"] for reference in child.inputs.values()} & drawn.keys()
        further = set().union(*(before.get(key, set()) for key in parents))
        before[child.key] = parents | further
        for key in sorted(parents - further):
            yield drawn[key], child


def _depths(trace: Trace) -> dict[str, int]:
    """Number of hops from each artifact to its furthest ancestor, by key."""
    depth: dict[str, int] = {}
    for hop in _drawn(trace):
        parents = [reference["key"] for reference in hop.manifest.inputs.values()]
        depth[hop.manifest.key] = 1 + max((depth.get(key, -1) for key in parents), default=-1)
    return depth


def _of_kind(hop: Hop) -> str:
    manifest = hop.manifest
    if source := manifest.source:
        snapshot = str(manifest.settings.get("snapshot", ""))[:12]
        return f"  {source.get('licence', 'no licence named')}, snapshot {snapshot}"
    if hop.run_id:
        start = f"  from {manifest.notes['init']}," if "init" in manifest.notes else ""
        if "weights_of" in manifest.notes:
            start += f"  its weights from {manifest.notes['weights_of'][:12]},"
        for part, version in manifest.notes.get("versions", {}).items():
            start += f"  its {part} from {version},"
        return f"{start}  run {hop.run_id[:12]}, model {(hop.model_id or 'none')[:14]}"
    return ""


def _safe(label: str) -> str:
    return label.replace('"', "'").replace("<", "").replace(">", "")


def lineage_diagram(trace: Trace) -> str:
    """The lineage as Markdown: a picture for pages that do not render Mermaid, and the Mermaid."""
    from tasks.reports.plots import data_address

    address = data_address(picture(trace))
    return (
        f"### Where {trace.version.name} version {trace.version.number} comes from\n\n"
        + (f"![Lineage]({address})\n\n" if address else "")
        + f"```mermaid\n{mermaid(trace)}\n```\n"
    )
