#!/usr/bin/env python3
"""serve_test.py BIN [PICTURES]: `sweep serve` in a headless browser: the page shows, a new result appears without reload, what was
chosen stays; the token is nowhere but in the address. What is refused is in tests/unit/serve."""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile

import bench
import browser
import schemas
from answers_test import row
from heatmap_dom_test import expect, labels
from processes import wait_for

FAILED = 4  # schema/outcome.h: crash
NAME = "live <b>&\"'</script><script>document.title='pwned'</script>"
LINES = [row(1, 100.0, nodes=1), row(2, 150.0, nodes=1), row(4, 0, "pending", nodes=1), row(1, 90.0, nodes=2),
         row(2, 0, "oom", nodes=2), row(4, 0, "pending", nodes=2, model=NAME)]


def answer_one(db, tokens, outcome=0):
    """Stores what a run stores when the next trial ends."""
    connection = sqlite3.connect(db)
    with connection:
        entry, = connection.execute("select key from plan_entry where state < 3 order by place limit 1").fetchone()
        allocation, = connection.execute("select id from allocation limit 1").fetchone()
        attempt = connection.execute("insert into attempt(entry, allocation, state, world, request, posted_unix_ns) values "
                                     "(?, ?, 3, 8, '{}', 1)", (entry, allocation)).lastrowid
        connection.execute("insert into result(attempt, outcome, finished_unix_ns, tokens_per_s_gpu, mfu) values (?, ?, 1, ?, ?)",
                           (attempt, outcome, tokens, 0.5 if tokens else None))
        connection.execute("update plan_entry set state = 3, outcome = ?, final_attempt = ?, attempts = 1 where key = ?",
                           (outcome, attempt, entry))
    connection.close()


@contextlib.contextmanager
def served(bin_dir, db, *options):
    process = subprocess.Popen([bin_dir / "sweep", "serve", "--db", db, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True)
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def fills_in(page, db, address, pictures):
    page.open(address)
    wait_for(lambda: page.texts("#live")[0].startswith("live: "), 120, "the first answer")
    expect(page.evaluate("document.querySelector('h1').textContent").startswith("live <b>"), "the name is text")
    expect("4 of 6 have an answer" in page.texts("#live")[0], page.texts("#live"))
    expect(page.evaluate("[document.getElementById('bar').value, document.getElementById('bar').max]") == [4, 6], "the bar of progress")
    expect(len(page.texts("#failed li")) == 1 and page.texts("#failed li")[0].startswith("oom: "), f"failures so far: {page.texts('#failed li')}")
    expect("no run is under way" in page.texts("#now")[0], page.texts("#now"))
    expect(not page.texts("#back"), "a way back to an index that is not there")
    expect(not any("400" in label for label in labels(page)), labels(page))
    page.evaluate("window.stays = 1; document.querySelector('#filters').open = true")
    page.click("button[name='nodes~1']")
    answer_one(db, 400.0)
    wait_for(lambda: "5 of 6" in page.texts("#live")[0], 120, "the new result")
    wait_for(lambda: any("400" in label for label in labels(page)), 120, "the new best, drawn after the text above it")
    expect(page.evaluate("window.stays === 1"), "the page was loaded anew")
    expect(page.attributes("button[name='nodes~1']", "aria-pressed") == ["false"], "a filter was lost")
    goes_on_after_a_choice(page, db)
    answer_one(db, None, outcome=FAILED)
    wait_for(lambda: "nothing is left to run" in page.texts("#live")[0], 120, "the last result")
    wait_for(lambda: len(page.texts("#failed li")) == 2, 120, "the failure as it comes")
    expect(page.texts("#failed li")[0].startswith("crash: "), f"the newest failure stands first: {page.texts('#failed li')}")
    expect(page.evaluate("document.getElementById('bar').value") == 6, "the bar is not full")
    expect(page.evaluate("document.title").startswith("live") and page.evaluate("document.scripts.length") == 3, "nothing is injected")
    expect(page.problems == [], page.problems)
    a_trial_has_a_page(page, address)
    origin = address.rsplit("/", 2)[0]
    expect(all(url.startswith((origin, "data:", "blob:", "about:")) for url in page.requests), f"the page asks {page.requests}")
    if pictures:
        page.picture(f"{pictures}/serve.png")


def better(db, tokens):
    """The best of the sweep is measured anew, and better."""
    connection = sqlite3.connect(db)
    with connection:
        connection.execute("update result set tokens_per_s_gpu = ? where tokens_per_s_gpu = (select max(tokens_per_s_gpu) from result)", (tokens,))
    connection.close()


def goes_on_after_a_choice(page, db):
    """A drop-down that was used keeps the focus, and the page stopped there; an open one is not drawn over."""
    def shows(tokens):
        return any(str(tokens) in label for label in labels(page))
    page.evaluate("(() => { const s = document.getElementsByName('colours')[0]; s.focus(); s.value = 'rank';"
                  "s.dispatchEvent(new Event('change', { bubbles: true })); })()")
    expect(page.evaluate("document.activeElement.name") == "colours", "the drop-down has lost the focus")
    better(db, 500.0)
    wait_for(lambda: shows(500), 60, "a new result after a drop-down was used")
    expect(page.evaluate("document.getElementsByName('colours')[0].value") == "rank", "the choice is lost")
    page.evaluate("(() => { window.open_list = document.activeElement; open_list.dispatchEvent(new Event('pointerdown', { bubbles: true }));"
                  "window.real_fetch = fetch; window.fetched = 0; fetch = async (name, ...more) => { const answer = await real_fetch(name, ...more);"
                  "fetched += name === 'data.json' && answer.status === 200; return answer; }; })()")
    better(db, 600.0)
    wait_for(lambda: page.evaluate("fetched") > 1, 60, "the page asks on while a list is open")
    expect(page.evaluate("open_list.isConnected"), "an open list was drawn over")
    page.evaluate("document.body.dispatchEvent(new Event('pointermove', { bubbles: true })); fetch = real_fetch; 1")
    wait_for(lambda: shows(600), 60, "the new result after the list was closed without a choice")


def a_trial_has_a_page(page, address):
    page.evaluate("document.querySelector('#all').open = true")
    page.settle()
    links = page.attributes("#allRows a", "href")
    expect(len(links) == 3 and all(link.startswith("trial/") for link in links), f"the table's links: {links}")
    expect(len(page.attributes("#failed a", "href")) == 2, "a failure has no link")
    page.open(address + links[0])
    expect(page.texts("h1")[0] == "Trial " + links[0].removeprefix("trial/"), page.texts("h1"))
    expect(page.evaluate("document.querySelector('header a').href") == address, "no way back")
    expect(page.problems == [], page.problems)
    page.click("header a")
    wait_for(lambda: page.texts("#live") and page.texts("#live")[0].startswith("live: "), 120, "the sweep's page after the link back")


def has_an_index(page, bin_dir, db, pictures):
    """Of a file with several sweeps, and none named."""
    bench.store(bin_dir, db, "other", LINES, "Why?")
    with served(bin_dir, db) as (_, address):
        page.open(address, width=420)
        page.problems.clear()  # of the page whose server was ended
        expect(page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "the index is wider than its window")
        links = page.attributes("#sweeps a", "href")
        expect(page.texts("#sweeps a") == [NAME, "other"] and len(set(links)) == 2, f"sweeps: {page.texts('#sweeps a')}")
        if pictures:
            page.picture(f"{pictures}/index.png")
        page.open(address + links[1])
        wait_for(lambda: page.texts("#live")[0].startswith("live: 4 of 6"), 120, "the page of the other sweep")
        expect(page.evaluate("document.querySelector('#back').href") == address, "no way back to the index")
        page.evaluate("document.querySelector('#all').open = true")
        page.settle()
        page.open(address + links[1] + page.attributes("#allRows a", "href")[0])
        expect(page.texts("header .question")[0] == "other", "a trial of the other sweep")
        expect(page.problems == [], f"the page complains: {page.problems}")
        expect([status(address, name) for name in ("sweep/99/", "sweep/", "nonsense", links[0] + "trial/zz", links[0] + "nonsense")] == [404] * 5, "what is not there")
        another_sweep_has_another_address(bin_dir, db, address)
    with served(bin_dir, db, "third") as (_, address):
        page.open(address)
        wait_for(lambda: page.texts("#live")[0].startswith("live: "), 120, "a sweep that is named has no index before it")


def another_sweep_has_another_address(bin_dir, db, address):
    """SQLite gives the number of a deleted sweep to the next one."""
    before = re.findall(r'href="(sweep/[^"]+)"', text(address, ""))
    subprocess.run([bin_dir / "sweep", "delete", "other", "--yes", "--db", db], check=True, capture_output=True, timeout=60)
    expect(status(address, before[1]) == 404, "a deleted sweep has a page")
    bench.store(bin_dir, db, "third", LINES, "What else?")
    after = re.findall(r'href="(sweep/[^"]+)"', text(address, ""))
    expect(after[0] == before[0] and after[1] != before[1], f"addresses {before}, then {after}")
    expect([status(address, before[1] + name) for name in ("", "data.json", "progress.json")] == [404] * 3, "the new sweep at the old one's address")
    expect("What else?" in text(address, after[1]), "the new sweep's page")


def ends_with_its_sweep(bin_dir, db):
    """The page of one sweep that was named."""
    with served(bin_dir, db, "third") as (_, address):
        subprocess.run([bin_dir / "sweep", "delete", "third", "--yes", "--db", db], check=True, capture_output=True, timeout=60)
        bench.store(bin_dir, db, "fourth", LINES, "And now?")
        expect([status(address, name) for name in ("", "data.json", "progress.json")] == [404] * 3, "another sweep under the name of the deleted one")


def says_that_the_database_is_gone(bin_dir, db):
    with served(bin_dir, db, "fourth") as (_, address):
        elsewhere = db.rename(db.with_name("elsewhere.db"))
        expect([status(address, name) for name in ("", "progress.json")] == [500] * 2, "a database that was removed is shown")
        elsewhere.rename(db)
        expect(status(address, "") == 200, "it is there again")


def answer_of(address, name):
    host, _, path = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", f"/{path}{name}")
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def text(address, name):
    return answer_of(address, name)[1]


def status(address, name):
    return answer_of(address, name)[0]


def main(bin_dir, pictures=None):
    bin_dir = pathlib.Path(bin_dir).resolve()
    with tempfile.TemporaryDirectory() as scratch, browser.page() as page:
        db = pathlib.Path(scratch) / "r.db"
        bench.store(bin_dir, db, NAME, LINES, "How fast?")
        with served(bin_dir, db, "--rows", "model", "--cols", "nodes") as (process, address):
            expect(address.startswith("http://127.0.0.1:") and len(address.rstrip("/").rpartition("/")[2]) == 32, address)
            fills_in(page, db, address, pictures)
            if schemas.can_be_checked():
                schemas.check("status", json.loads(text(address, "progress.json")))
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
            expect(process.returncode == 0, f"exit {process.returncode}: {said}")
            expect(address.rstrip("/").rpartition("/")[2] not in said, "the token is in the log")
        wait_for(lambda: "does not answer" in page.texts("#live")[0], 120, "the page says that the server is gone")
        has_an_index(page, bin_dir, db, pictures)
        ends_with_its_sweep(bin_dir, db)
        says_that_the_database_is_gone(bin_dir, db)
        wrong = subprocess.run([bin_dir / "sweep", "serve", "--db", db, "--rows", "nonsense"], capture_output=True, text=True, timeout=60)
        expect(wrong.returncode == 2 and "nonsense" in wrong.stderr, wrong.stderr)
    print("serve: the page fills in by itself, and a file of several sweeps has an index")


if __name__ == "__main__":
    main(*sys.argv[1:])
