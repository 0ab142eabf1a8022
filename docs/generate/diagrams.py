"""Draws the Mermaid diagrams of our pages as SVG, so that the site shows them without a network.

A Git host draws the fenced `mermaid` blocks itself. The site's theme would load the Mermaid library
from another host, so `site_builder.py` replaces each block by a picture that is drawn here. Only
what our pages use is understood, and anything else is an error rather than a picture with parts
missing:

    flowchart TD    nodes `id["text"]`, edges `a -->|text| b`, `a --> b`, dotted `a -.->|text| b`
    sequenceDiagram `participant id as text`, messages `a->>b: text`, `Note over a,b: text`
    stateDiagram-v2 `a --> b: text` and `[*]`

In a text, `<br/>` begins a new line. `accTitle: words` is the title for people who cannot see the
picture.
"""

import re
from dataclasses import dataclass, field
from html import escape

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FONT = 'font-family="system-ui, sans-serif" font-size="14"'
LETTER = 7.4  # the average width of a letter in that font
LINE = 19
PAD = 14
ACROSS = 60  # between the boxes of a row
BETWEEN = 62  # between two rows

INK = "#1f2933"
SOFT = "#52606d"
FILL = "#eef4fb"
BORDER = "#3f6ea8"


@dataclass
class Box:
    """A node of a graph: its lines of text, and where it is drawn."""

    lines: list[str]
    rank: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(70.0, max(map(len, self.lines)) * LETTER + 2 * PAD)

    @property
    def height(self) -> float:
        return len(self.lines) * LINE + 1.4 * PAD


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes, by their names."""

    start: str
    end: str
    text: str = ""
    dotted: bool = False


@dataclass
class Graph:
    """Nodes in the order in which the source names them, and edges."""

    boxes: dict[str, Box] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def node(self, name: str, text: str | None = None) -> str:
        """Add a node, or give a known one its text."""
        if name not in self.boxes:
            self.boxes[name] = Box(lines_of(text or name))
        elif text:
            self.boxes[name].lines = lines_of(text)
        return name


def title_of(source: str) -> str:
    """The title of a diagram for people who cannot see it."""
    found = re.search(r"^\s*accTitle:\s*(.+)$", source, re.MULTILINE)
    if not found:
        raise ValueError("a diagram needs a line accTitle: words")
    return found[1].strip()


def draw(source: str) -> str:
    """The diagram as an SVG document."""
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    kind = lines[0].split()[0]
    body = [line for line in lines[1:] if not line.startswith(("accTitle:", "%%"))]
    if kind == "sequenceDiagram":
        return draw_sequence(body, title_of(source))
    if kind == "flowchart":
        return draw_graph(read_flowchart(body), title_of(source))
    if kind == "stateDiagram-v2":
        return draw_graph(read_states(body), title_of(source))
    raise ValueError(f"cannot draw a diagram of the kind {kind}")


def lines_of(text: str) -> list[str]:
    return re.split(r"<br\s*/?>", text)


NODE = r'(\w+)(?:\["([^"]*)"\])?'
FLOW_EDGE = re.compile(rf"^{NODE}\s*(-->|-\.->)\s*(?:\|([^|]*)\|)?\s*{NODE}$")
FLOW_NODE = re.compile(rf"^{NODE}$")
STATE_EDGE = re.compile(r"^(\[\*\]|\w+)\s*-->\s*(\[\*\]|\w+)\s*(?::\s*(.*))?$")


def read_flowchart(lines: list[str]) -> Graph:
    graph = Graph()
    for line in lines:
        if edge := FLOW_EDGE.match(line):
            first = graph.node(edge[1], edge[2])
            second = graph.node(edge[5], edge[6])
            graph.edges.append(Edge(first, second, edge[4] or "", edge[3] == "-.->"))
        elif node := FLOW_NODE.match(line):
            graph.node(node[1], node[2])
        else:
            raise ValueError(f"cannot draw: {line}")
    return graph


def read_states(lines: list[str]) -> Graph:
    graph = Graph()
    for line in lines:
        found = STATE_EDGE.match(line)
        if not found:
            raise ValueError(f"cannot draw: {line}")
        first = graph.node("start" if found[1] == "[*]" else found[1])
        second = graph.node("end" if found[2] == "[*]" else found[2])
        graph.edges.append(Edge(first, second, found[3] or ""))
    return graph


def rank_boxes(graph: Graph) -> None:
    """Each box one row below the lowest of those that lead to it; edges that go back up do not
    count.
    """
    order = list(graph.boxes)
    for name in order:
        for edge in graph.edges:
            if edge.start == name and order.index(edge.end) > order.index(name):
                end = graph.boxes[edge.end]
                end.rank = max(end.rank, graph.boxes[name].rank + 1)


@dataclass
class Canvas:
    """What is drawn so far, and how far it reaches."""

    parts: list[str] = field(default_factory=list)
    left: float = 0.0
    right: float = 0.0
    bottom: float = 0.0

    def reach(self, x: float, y: float = 0.0) -> None:
        """Make room for a point."""
        self.left = min(self.left, x)
        self.right = max(self.right, x)
        self.bottom = max(self.bottom, y)

    def box(self, box: Box) -> None:
        """A node with its text, the first line of it bold."""
        left = box.x - box.width / 2
        self.parts.append(
            f'<rect x="{left:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" '
            f'height="{box.height:.0f}" rx="8" fill="{FILL}" stroke="{BORDER}" stroke-width="1.5"/>'
        )
        self.parts.append(text_block(box.x, box.y + PAD * 0.7 + 14, box.lines, bold_first=True))
        self.reach(left)
        self.reach(left + box.width, box.y + box.height)

    def arrow(self, points: list[tuple[float, float]], dotted: bool = False) -> None:
        """A line through these points with a tip at its end."""
        path = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        dash = ' stroke-dasharray="5 4"' if dotted else ""
        self.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{SOFT}" stroke-width="1.4"{dash} '
            f'marker-end="url(#tip)"/>'
        )
        for x, y in points:
            self.reach(x, y)

    def label(self, x: float, y: float, text: str, anchor: str) -> None:
        """Text around this height that starts or ends at x, or has its middle there, over a white
        ground.
        """
        if not text:
            return
        lines = lines_of(text)
        width = text_width(text)
        left = {"start": x, "middle": x - width / 2, "end": x - width}[anchor]
        top = y - len(lines) * LINE / 2
        self.parts.append(
            f'<rect x="{left:.0f}" y="{top:.0f}" width="{width:.0f}" '
            f'height="{len(lines) * LINE:.0f}" fill="#fff"/>'
        )
        self.parts.append(text_block(left + width / 2, top + 14, lines, size=13))
        self.reach(left - 6)
        self.reach(left + width + 6, top + len(lines) * LINE)


def text_width(text: str) -> float:
    return max(map(len, lines_of(text))) * LETTER * 0.95 + 8 if text else 0.0


def place_boxes(graph: Graph) -> None:
    """Rows from top to bottom, each centred on x = 0."""
    rank_boxes(graph)
    y = 12.0
    for rank in sorted({box.rank for box in graph.boxes.values()}):
        row = [box for box in graph.boxes.values() if box.rank == rank]
        x = -(sum(box.width for box in row) + ACROSS * (len(row) - 1)) / 2
        for box in row:
            box.x = x + box.width / 2
            box.y = y
            x += box.width + ACROSS
        y += max(box.height for box in row) + BETWEEN


def draw_graph(graph: Graph, title: str) -> str:
    place_boxes(graph)
    canvas = Canvas()
    for box in graph.boxes.values():
        canvas.reach(box.x - box.width / 2)
        canvas.reach(box.x + box.width / 2)
    near = [edge for edge in graph.edges if abs(rank_step(graph, edge)) == 1]
    far = [edge for edge in graph.edges if edge not in near]
    for edge in near:
        draw_near(canvas, graph, edge, near)
    for edge in sorted(far, key=lambda edge: abs(rank_step(graph, edge))):
        draw_far(canvas, graph, edge)
    for box in graph.boxes.values():
        canvas.box(box)
    return svg(canvas.left - 10, canvas.right + 10, canvas.bottom + 12, title, canvas.parts)


def rank_step(graph: Graph, edge: Edge) -> int:
    """How many rows an edge goes down."""
    return graph.boxes[edge.end].rank - graph.boxes[edge.start].rank


def draw_near(canvas: Canvas, graph: Graph, edge: Edge, near: list[Edge]) -> None:
    """An edge to the next row; one that has a counterpart keeps to its own side, its text outside."""
    start = graph.boxes[edge.start]
    end = graph.boxes[edge.end]
    down = end.rank > start.rank
    paired = any((other.start, other.end) == (edge.end, edge.start) for other in near)
    shift = 0.0
    if paired:
        shift = -18.0 if down else 18.0
    first = (start.x + shift, start.y + start.height if down else start.y)
    last = (end.x + shift, end.y if down else end.y + end.height)
    canvas.arrow([first, last], edge.dotted)
    middle = (first[0] + last[0]) / 2
    height = (first[1] + last[1]) / 2
    if paired:
        canvas.label(
            middle - 6 if down else middle + 6, height, edge.text, "end" if down else "start"
        )
    else:
        canvas.label(middle, height - 2, edge.text, "middle")


def draw_far(canvas: Canvas, graph: Graph, edge: Edge) -> None:
    """An edge that skips rows goes round everything drawn so far: down on the right, up on the
    left.
    """
    start = graph.boxes[edge.start]
    end = graph.boxes[edge.end]
    down = end.rank > start.rank
    side = 1 if down else -1
    x = canvas.right + 18 if down else canvas.left - 18
    first = (start.x + side * start.width / 2, start.y + start.height * 0.62)
    last = (end.x + side * end.width / 2, end.y + end.height * 0.38)
    canvas.arrow([first, (x, first[1]), (x, last[1]), last], edge.dotted)
    canvas.label(x + 6 * side, (first[1] + last[1]) / 2, edge.text, "start" if down else "end")


def text_block(
    x: float, y: float, lines: list[str], bold_first: bool = False, size: int = 14
) -> str:
    shown = []
    for place, line in enumerate(lines):
        weight = ' font-weight="600"' if bold_first and place == 0 else ""
        shown.append(
            f'<text x="{x:.0f}" y="{y + place * LINE:.0f}" text-anchor="middle" font-size="{size}" '
            f'fill="{INK}"{weight}>{escape(line)}</text>'
        )
    return "".join(shown)


PARTICIPANT = re.compile(r"^(?:participant|actor) (\w+)(?: as (.*))?$")
MESSAGE = re.compile(r"^(\w+)(->>|-->>)(\w+):\s*(.*)$")
NOTE = re.compile(r"^Note over (\w+)(?:,\s*(\w+))?:\s*(.*)$")


@dataclass(frozen=True)
class Row:
    """A message between two participants of a sequence, or a note over one or two of them."""

    first: str
    second: str
    text: str
    is_note: bool = False
    dotted: bool = False


def read_sequence(lines: list[str]) -> tuple[dict[str, str], list[Row]]:
    """The participants' texts by name, and the rows."""
    names: dict[str, str] = {}
    rows = []
    for line in lines:
        if found := PARTICIPANT.match(line):
            names[found[1]] = found[2] or found[1]
        elif found := MESSAGE.match(line):
            rows.append(Row(found[1], found[3], found[4], dotted=found[2] == "-->>"))
        elif found := NOTE.match(line):
            rows.append(Row(found[1], found[2] or found[1], found[3], is_note=True))
        else:
            raise ValueError(f"cannot draw: {line}")
    return names, rows


def draw_sequence(lines: list[str], title: str) -> str:
    """A column for each participant, and below each other the messages and notes."""
    names, rows = read_sequence(lines)
    gap = column_gap(list(names), rows)
    columns = {name: gap * place for place, name in enumerate(names)}
    canvas = Canvas()
    heads = [Box(lines_of(text), x=columns[name], y=8) for name, text in names.items()]
    head = max(box.y + box.height for box in heads)
    y = head + 34.0
    drawn = Canvas()
    for row in rows:
        y += LINE * (len(lines_of(row.text)) - 1)
        draw_row(drawn, row, columns[row.first], columns[row.second], y)
        y += 46
    for x in columns.values():
        canvas.parts.append(
            f'<line x1="{x:.0f}" y1="{head:.0f}" x2="{x:.0f}" y2="{y - 16:.0f}" '
            f'stroke="#cbd2d9" stroke-width="1.5"/>'
        )
    for box in heads:
        canvas.box(box)
    left = min(canvas.left, drawn.left)
    right = max(canvas.right, drawn.right)
    return svg(left - 10, right + 10, y, title, canvas.parts + drawn.parts)


def column_gap(names: list[str], rows: list[Row]) -> float:
    """Wide enough for the longest message between two neighbouring columns."""
    widest = 190.0
    for row in rows:
        columns = abs(names.index(row.first) - names.index(row.second))
        if columns and not row.is_note:
            widest = max(widest, (text_width(row.text) + 30) / columns)
    return widest


def draw_row(canvas: Canvas, row: Row, x1: float, x2: float, y: float) -> None:
    words = lines_of(row.text)
    middle = (x1 + x2) / 2
    if not row.is_note:
        canvas.arrow([(x1, y), (x2, y)], row.dotted)
        canvas.parts.append(text_block(middle, y - 8 - LINE * (len(words) - 1), words, size=13))
        return
    width = abs(x2 - x1) + text_width(row.text) + 16
    top = y - 18 - LINE * (len(words) - 1)
    canvas.parts.append(
        f'<rect x="{middle - width / 2:.0f}" y="{top:.0f}" width="{width:.0f}" '
        f'height="{LINE * len(words) + 10:.0f}" fill="#fdf6e3" stroke="#d8c48a"/>'
    )
    canvas.parts.append(text_block(middle, top + 18, words, size=13))
    canvas.reach(middle - width / 2)
    canvas.reach(middle + width / 2)


def svg(left: float, right: float, height: float, title: str, parts: list[str]) -> str:
    width = right - left
    tip = (
        f'<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{SOFT}"/></marker></defs>'
    )
    ground = f'<rect x="{left:.0f}" width="{width:.0f}" height="{height:.0f}" fill="#fff"/>'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.0f} 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" {FONT}>'
        f"<title>{escape(title)}</title>"
    )
    return "\n".join([opening, tip, ground, *parts, "</svg>\n"])
