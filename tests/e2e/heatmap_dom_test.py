"""The heatmap page in a headless browser, driven as people do: the cells that its program draws are those that C++ computed;
filters, pointing, clicking and the keyboard work; and nothing a result says becomes markup or code.

usage: heatmap_dom_test.py HEATMAP_PAGE ROWS.csv [PICTURES]     with a folder: screenshots go there
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

import browser

SCRIPTS = 3  # the data, Vega, the page's program
HOSTILE = ["<b>bold</b>", "\"quoted\" & 'single'", "</script><script>document.title='pwned'</script>", "Größe 模型 🙂",
           "<img src=x onerror=\"document.title='pwned'\">", "javascript:document.title='pwned'", "${document.title='pwned'}", "~",
           "'];document.title='pwned';//"]


def expect(condition, sentence):
    if not condition:
        raise SystemExit("FAILED: " + sentence)


def labels(page):
    return page.attributes("#chart .cells path", "aria-label")


def cell(page, name):
    """A selector of the cell with these keys, and what it says."""
    said = labels(page)
    at = next(i for i, label in enumerate(said) if label.startswith(name + ": "))
    return f"#chart .cells path:nth-child({at + 1})", said[at]


def check_cells(page, cells):
    """Each cell says its keys, its value or state, its layout and its counts."""
    shown = labels(page)
    expect(len(shown) == len(cells), f"{len(shown)} cells in the page, {len(cells)} computed")
    for label, (row, col, state, value, *counts, _, layout) in zip(shown, cells):
        where = f"model {row}, nodes {col}: "
        expect(label.startswith(where), f"cell '{label}', expected at {where}")
        said = label[len(where):]
        if state == "measured":
            expect(re.match(re.escape(value) + r"( \S+)?; " + re.escape(layout) + "; " + counts[0] + " ok", said), f"{said}, computed {value}; {layout}")
        else:
            words = {"oom": "OOM", "pending": "not run yet", "mixed": "none succeeded", "empty": "–"}.get(state, state)
            expect(said.startswith(words + "; "), f"{where}{said}, computed {state}")
        total = sum(int(n) for n in re.findall(r"(\d+) (?:ok|OOM|pruned|failed|not run yet)", said))
        expect(total == sum(map(int, counts)), f"{where}{said}, computed {counts}")


def check_nothing_injected(page, file):
    expect(page.evaluate("document.scripts.length") == SCRIPTS, "a script element that is not the page's own")
    expect(page.evaluate("document.querySelectorAll('img, b[onclick], iframe, object').length") == 0, "text of a result became an element")
    expect("pwned" not in page.evaluate("document.title"), "text of a result ran as code")
    expect(page.problems == [], f"the page complains: {page.problems}")
    expect(all(url.startswith(("file:", "data:", "blob:", "about:")) for url in page.requests), f"the page loads {page.requests}")
    source = file.read_bytes().decode("utf-8")  # raises when it is not UTF-8
    source = re.sub(r"<script>\n// Vega.*?</script>", "", source, count=1, flags=re.DOTALL)  # given; the page's policy holds it
    source = re.sub(r"http://www\.w3\.org/[\w/]+", "", source)
    found = re.search(r"(?:src|href)=[\"']?https?:|@import|url\((?!#)", source)
    expect(not found, f"the page names something outside itself: {found and source[found.start() - 60:found.end() + 60]}")


def draw(program, rows, cols, value, prefix, question):
    subprocess.run([program, rows, "model", cols, value, prefix, question], check=True, stdout=subprocess.DEVNULL)
    return prefix.with_suffix(".html")


def looks_right(page, file, cells):
    page.open(file.as_uri())
    check_cells(page, cells)
    check_nothing_injected(page, file)
    computed = {line[2] for line in cells}
    for state in ("measured", "oom", "pruned", "failed", "mixed", "pending", "not measured", "empty"):
        expect(state in computed, f"the fixture shows no cell of state {state}")
    keys = page.texts("#keys .key")
    expect(any("out of memory" in key for key in keys) and any("several reasons" in key for key in keys), f"the key explains {keys}")
    drawn = page.texts("#chart .role-axis-label text")
    expect([t for t in drawn if t.isdigit()] == ["1", "2", "4", "16"], f"columns are not in the order of numbers: {drawn}")
    expect(any("brighter is better" in t for t in page.texts("#chart text")), "the legend does not say which colour is better")


FIRST = "model llama-1b, nodes 1"


def grows_with_the_page_and_marks_the_best(page, file):
    """At every width: nothing beyond the page, whole labels, one best cell, and a best of each row and column."""
    sizes = []
    for width in (420, 1000, 1600):
        page.open(file.as_uri(), width=width)
        expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"the page is wider than its window of {width}")
        expect(sum("; the best of all" in label for label in labels(page)) == 1, f"one best cell, not {labels(page)}")
        expect(sum(t.startswith("★ ") for t in page.texts("#chart text")) == 1, "the best cell has no star")
        drawn = page.texts("#chart .role-axis-label text")
        expect({"llama-1b", "llama-8b"} <= set(drawn) and not any("…" in t for t in drawn), f"labels are cut: {drawn}")
        sizes.append(page.evaluate("document.querySelector('#chart .cells path').getBoundingClientRect().width"))
    expect(sizes[2] > sizes[1] * 1.2, f"cells do not grow with the page: {sizes}")
    expect("row best" in page.texts("#chart text") and "column best" in page.texts("#chart text"), "no best of rows and columns")
    expect("how many of the cell's configurations" in page.texts("#summary")[0], "'4 of 65 ok' is not explained")


def states_look_different(page):
    """Not run yet, pruned, failed and no such configuration have swatches of their own."""
    looks = page.evaluate("Array.from(document.querySelectorAll('#keys .swatch'), (e) => { const s = getComputedStyle(e); "
                          "return [e.className, s.backgroundColor + s.backgroundImage + s.borderStyle + s.borderColor + e.textContent]; })")
    expect({"swatch pending", "swatch pruned", "swatch failed", "swatch empty"} <= {name for name, _ in looks}, f"the key has {looks}")
    expect(len({look for _, look in looks}) == len(looks), f"two states look the same: {looks}")


def one_model_at_a_time(page, program, scratch):
    """Cells that would mix models hold one; the choice is on the page, and a mix says so."""
    rows = scratch / "mix.csv"
    rows.write_text("trial,model,nodes,tp,outcome,tokens_per_s_gpu\n1,small,1,1,ok,900\n2,big,1,1,ok,10\n3,big,1,2,ok,20\n4,big,2,1,ok,30\n")
    subprocess.run([program, rows, "tp", "nodes", "tokens_per_s_gpu", scratch / "mix"], check=True, stdout=subprocess.DEVNULL)
    page.open((scratch / "mix.html").as_uri())
    expect(not any("900" in label for label in labels(page)) and page.texts(".warn") == [], f"a cell mixes models: {labels(page)}")
    page.evaluate("(() => { const s = document.getElementsByName('only.model')[0]; s.value = -1; s.dispatchEvent(new Event('change')); })()")
    page.settle()
    expect(any("900" in label and "small" in label for label in labels(page)), f"a mixed cell does not name its model: {labels(page)}")
    expect("2 models" in page.texts(".warn")[0], "a mix is not said")
    expect("only.model=" in page.evaluate("location.hash"), "the mix is not in the address")


def ties_are_marked(page, program, scratch):
    """Cells that cannot be told from the best have dashed edges and a sign, and no star is given; those behind have neither."""
    rows = scratch / "ties.csv"
    rows.write_text("trial,model,nodes,tp,outcome,tokens_per_s_gpu\n1,m,1,1,ok,900\n2,m,2,1,ok,900\n3,m,1,2,ok,20\n4,m,2,2,ok,30\n")
    subprocess.run([program, rows, "tp", "nodes", "tokens_per_s_gpu", scratch / "ties"], check=True, stdout=subprocess.DEVNULL)
    page.open((scratch / "ties.html").as_uri())
    edges = page.evaluate("Array.from(document.querySelectorAll('#chart .cells path'), (p) => [p.getAttribute('aria-label').includes('; ties with the best'), "
                          "!!(p.getAttribute('stroke-dasharray') || '').replace('none', '')])")
    expect(edges == [[True, True]] * 2 + [[False, False]] * 2, f"ties and dashed edges: {edges}")
    words = page.texts("#chart text")
    expect(sum(t.startswith("≈ ") for t in words) == 2 and not any("★" in t for t in words), f"signs of a tie: {words}")
    expect("≈ the 2 best" in page.texts("#summary")[0], page.texts("#summary")[0])


def prints_pictures_alone(page, file):
    """On paper: no control, no closed section, and the picture within the page."""
    page.open(file.as_uri(), width=760)
    page.call("Emulation.setEmulatedMedia", media="print")
    shown = page.evaluate("['controls', 'filters', 'parallel', 'all'].filter((id) => document.getElementById(id).getBoundingClientRect().height > 0)")
    wide = page.evaluate("[document.querySelector('#chart svg').getBoundingClientRect().right, document.documentElement.clientWidth]")
    page.call("Emulation.setEmulatedMedia", media="")
    expect(shown == [], f"on paper there are {shown}")
    expect(wide[0] <= wide[1] + 1, f"on paper the picture ends at {wide[0]} of {wide[1]}")


def pointing_shows_the_best_and_the_runners_up(page):
    page.hover(cell(page, FIRST)[0])
    tip = page.evaluate("document.getElementById('tip').innerText")
    expect("model llama-1b · nodes 1" in tip and "micro-batch size" in tip, f"the box under the pointer says {tip}")
    next_ones = page.texts("#tip .next tr")
    expect(len(next_ones) == 3, f"runners-up: {next_ones}")
    known = page.evaluate("(() => { const m = JSON.parse(document.getElementById('data').textContent).metrics[0]; "
                          "return m.text.split(',').map((t) => `${t} ${m.unit}`); })()")
    big, runners = page.texts("#tip .big")[0], page.texts("#tip .next tr td:first-child")
    expect(big in known and all(any(t.startswith(r + " ") for t in known) for r in runners), f"{big}, {runners} are none of the data's texts")
    expect(not page.evaluate("document.getElementById('tip').hidden"), "the box is hidden")


def clicking_lists_the_cell(page):
    page.click(cell(page, FIRST)[0])
    title = page.texts("#list h2")[0]
    count = int(re.search(r": (\d+) configurations", title)[1])
    rows = page.texts("#list tbody tr")
    expect(title.startswith("model llama-1b, nodes 1") and len(rows) == count, f"{title}, and {len(rows)} rows")
    expect(page.evaluate("location.hash").find("cell=") > 0, "the open cell is not in the address")
    page.click(cell(page, FIRST)[0])
    expect(page.evaluate("document.getElementById('list').hidden"), "a second click does not close the list")


def a_filter_reaches_the_cells(page):
    before = cell(page, FIRST)[1]
    page.click("#filters > summary")
    page.click("[name='tp~2']", modifiers=8)  # Shift: only this one
    expect("tensor parallel = 8" in page.texts("#filters > summary")[0], page.texts("#filters > summary")[0])
    expect("; 2 ok" in cell(page, FIRST)[1] and cell(page, FIRST)[1] != before, f"the filter did not reach the cell: {cell(page, FIRST)[1]}")
    expect("f.tp=8" in page.evaluate("location.hash"), "the filter is not in the address")
    page.evaluate("Array.from(document.querySelectorAll('#controls button')).find((b) => b.textContent === 'Reset').click()")
    page.settle()
    expect(cell(page, FIRST)[1] == before, "Reset does not bring the first view back")


def the_keyboard_reaches_every_cell(page):
    page.evaluate("document.getElementById('chart').focus()")
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"):
        page.press(key)
    tip = page.evaluate("document.getElementById('tip').innerText")
    expect("model llama-8b · nodes 2" in tip, f"after right, three down and right: {tip[:60]}")
    page.press("Enter")
    expect(page.texts("#list h2")[0].startswith("model llama-8b, nodes 2"), "Enter does not list the cell")


def pictures_can_be_saved(page):
    drawn = page.evaluate("(async () => { const all = []; const real = URL.createObjectURL; URL.createObjectURL = (b) => { all.push(b); return real(b); };"
                          "Array.from(document.querySelectorAll('#controls button')).find((b) => b.textContent === 'Save SVG').click();"
                          "for (let i = 0; i < 200 && !all.length; ++i) await new Promise(requestAnimationFrame);"
                          "URL.createObjectURL = real; return all[0].text(); })()")
    expect(drawn.startswith("<svg") and "llama-8b" in drawn, f"Save SVG gives {drawn[:80]}")


def addresses_bring_back_a_view(page, file):
    page.open(file.as_uri() + "#value=peak_allocated_bytes&best=peak_allocated_bytes")
    expect(cell(page, FIRST)[1].startswith(FIRST + ": 3.75 GiB"), f"lowest peak of the cell is 3.75 GiB, the page shows {cell(page, FIRST)[1]}")
    page.open(file.as_uri() + "#cell=" + urllib.parse.quote("llama-8b\n1"))
    expect("3 configurations" in page.texts("#list h2")[0], f"listing says {page.texts('#list h2')}")
    expect(any("out of device memory in backward" in text for text in page.texts("#list td")), "reasons are not listed")


def too_many_cells_are_refused_in_words(page, program, scratch):
    rows = scratch / "many.csv"
    rows.write_text("trial,model,nodes,tp,outcome,tokens_per_s_gpu\n" + "".join(f"{i},m,{1 + i % 2},{i + 1},ok,{i}\n" for i in range(120))
                    + "".join(f"{i},m,1,1,ok,{i}\n".replace("m,1", f"m{i},1") for i in range(200, 300)))
    file = draw(program, rows, "nodes", "tokens_per_s_gpu", scratch / "many", "")
    page.open(file.as_uri() + "#rows=model&cols=tp")
    expect("101 x 120 values of model and tensor parallel are more than 10000 cells" in page.texts("#summary")[0], page.texts("#summary")[0])
    expect(labels(page) == [] and page.problems == [], f"{len(labels(page))} cells, {page.problems}")
    page.click("#filters > summary")
    page.evaluate("(() => { const i = document.getElementsByName('tp~')[0]; i.value = '1..4, 9.0'; i.dispatchEvent(new Event('change')); })()")
    page.settle()
    expect("tensor parallel = 1, 2, 3, 4, 9" in page.texts("#filters > summary")[0], page.texts("#filters > summary")[0])


def hostile_names_stay_text(page, program, scratch):
    """Quotes, markup, script ends and Unicode as model, label, reason, question."""
    quoted = ['"' + name.replace('"', '""') + '"' for name in HOSTILE]
    lines = ["trial,model,hardware,nodes,tp,outcome,tokens_per_s_gpu,reason"]
    lines += [f"{i:016x},{name},{name},{1 + i % 2},{1 + i},{'ok' if i % 3 else 'crash'},{100 + i if i % 3 else ''},{name}" for i, name in enumerate(quoted)]
    rows = scratch / "hostile.csv"
    rows.write_text("\n".join(lines) + "\n", "utf-8")
    file = draw(program, rows, "nodes", "tokens_per_s_gpu", scratch / "hostile", "".join(HOSTILE))
    page.open(file.as_uri())
    check_nothing_injected(page, file)
    said = " ".join(labels(page))
    for name in HOSTILE:
        expect(name in said, f"the page does not show {name!r} as it is: {said[:300]}")
    for i in range(1, len(labels(page)) + 1):
        page.hover(f"#chart .cells path:nth-child({i})")
        page.click(f"#chart .cells path:nth-child({i})")
        if "no such configuration" not in labels(page)[i - 1]:
            listed = page.texts("#list h2")[0]
            expect(re.search("1 configuration, best tokens/s per (GPU|rank) first$", listed) and labels(page)[i - 1].startswith(listed.split(": 1 conf")[0]),
                   f"a click on {labels(page)[i - 1]!r} lists {listed!r}")
    check_nothing_injected(page, file)
    svg = (scratch / "hostile.svg").read_text("utf-8")
    expect("<script" not in svg and "<img" not in svg, "markup in the SVG")


def opened(page, box):
    page.evaluate(f"document.getElementById('{box}').open = true")
    page.settle()
    page.settle()


def table_cells(page, head):
    """The texts of the column whose head has this name."""
    at = page.attributes("#allRows th button", "name").index("sort~" + head)
    return page.texts(f"#allRows tbody td:nth-child({at + 1})")


def the_table_sorts_searches_and_saves(page, file, rows):
    page.open(file.as_uri())
    expect(page.texts("#allRows table") == [], "the table is made before it is opened")
    opened(page, "all")
    wanted = re.findall("^([0-9a-f]{16}),", rows.read_text("utf-8", "replace"), re.MULTILINE)
    expect(sorted(table_cells(page, "trial")) == sorted(wanted), f"the table has {len(table_cells(page, 'trial'))} of {len(wanted)} rows")
    page.click("#allRows [name='sort~peak_allocated_bytes']")
    expect(page.attributes("#allRows th[aria-sort='ascending'] button", "name") == ["sort~peak_allocated_bytes"], "lower peaks are better, and come first")
    up = [float(t) for t in table_cells(page, "peak_allocated_bytes") if t != "-"]
    page.click("#allRows [name='sort~peak_allocated_bytes']")
    down = table_cells(page, "peak_allocated_bytes")
    expect(up == sorted(up) and len(set(up)) > 2, f"sorted upwards: {up}")
    expect([float(t) for t in down if t != "-"] == up[::-1], f"sorted downwards: {down}")
    expect("-" not in down[:len(up)], "what was not measured does not stand last")
    page.evaluate("(() => { const i = document.getElementsByName('find')[0]; i.value = 'OOM'; i.dispatchEvent(new Event('input')); })()")
    expect(set(table_cells(page, "outcome")) == {"oom"}, f"a search for OOM finds {set(table_cells(page, 'outcome'))}")
    saved = page.evaluate("(async () => { let blob; const real = URL.createObjectURL; URL.createObjectURL = (b) => { blob = b; return real(b); };"
                          "Array.from(document.querySelectorAll('#all button')).find((b) => b.textContent === 'Save CSV').click();"
                          "URL.createObjectURL = real; return blob.text(); })()").splitlines()
    expect("outcome" in saved[0].split(",") and len(saved) == 1 + len(table_cells(page, "trial")), f"saved: {saved[:2]}")
    page.evaluate("(() => { const i = document.getElementsByName('find')[0]; i.value = ''; i.dispatchEvent(new Event('input')); })()")
    page.click("#filters > summary")
    page.click("[name='tp~2']", modifiers=8)
    expect(len(table_cells(page, "trial")) < len(wanted), "a filter does not reach the table")


def parallel_lines_follow_the_filters(page, file):
    page.open(file.as_uri())
    expect(page.texts("#lines svg") == [], "the lines are drawn before they are asked for")
    opened(page, "parallel")
    count = "document.querySelectorAll('#lines .paths path').length"
    before = page.evaluate(count)
    titles = page.texts("#lines .titles text")
    expect(before > 3 and "tensor parallel" in titles and titles[-1].startswith("tokens/s"), f"{before} lines across {titles}")
    expect(page.evaluate("Array.from(document.querySelectorAll('#lines .paths path'), (p) => p.getAttribute('stroke')).filter((c) => c === '#d1007f').length") == 1,
           "not one line is marked as the best")
    x, y = page.evaluate("(() => { const t = Array.from(document.querySelectorAll('#lines .values text')).find((t) => t.textContent === '8'); t.scrollIntoView({ block: 'center' });"
                         "const b = t.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()")
    for kind in ("mousePressed", "mouseReleased"):
        page.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
    page.settle()
    expect("= 8" in page.texts("#filters > summary")[0], f"a click on a value does not filter: {page.texts('#filters > summary')}")
    page.settle()
    expect(page.evaluate(count) < before, "the filter does not reach the lines")
    expect(page.problems == [], page.problems)


def stays_readable_on_a_phone_and_in_the_dark(page, program, scratch):
    rows = scratch / "wide.csv"
    rows.write_text("trial,model,nodes,tp,outcome,tokens_per_s_gpu\n" + "".join(f"{n}{t},m,{n},{t},ok,{n * 10 + t}\n" for n in range(1, 13) for t in (1, 2)))
    file = scratch / "wide.html"
    subprocess.run([program, rows, "tp", "nodes", "tokens_per_s_gpu", scratch / "wide"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([program, rows, "nodes", "tp", "tokens_per_s_gpu", scratch / "tall"], check=True, stdout=subprocess.DEVNULL)
    page.open((scratch / "tall.html").as_uri(), width=900)
    over = page.evaluate("document.getElementById('chart').scrollWidth - document.getElementById('chart').clientWidth")
    expect(over <= 0, f"cells have room to be narrower, and the picture scrolls by {over} pixels")
    page.open(file.as_uri(), width=420)
    left = "Array.from(document.querySelectorAll('#chart .role-axis')).find((a) => a.getAttribute('aria-label').startsWith('Y-axis')).getBoundingClientRect().left"
    before = page.evaluate(left)
    expect(page.evaluate("document.getElementById('chart').classList.contains('more')"), "nothing shows that the chart goes on")
    page.evaluate("document.getElementById('chart').scrollLeft = 200")
    page.settle()
    expect(abs(page.evaluate(left) - before) < 2, f"the labels of rows scroll away: {before} to {page.evaluate(left)}")
    page.evaluate("document.getElementById('chart').scrollLeft = 99999")
    page.settle()
    expect(not page.evaluate("document.getElementById('chart').classList.contains('more')"), "the end of the chart looks as if it went on")
    page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    ground, ink = page.evaluate("[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]")
    page.call("Emulation.setEmulatedMedia", features=[])
    light = [sum(map(int, re.findall(r"\d+", colour)[:3])) for colour in (ground, ink)]
    expect(light[0] < 150 < 500 < light[1], f"in the dark the page is {ink} on {ground}")


def nothing_at_all_is_a_clear_page(page, program, scratch):
    rows = scratch / "none.csv"
    rows.write_text("trial,model,nodes,outcome\n")
    page.open(draw(program, rows, "nodes", "mfu", scratch / "none", "").as_uri())
    expect("0 of 0 configurations: none" in page.texts("#summary")[0], page.texts("#summary")[0])
    rows.write_text("trial,model,nodes,outcome\n1,a,1,oom\n2,a,2,oom\n")
    page.open(draw(program, rows, "nodes", "mfu", scratch / "oom", "").as_uri())
    expect(all(": OOM; 1 OOM" in label for label in labels(page)) and len(labels(page)) == 2, f"{labels(page)}")
    expect(page.problems == [], f"the page complains: {page.problems}")


def main(program, rows, pictures=None):
    with tempfile.TemporaryDirectory() as scratch, browser.page() as page:
        scratch = pathlib.Path(scratch)
        file = draw(program, rows, "nodes", "tokens_per_s_gpu", scratch / "map", "Is <b>it</b> safe & sound?")
        cells = [line.split("\t") for line in (scratch / "map.cells.tsv").read_text("utf-8").splitlines()]
        looks_right(page, file, cells)
        states_look_different(page)
        grows_with_the_page_and_marks_the_best(page, file)
        one_model_at_a_time(page, program, scratch)
        ties_are_marked(page, program, scratch)
        prints_pictures_alone(page, file)
        page.open(file.as_uri())
        pointing_shows_the_best_and_the_runners_up(page)
        if pictures:
            page.picture(f"{pictures}/tip.png")
        clicking_lists_the_cell(page)
        a_filter_reaches_the_cells(page)
        pictures_can_be_saved(page)
        the_keyboard_reaches_every_cell(page)
        if pictures:
            page.picture(f"{pictures}/list.png")
        addresses_bring_back_a_view(page, file)
        the_table_sorts_searches_and_saves(page, file, pathlib.Path(rows))
        parallel_lines_follow_the_filters(page, file)
        stays_readable_on_a_phone_and_in_the_dark(page, program, scratch)
        nothing_at_all_is_a_clear_page(page, program, scratch)
        too_many_cells_are_refused_in_words(page, program, scratch)
        hostile_names_stay_text(page, program, scratch)
        if pictures:
            page.picture(f"{pictures}/hostile.png")
    print("heatmap page: cells as computed; filters, pointing, clicking, keyboard, addresses, table and lines work; nothing injected")


if __name__ == "__main__":
    main(*sys.argv[1:])
