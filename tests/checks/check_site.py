#!/usr/bin/env python3
"""check_site.py BROWSER_FOLDER: scripts/site builds the documentation site without a warning, and its pages work as files: the search box finds
a word, the hit opens, nothing is asked from elsewhere; notebooks are pages with all their cells. BROWSER_FOLDER: where browser.py lies. Exit 77: mkdocs is missing."""
import html
import json
import re
import subprocess
import sys

import sources

sys.path[:0] = [sys.argv[1], str(sources.ROOT / "scripts")]
import browser  # noqa: E402
from notebook_page import as_markdown  # noqa: E402

SITE = sources.ROOT / "build" / "site"
WORD, PAGE = "gradient accumulation", "glossary.html"


def shown(page, expression, seconds=50):
    """Waits in the page until the expression is true; whether it came to that."""
    return page.evaluate(f"new Promise((done) => {{ const until = performance.now() + {seconds * 1000}; const look = () => {{ "
                         f"if ({expression}) done(true); else if (performance.now() > until) done(false); "
                         "else requestAnimationFrame(look); }; look(); })")


def search_problems(page):
    page.open((SITE / "grid.html").as_uri())
    page.evaluate("(() => { const box = document.querySelector('.md-search__input'); box.focus(); "
                  f"box.value = {WORD!r}; box.dispatchEvent(new Event('keyup', {{ bubbles: true }})); }})()")
    if not shown(page, "document.querySelector('.md-search-result__item')"):
        yield f"the search box of {SITE}/grid.html, opened as a file, finds nothing for '{WORD}': {page.problems}"
        return
    hits = page.attributes(".md-search-result__link", "href")
    if not any(PAGE in hit for hit in hits):
        yield f"the search for '{WORD}' does not find {PAGE}: {hits}"
    if not (SITE / hits[0].rsplit("/", 1)[-1].partition("?")[0].partition("#")[0]).is_file() and not hits[0].startswith("file:"):
        yield f"a hit leads nowhere: {hits[0]}"
    if elsewhere := [url for url in page.requests if not url.startswith(("file:", "data:", "about:"))]:
        yield f"the page asks for {elsewhere}"
    if page.problems:
        yield f"errors in the page: {page.problems}"


def notebook_problems():
    """Each notebook is a page with all its cells, and the pages that name it lead there."""
    for book in sorted(sources.ROOT.glob("examples/*/*.ipynb")):
        page = SITE / "examples" / f"{book.stem}.html"
        if not page.is_file():
            yield f"{book}: no page {page}"
            continue
        text = html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))
        for cell in json.loads(book.read_text())["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] == "code" and source.rstrip() not in text:
                yield f"{page}: without the cell that begins with {source[:60]!r}"
        for other, link in ((SITE / "examples" / "index.html", page.name), (SITE / "python.html", f"examples/{page.name}")):
            if f'href="{link}"' not in other.read_text():
                yield f"{other}: no link to {link}"
    results = [{"output_type": "stream", "text": ["a\n", "```b\n"]}, {"output_type": "execute_result", "data": {"text/plain": ["42"], "text/html": "<b>"}}]
    cells = [{"cell_type": "code", "source": ["f()\n", "g()"], "outputs": results}, {"cell_type": "markdown", "source": "# T"}]
    made = as_markdown({"metadata": {"language_info": {"name": "python"}}, "cells": cells})
    expected = "```python\nf()\ng()\n```\n\n````text\na\n```b\n````\n\n```text\n42\n```\n\n# T\n"
    if made != expected:
        yield f"results of cells: {made!r}, not {expected!r}"


def main():
    done = subprocess.run([sources.ROOT / "scripts" / "site"], check=False)
    if done.returncode:
        sys.exit(done.returncode)
    problems = list(notebook_problems())
    if browser.find():
        with browser.page() as page:
            problems += search_problems(page)
    sources.finish(problems, len(list(SITE.rglob("*.html"))))


if __name__ == "__main__":
    main()
