"""The heatmap page in a headless browser: the cells that its program draws are those that C++ computed, filters and a
click work, and nothing a result says becomes markup or code.

usage: heatmap_dom_test.py HEATMAP_PAGE ROWS.csv
"""
import html.parser
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")


class Dom(html.parser.HTMLParser):
    """Cells of #map, rows of the listing, headings, and every element name with its attributes."""

    def __init__(self):
        super().__init__()
        self.stack, self.cells, self.heads, self.listed, self.tags, self.text = [], [], [], [], [], {}

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag in ("meta", "br", "img", "input", "link"):
            return
        self.stack.append((tag, attributes))
        if tag == "td" and "data-r" in attributes:
            self.cells.append({"r": int(attributes["data-r"]), "c": int(attributes["data-c"]), "state": attributes["data-state"],
                               "label": attributes.get("aria-label", ""), "parts": []})
        if tag == "tr" and self.inside("list"):
            self.listed.append([])

    def handle_endtag(self, tag):
        while self.stack and self.stack.pop()[0] != tag:
            pass

    def inside(self, element_id):
        return any(a.get("id") == element_id for _, a in self.stack)

    def handle_data(self, data):
        if not self.stack:
            return
        tag = self.stack[-1][0]
        if self.inside("map") and any("data-r" in a for _, a in self.stack):
            self.cells[-1]["parts"].append(data)
        elif tag == "th" and self.inside("map"):
            self.heads.append(data)
        elif tag in ("td", "th") and self.inside("list"):
            self.listed[-1].append(data)
        for element_id in ("summary", "legend", "filters", "tip"):
            if self.inside(element_id):
                self.text[element_id] = self.text.get(element_id, "") + data
        if tag in ("h1", "h2", "title"):
            self.text[tag] = self.text.get(tag, "") + data


def dump(browser, page, fragment, scratch):
    command = [browser, "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}/profile", "--virtual-time-budget=5000",
               "--dump-dom", page.as_uri() + ("#" + fragment if fragment else "")]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    dom = Dom()
    dom.feed(done.stdout.decode("utf-8"))
    return dom


def expect(condition, sentence):
    if not condition:
        raise SystemExit("FAILED: " + sentence)


def check_cells(dom, cells):
    expect(len(dom.cells) == len(cells), f"{len(dom.cells)} cells in the page, {len(cells)} computed")
    for shown, (row, col, state, value, *counts, trial, layout) in zip(dom.cells, cells):
        where = f"cell ({row}, {col})"
        expect(shown["state"] == state.replace("not measured", "unmeasured"), f"{where} is {shown['state']}, computed {state}")
        if state == "measured":
            expect(shown["parts"][0] == value, f"{where} shows {shown['parts'][0]}, computed {value}")
            expect(" ".join(shown["parts"][1:-1]) == layout, f"{where} shows layout {shown['parts'][1:-1]}, computed {layout}")
            expect(shown["parts"][-1] == f"{counts[0]} of {sum(map(int, counts))}", f"{where} counts {shown['parts'][-1]}")
        expect(trial != "", where)


def check_nothing_injected(dom, page):
    scripts = [a for tag, a in dom.tags if tag == "script"]
    expect(len(scripts) == 2, f"{len(scripts)} script elements in the page; it has two of its own")
    expect(not any(tag in ("img", "b") and "onclick" in a for tag, a in dom.tags), "text of a result became an element")
    expect("pwned" not in dom.text.get("title", ""), "text of a result ran as code")
    source = page.read_bytes().decode("utf-8")  # raises when it is not UTF-8
    body = source.replace("http://www.w3.org/2000/svg", "")
    expect(not re.search(r"https?://|//[a-z0-9.-]+\.[a-z]{2,}/|@import|url\((?!#)", body), "the page names something outside itself")


def main(program, rows):
    browser = next((b for b in map(shutil.which, BROWSERS) if b), None)
    expect(browser, "no headless browser here; install the Debian package chromium-headless-shell (or chromium)")
    with tempfile.TemporaryDirectory() as scratch:
        prefix = pathlib.Path(scratch, "map")
        subprocess.run([program, rows, "model", "nodes", "tokens_per_s_gpu", prefix, "Is <b>it</b> safe & sound?"], check=True)
        page = prefix.with_suffix(".html")
        cells = [line.split("\t") for line in prefix.with_suffix(".cells.tsv").read_text("utf-8").splitlines()]

        dom = dump(browser, page, "", scratch)
        check_cells(dom, cells)
        check_nothing_injected(dom, page)
        states = {c["state"] for c in dom.cells}
        for state in ("measured", "oom", "pruned", "failed", "mixed", "pending", "unmeasured", "empty"):
            expect(state in states, f"the fixture shows no cell of state {state}")
        columns = [h for h in dom.heads if h.isdigit()]
        expect(columns == ["1", "2", "4", "16"], f"columns are not in the order of numbers: {columns}")
        expect("brighter is better" in dom.text["legend"], "the legend does not say which colour is better")

        # A filter that leaves one value of tp: counts shrink, the summary says so.
        dom = dump(browser, page, "f.tp=8", scratch)
        expect("tp = 8" in dom.text["filters"], f"the filter is not shown: {dom.text['filters'][:80]}")
        first = next(c for c in dom.cells if c["label"].startswith("model llama-1b, nodes 1:"))
        expect("2 ok" in first["label"], f"the filter did not reach the cell: {first['label']}")

        # Another metric, where less is better: the best cell is the lowest.
        dom = dump(browser, page, "value=peak_allocated_bytes&best=peak_allocated_bytes", scratch)
        first = next(c for c in dom.cells if c["label"].startswith("model llama-1b, nodes 1:"))
        expect(first["parts"][0] == "3.75", f"lowest peak of the cell is 3.75 GiB, the page shows {first['parts'][0]}")

        # A cell that is opened lists its configurations with their reasons.
        dom = dump(browser, page, "cell=" + urllib.parse.quote("llama-8b~1"), scratch)
        expect("3 configurations" in dom.text["h2"], f"listing says {dom.text.get('h2')}")
        expect(any("out of device memory in backward" in text for row in dom.listed for text in row), "reasons are not listed")
    print("heatmap page: cells, filters, metrics and listing as computed; nothing injected")


if __name__ == "__main__":
    main(*sys.argv[1:])
