#!/usr/bin/env python3
"""report_dom_test.py BIN [PICTURES]: the report in a headless browser at three widths: nothing beyond the page, configurations folded away
with a button that copies, no script but the page's own, whole labels, figures aligned, two models apart."""
import pathlib
import subprocess
import sys
import tempfile

import bench
import browser
from answers_test import SPEC, row
from heatmap_dom_test import expect


def make(bin_dir, folder):
    models = [{"model": "small-1B", "spec": SPEC}, {"model": "large-8B", "spec": {**SPEC, "layers": SPEC["layers"] + 2}}]
    lines = [row(batch, 100.0 + batch, nodes=nodes, **model) for batch in (1, 2, 4) for nodes in (1, 2) for model in models]
    out_of_memory = row(8, 0, "oom", nodes=1, **models[0])
    out_of_memory["metrics"] = {"peak_allocated_bytes": 77 << 30, "predicted_bytes": 116 << 30}
    lines += [out_of_memory, row(16, 0, "pruned", nodes=1, **models[1])]
    bench.store(bin_dir, folder / "r.db", "two models", lines)
    subprocess.run([bin_dir / "sweep", "report", "--db", folder / "r.db", "-o", folder / "r.html"], check=True, timeout=120, stderr=subprocess.DEVNULL)
    return folder / "r.html"


def fits(page, file, pictures):
    for width in (420, 1000, 1600):
        page.open(file.as_uri(), width=width)
        expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"the report is wider than its window of {width}")
        boxes = page.evaluate("Array.from(document.querySelectorAll('.wide, .chart'), (b) => [b.scrollWidth > b.clientWidth + 1, b.classList.contains('more')])")
        expect(all(over == fades for over, fades in boxes) and (width >= 760 or any(over for over, _ in boxes)),
               f"at {width}: what goes on beyond its box fades, and nothing else: {boxes}")
        if pictures:
            page.picture(f"{pictures}/report_{width}.png")
        inside = page.evaluate("Array.from(document.querySelectorAll('.chart:not(.wide) svg'), (s) => { const b = s.getBoundingClientRect(); "
                               "return Array.from(s.querySelectorAll('text')).filter((t) => { const c = t.getBoundingClientRect(); "
                               "return c.left < b.left - 1 || c.right > b.right + 1; }).map((t) => t.textContent); }).flat()")
        expect(inside == [], f"labels beyond their chart: {inside}")


def compares_like_with_like(page):
    for section in ("answer", "cost"):
        models = page.texts(f"#{section} tr > td:first-child")
        expect(set(models) == {"large-8B", "small-1B"}, f"#{section} has {models}")
        expect(page.evaluate(f"document.querySelectorAll('#{section} table').length") == 1, f"#{section} has not one table")
    expect(page.texts("#answer tr > td:first-child") == ["large-8B", "small-1B"], "not one row for each model")
    expect(page.texts("#answer .group > summary") == ["large-8B", "small-1B"] and not page.evaluate("document.querySelector('.group[open]')"), "answers are not folded")
    order = page.attributes("section[id]", "id")
    expect(order[:5] == ["answer", "cost", "heatmap", "importance", "failures"], f"sections: {order}")
    expect(len(page.texts("#answer .gain")) == 2, "no gain over the median and the first guess")
    expect((page.evaluate("document.querySelectorAll('#heatmap rect.best').length") == 1) != (page.evaluate("document.querySelectorAll('#heatmap rect.tied').length") > 1), "neither one best cell nor several tied ones are marked")
    heads = page.texts("th")
    expect(not any("_" in head for head in heads), f"identifiers as heads: {heads}")
    right = page.evaluate("Array.from(document.querySelectorAll('#cost td'), (c) => [c.textContent, getComputedStyle(c).textAlign])")
    expect(all(align == "right" for text, align in right if text.replace(".", "").replace("k", "").isdigit()), f"figures are not aligned: {right}")


def has_what_it_can_show_and_nothing_else(page):
    ids = page.attributes("section[id]", "id")
    expect({"importance", "fits", "tradeoff"} <= set(ids), f"no section of importance, of what fits, or of time and cost: {ids}")
    expect(not {"stages", "beside"} & set(ids), f"a section of what is not there: {ids}")
    expect(any("micro-batch size" in t for t in page.texts("#importance svg text")), f"the axes that matter: {page.texts('#importance svg text')}")
    for section, front in (("tradeoff", "nothing cheaper in as little time"), ("memory", "nothing faster in as little memory")):
        expect(any(front in text for text in page.texts(f"#{section} .chart text")), f"#{section} has no Pareto front: {page.texts(f'#{section} .chart text')}")
        points = page.evaluate(f"document.querySelectorAll('#{section} .chart path > title').length")
        expect(points >= 6, f"#{section} has {points} points")
    expect(any("≥ 77.0 GiB" in text for text in page.texts("#fits td, #predictions td")), "the peak of what ran out of memory is no lower bound")
    expect(not any("Warning" in text for text in page.texts("#predictions p")), "a lower bound counts as an error of the prediction")
    fits = page.texts("#fits tr")
    expect(any("4 × " in row and "8 × " in row for row in fits), f"what fits, and what did not: {fits}")
    bodies = page.evaluate("Array.from(document.querySelectorAll('section'), (s) => [s.id, s.textContent.length])")
    expect(all(length > 40 for _, length in bodies), f"an empty section: {bodies}")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    ground = page.evaluate("[document.body, document.querySelector('.chart svg')].map((e) => getComputedStyle(e).backgroundColor)")
    page.call("Emulation.setEmulatedMedia", features=[])
    expect(ground[0] != ground[1] == "rgb(255, 255, 255)", f"in the dark: page and charts are {ground}")


def prints(page, file):
    """On paper: no button, every part unfolded, nothing beyond the paper."""
    page.open(file.as_uri(), width=760)
    page.call("Emulation.setEmulatedMedia", media="print")
    buttons = page.evaluate("Array.from(document.querySelectorAll('.copy')).filter((b) => b.getBoundingClientRect().height > 0).length")
    over = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    folded = page.evaluate("Array.from(document.querySelectorAll('.group'), (g) => g.lastElementChild.getBoundingClientRect().height)")
    page.call("Emulation.setEmulatedMedia", media="")
    expect(buttons == 0 and over <= 0, f"on paper: {buttons} buttons, {over} pixels beyond it")
    expect(folded and all(folded), f"on paper answers stay folded: {folded}")


def folds_and_copies(page):
    expect(page.evaluate("document.querySelectorAll('details.form').length >= 10 && !document.querySelector('details.form[open]')"), "configurations are open")
    page.click("details.group > summary")
    page.click("details.form > summary")
    expect(page.evaluate("document.querySelector('details.form').open"), "a click does not unfold")
    page.evaluate("window.copied = null; Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (t) => { window.copied = t; } } })")
    page.click("details.form[open] .copy")
    page.settle()
    expect((page.evaluate("window.copied") or "").startswith("name: best-"), f"the button copies {page.evaluate('window.copied')!r}")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.pwned = 1\">'); "
                  "const s = document.createElement('script'); s.textContent = 'window.pwned = 1'; document.body.append(s)")
    page.settle()
    expect(page.evaluate("window.pwned") is None, "a script runs that is not the page's own")


def main(bin_dir, pictures=None):
    with tempfile.TemporaryDirectory() as scratch, browser.page() as page:
        file = make(pathlib.Path(bin_dir), pathlib.Path(scratch))
        fits(page, file, pictures)
        compares_like_with_like(page)
        has_what_it_can_show_and_nothing_else(page)
        expect(page.problems == [], f"the page complains: {page.problems}")
        prints(page, file)
        page.open(file.as_uri())
        folds_and_copies(page)
    print("report page: fits three widths, two models apart, configurations fold and copy, no other script runs")


if __name__ == "__main__":
    main(*sys.argv[1:])
