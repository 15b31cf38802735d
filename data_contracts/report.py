"""Renders a report: as one self-contained HTML page, and as Markdown for Prefect and MLflow.

The page loads nothing, runs no script and contains no time, so that the same report is the same
bytes, opens offline and prints well. Ids and labels are the only words from the data; both are
escaped.
"""

from __future__ import annotations

from html import escape

from data_contracts.verdict import Report, Result, ids_text, percent, printable

_HEADLINES = {
    "green": "The contract is kept",
    "amber": "The contract is kept, with warnings",
    "red": "The contract is broken",
}
_MARKS = {"green": "✓", "amber": "!", "red": "✕"}
_SYMBOLS = {
    "kept": "✓",
    "broken": "✕",
    "not evaluated": "?",
    "no reference yet": "…",
    "quarantined": "⊘",
    "warning": "!",
    "noted": "i",
}
# Worst first, so that readers see at once what is wrong.
_ORDER = ("broken", "not evaluated", "quarantined", "warning", "noted", "no reference yet", "kept")
# Not "not evaluated": there, nothing is known about the data that the remedy could fix.
_NEED_ACTION = ("broken", "quarantined", "warning")
_NUM_SHOWN_PROMISE = 6
_NUM_SHOWN_QUARANTINED = 20


def state(result: Result) -> str:
    """The result of a promise in one word: what happened, not only whether it passed."""
    if result.status == "passed":
        return "kept"
    if result.status == "not_evaluated":
        return "not evaluated"
    if result.status == "no_reference":
        return "no reference yet"
    if result.severity == "critical":
        return "quarantined" if result.level == "row" else "broken"
    return "warning" if result.severity == "warning" else "noted"


def to_markdown(report: Report) -> str:
    """The report as GitHub-flavoured Markdown."""
    title = f"{_MARKS[report.verdict]} {report.verdict.upper()}: {_HEADLINES[report.verdict]}"
    lines = [
        f"# {title}",
        "",
        _md(report.reason),
        "",
        "| subject | read | kept | quarantined | removed | tolerated | contract | digest |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- |",
        f"| {_md(printable(report.subject))} | {report.num_read:,} | {report.num_kept:,} "
        f"| {report.num_quarantined_rows:,} "
        f"({percent(report.num_quarantined_rows, report.rows)}) "
        f"| {report.num_removed:,} "
        f"| {report.tolerance * 100:g} % | {_md(report.suite)} "
        f"| `{report.suite_digest[:12]}` |",
        "",
        "## Promises",
        "",
        "| | promise | severity | expected | observed | rows |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for result in _worst_first(report):
        word = state(result)
        says = f"**{_md(result.id)}**: {_md(result.says)}"
        if word in _NEED_ACTION and result.remedy:
            says += f" *{_md(result.remedy)}*"
        rows = _md(ids_text(result.failed_ids, result.failed_count)) if result.failed_count else ""
        lines.append(
            f"| {_SYMBOLS[word]} {word} | {says} | {result.severity} "
            f"| {_md(result.expected)} | {_md(result.observed)} | {rows} |"
        )
    if report.quarantined:
        lines += [
            "",
            "## Quarantine",
            "",
            "| reason | rows | first ids |",
            "| --- | ---: | --- |",
        ]
        lines += [
            f"| {_md(reason)} | {count:,} | {_md(_first_quarantined(report, reason, count))} |"
            for reason, count in report.quarantine_reasons.items()
        ]
    if report.removed:
        lines += ["", "## Removed by rule", "", "| reason | records |", "| --- | ---: |"]
        lines += [f"| {_md(reason)} | {count:,} |" for reason, count in report.removed.items()]
    return "\n".join(lines) + "\n"


def to_html(report: Report) -> str:
    """The report as one self-contained page: light and dark, narrow and wide, screen and paper."""
    title = f"{report.subject}: {report.verdict}"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{_html(title)}</title>
<style>{_STYLE}</style>
</head>
<body class="{report.verdict}">
<main>
{_header(report)}
{_quantities(report)}
<section>
<h2>Promises</h2>
{_promises(report)}
</section>
{_quarantine(report)}
{_removed(report)}
<footer>Contract <b>{_html(report.suite)}</b>, digest <code>{_html(report.suite_digest)}</code>.
Promises about rows are checked on every row; promises about the table on the rows left after
quarantine. A missing value keeps every promise but that it be there.</footer>
</main>
</body>
</html>
"""


def _header(report: Report) -> str:
    return f"""<header>
<div class="mark" aria-hidden="true">{_MARKS[report.verdict]}</div>
<div>
<p class="over">Data contract <b>{_html(report.suite)}</b> on</p>
<h1>{_html(report.subject)}</h1>
<p class="verdict">{_HEADLINES[report.verdict]}</p>
<p>{_html(report.reason)}</p>
</div>
</header>"""


def _quantities(report: Report) -> str:
    counts = {word: 0 for word in _ORDER}
    for result in report.results:
        counts[state(result)] += 1
    chips = "".join(
        f'<li><span class="state {_class(word)}">{_SYMBOLS[word]} {count} {word}</span></li>'
        for word, count in counts.items()
        if count
    )
    aside = report.num_quarantined_rows
    # Even one row in a million stays visible.
    width = max(0.4, 100 * aside / report.rows) if aside and report.rows else 0
    return f"""<section class="quantities">
<dl>
<div><dt>Read</dt><dd>{report.num_read:,}</dd></div>
<div><dt>Kept</dt><dd>{report.num_kept:,}</dd></div>
<div><dt>Quarantined</dt><dd>{aside:,} <small>{percent(aside, report.rows)}</small></dd></div>
<div><dt>Removed</dt><dd>{report.num_removed:,}</dd></div>
<div><dt>Tolerated</dt><dd>{report.tolerance * 100:g} %</dd></div>
</dl>
<div class="bar" role="img" aria-label="{percent(aside, report.rows)} of the rows quarantined, \
{report.tolerance * 100:g} % tolerated">
<span class="aside" style="width:{width:.2f}%"></span>
<span class="limit" style="left:{min(100, 100 * report.tolerance):.2f}%"></span>
</div>
<p class="legend"><span class="key aside"></span> quarantined share of the rows
<span class="key limit"></span> most that is tolerated</p>
<ul class="chips">{chips}</ul>
</section>"""


def _promises(report: Report) -> str:
    rows = "\n".join(_promise(result) for result in _worst_first(report))
    return f"""<table>
<thead><tr><th class="first">State</th><th class="wide">Promise</th>
<th>Expected</th><th>Observed</th>
<th>Rows</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>"""


def _promise(result: Result) -> str:
    word = state(result)
    remedy = ""
    if word in _NEED_ACTION and result.remedy:
        remedy = f'<p class="remedy">→ {_html(result.remedy)}</p>'
    rows = '<span class="none">–</span>'
    if result.failed_count:
        ids = _ids(result.failed_ids[:_NUM_SHOWN_PROMISE], result.failed_count)
        rows = f"<b>{result.failed_count:,}</b> {ids}"
    return f"""<tr class="{_class(word)}">
<td data-title="State"><span class="state {_class(word)}">{_SYMBOLS[word]} {word}</span>
<span class="severity">{_html(result.severity)}, {_html(result.level)}</span></td>
<td data-title="Promise"><code class="id">{_html(result.id)}</code>
<p>{_html(result.says)}</p>{remedy}</td>
<td data-title="Expected">{_html(result.expected)}</td>
<td data-title="Observed">{_html(result.observed)}</td>
<td data-title="Rows" class="rows">{rows}</td>
</tr>"""


def _quarantine(report: Report) -> str:
    if not report.quarantined:
        return ""
    says = {result.id: result.says for result in report.results}
    rows = "\n".join(
        f'<tr><td data-title="Reason"><code class="id">{_html(reason)}</code>'
        f"<p>{_html(says.get(reason, ''))}</p></td>"
        f'<td data-title="Rows" class="number">{count:,}</td>'
        f'<td data-title="Share" class="number">{percent(count, report.rows)}</td>'
        f'<td data-title="First ids" class="rows">'
        f"{_ids(_quarantined_by(report, reason), count)}</td></tr>"
        for reason, count in report.quarantine_reasons.items()
    )
    note = (
        "<p>A row that breaks several promises counts under each.</p>"
        if sum(report.quarantine_reasons.values()) > len(report.quarantined)
        else ""
    )
    return f"""<section>
<h2>Quarantine</h2>
{note}
<table class="quarantine">
<thead><tr><th>Reason</th><th class="number">Rows</th><th class="number">Share</th>\
<th>First ids</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</section>"""


def _removed(report: Report) -> str:
    if not report.removed:
        return ""
    rows = "\n".join(
        f'<tr><td data-title="Reason">{_html(reason)}</td>'
        f'<td data-title="Records" class="number">{count:,}</td></tr>'
        for reason, count in report.removed.items()
    )
    return f"""<section>
<h2>Removed by rule</h2>
<table class="quarantine">
<thead><tr><th>Reason</th><th class="number">Records</th></tr></thead>
<tbody>
{rows}
</tbody>
</table>
</section>"""


def _ids(ids: tuple[str, ...], count: int) -> str:
    codes = " ".join(f"<code>{_html(row_id)}</code>" for row_id in ids)
    more = f" <span>and {count - len(ids):,} more</span>" if count > len(ids) else ""
    return codes + more


def _quarantined_by(report: Report, reason: str) -> tuple[str, ...]:
    ids = [row_id for row_id, reasons in report.quarantined.items() if reason in reasons]
    return tuple(ids[:_NUM_SHOWN_QUARANTINED])


def _first_quarantined(report: Report, reason: str, count: int) -> str:
    return ids_text(_quarantined_by(report, reason), count, shown=_NUM_SHOWN_QUARANTINED)


def _worst_first(report: Report) -> list[Result]:
    return sorted(report.results, key=lambda result: _ORDER.index(state(result)))


def _class(word: str) -> str:
    return word.replace(" ", "-")


def _html(text: str) -> str:
    # Keep a number and its % on one line.
    return escape(printable(text, longest=600)).replace(" %", "&nbsp;%")


def _md(text: str) -> str:
    """Text escaped for a table cell in Markdown."""
    escaped = printable(text, longest=600).replace("&", "&amp;").replace("<", "&lt;")
    for mark in "\\`*[]|":
        escaped = escaped.replace(mark, f"\\{mark}")
    return escaped


_STYLE = """
:root{--paper:#fbfaf8;--card:#fff;--ink:#1d1f24;--soft:#5c6270;--line:#e3e1dc;--wash:#f3f1ec;
--green:#1a7f4b;--green-wash:#e4f4ea;--amber:#8f5d00;--amber-wash:#fdf0d2;
--red:#b3261e;--red-wash:#fde8e6;--blue:#2a5db0;--blue-wash:#e6eefb;--violet:#6b3fa0;
--violet-wash:#f0e8fa}
@media (prefers-color-scheme:dark){:root{--paper:#15171b;--card:#1c1f25;--ink:#e8e6e1;
--soft:#a0a5b1;--line:#30343d;--wash:#22262d;--green:#63d297;--green-wash:#17342a;
--amber:#f2bf5b;--amber-wash:#3a2e13;--red:#ff8e85;--red-wash:#43201e;--blue:#8db5f7;
--blue-wash:#1d2c47;--violet:#c5a3f2;--violet-wash:#30244a}}
.green{--tone:var(--green);--tone-wash:var(--green-wash)}
.amber{--tone:var(--amber);--tone-wash:var(--amber-wash)}
.red{--tone:var(--red);--tone-wash:var(--red-wash)}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK SC",sans-serif}
main{max-width:1180px;margin:0 auto;padding:28px 24px 48px}
header{display:flex;gap:20px;align-items:flex-start;padding:24px;border-radius:14px;
background:var(--tone-wash);border:1px solid var(--tone)}
.mark{flex:none;width:56px;height:56px;border-radius:50%;background:var(--tone);color:var(--card);
font-size:30px;font-weight:700;display:grid;place-items:center}
h1{font-size:26px;line-height:1.2;margin:2px 0 8px;overflow-wrap:anywhere}
h2{font-size:18px;margin:32px 0 10px}
p{margin:0}
.over{color:var(--soft)}
.verdict{font-size:18px;font-weight:650;color:var(--tone)}
.quantities{margin-top:16px;padding:20px 24px;border:1px solid var(--line);border-radius:14px;
background:var(--card)}
dl{display:grid;grid-template-columns:repeat(5,1fr);gap:12px;margin:0 0 16px}
dt{color:var(--soft);font-size:13px}
dd{margin:0;font-size:24px;font-weight:650;font-variant-numeric:tabular-nums}
dd small{font-size:14px;font-weight:500;color:var(--soft)}
.bar{position:relative;height:12px;border-radius:6px;background:var(--green-wash);overflow:hidden;
border:1px solid var(--line)}
.bar .aside{position:absolute;inset:0 auto 0 0;background:var(--violet)}
.bar .limit{position:absolute;top:0;bottom:0;width:2px;background:var(--ink)}
.legend{color:var(--soft);font-size:13px;margin-top:6px}
.key{display:inline-block;vertical-align:middle;width:12px;height:12px;border-radius:3px;
margin:0 4px 2px 0}
.key.aside{background:var(--violet)}
.key.limit{width:2px;border-radius:0;background:var(--ink);margin-left:16px}
.chips{list-style:none;display:flex;flex-wrap:wrap;gap:8px;margin:14px 0 0;padding:0}
table{width:100%;border-collapse:separate;border-spacing:0;background:var(--card);
border:1px solid var(--line);border-radius:14px;overflow:hidden}
th{text-align:left;font-size:13px;font-weight:600;color:var(--soft);background:var(--wash);
padding:10px 14px}
td{padding:12px 14px;border-top:1px solid var(--line);vertical-align:top;
font-variant-numeric:tabular-nums}
table{table-layout:fixed}
th.first{width:150px}
th.wide{width:31%}
table.quarantine th{width:auto}
table.quarantine th.number{width:90px}
.number{text-align:right;white-space:nowrap}
tr.broken td:first-child{box-shadow:inset 4px 0 var(--red)}
tr.not-evaluated td:first-child{box-shadow:inset 4px 0 var(--red)}
tr.quarantined td:first-child{box-shadow:inset 4px 0 var(--violet)}
tr.warning td:first-child{box-shadow:inset 4px 0 var(--amber)}
.state{display:inline-block;padding:2px 10px;border-radius:99px;font-size:13px;font-weight:600;
white-space:nowrap}
.state.kept{color:var(--green);background:var(--green-wash)}
.state.broken,.state.not-evaluated{color:var(--red);background:var(--red-wash)}
.state.not-evaluated{outline:1px dashed var(--red);outline-offset:-1px}
.state.quarantined{color:var(--violet);background:var(--violet-wash)}
.state.warning{color:var(--amber);background:var(--amber-wash)}
.state.no-reference-yet{color:var(--soft);background:var(--wash)}
.state.noted{color:var(--blue);background:var(--blue-wash)}
.severity{display:block;margin-top:4px;font-size:12px;color:var(--soft)}
code{font:12.5px/1.5 ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;
background:var(--wash);border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
code.id{background:none;padding:0;color:var(--soft)}
.remedy{margin-top:4px;font-style:italic;color:var(--soft)}
.rows code{display:inline-block}
.rows span{color:var(--soft)}
footer{margin-top:28px;color:var(--soft);font-size:13px}
@media (max-width:760px){main{padding:14px}dl{grid-template-columns:repeat(2,1fr)}
header{padding:18px;gap:14px}.mark{width:40px;height:40px;font-size:22px}
thead{display:none}table,tbody,tr,td{display:block;width:100%}
tr{border-top:1px solid var(--line);padding:8px 0}tbody tr:first-child{border-top:0}
td{border:0;padding:4px 14px}
.number{text-align:left}
td[data-title]:not([data-title=State]):not([data-title=Promise])::before{
content:attr(data-title) ": ";color:var(--soft)}}
@media print{:root{--paper:#fff;--card:#fff}body{font-size:11px}main{max-width:none;padding:0}
header,.bar span,.state,.key,.mark{print-color-adjust:exact;-webkit-print-color-adjust:exact}
tr,header{break-inside:avoid}thead{display:table-header-group}table{border-radius:0}}
"""
