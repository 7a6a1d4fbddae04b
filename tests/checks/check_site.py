#!/usr/bin/env python3
"""check_site.py BROWSER_FOLDER: scripts/site builds the documentation site without a warning, and its pages work as files: the search box finds
a word, the hit opens, nothing is asked from elsewhere. BROWSER_FOLDER: where browser.py lies. Exit 77: mkdocs is missing."""
import subprocess
import sys

import sources

sys.path.insert(0, sys.argv[1])
import browser  # noqa: E402

SITE = sources.ROOT / "build" / "site"
WORD, PAGE = "gradient accumulation", "glossary.html"


def shown(page, expression, seconds=30):
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


def main():
    done = subprocess.run([sources.ROOT / "scripts" / "site"], check=False)
    if done.returncode:
        sys.exit(done.returncode)
    problems = []
    if browser.find():
        with browser.page() as page:
            problems = list(search_problems(page))
    sources.finish(problems, len(list(SITE.rglob("*.html"))))


if __name__ == "__main__":
    main()
