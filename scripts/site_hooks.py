"""Hooks of mkdocs.yml: the documents of the root folder, the examples and the notebooks become pages, and links follow them.

A link to a file that is no page (source code, say) becomes plain text: the site holds documents alone.
"""
import json
import os
import pathlib
import re
import sys

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))
from notebook_page import as_markdown  # noqa: E402

ROOT_PAGES = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md",
              "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md", "examples/README.md": "examples/index.md",
              **{f"examples/{page.parent.name}/README.md": f"examples/{page.parent.name}.md"
                 for page in sorted(ROOT.glob("examples/*/README.md"))},
              **{str(book.relative_to(ROOT)): f"examples/{book.stem}.md" for book in sorted(ROOT.glob("examples/*/*.ipynb"))}}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*)\]\(([^\s)]+)\)")


def site_path(repository_path: str) -> str | None:
    """The place of a repository file on the site; None: the site has it not."""
    if repository_path in ROOT_PAGES:
        return ROOT_PAGES[repository_path]
    if repository_path.startswith("docs/") and (ROOT / repository_path).is_file():
        return repository_path.removeprefix("docs/")
    return None


def source_of(name: str) -> str:
    text = (ROOT / name).read_text(encoding="utf-8")
    if not name.endswith(".ipynb"):
        return text
    return f"{as_markdown(json.loads(text))}\nThis page was made from `{name}`.\n"


def repository_path(page: str) -> str:
    """The file of the repository that a page was made of."""
    return {site: source for source, site in ROOT_PAGES.items()}.get(page, f"docs/{page}")


def with_links_for(page: str, markdown: str) -> str:
    source = repository_path(page)

    def replaced(match: re.Match) -> str:
        image, text, target = match.groups()
        name, hash_sign, anchor = target.partition("#")
        if ":" in name or not name:
            return match[0]
        path = os.path.normpath(os.path.join(os.path.dirname(source), name))
        if not (ROOT / path).exists():
            return match[0]  # mkdocs reports it
        found, text = site_path(path), LINK.sub(replaced, text)
        if not found:
            return text
        return f"{image}[{text}]({os.path.relpath(found, os.path.dirname(page) or '.')}{hash_sign}{anchor})"

    blocks = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(block if block.startswith("```") else LINK.sub(replaced, block) for block in blocks)


def on_config(config):
    """Every page has a place in the order of pages; so has every example."""
    listed = set(re.findall(r"[\w./-]+\.md", str(config.nav)))
    pages = {*ROOT_PAGES.values(), *(page.name for page in (ROOT / "docs").glob("*.md"))}
    if missing := sorted(pages - listed):
        raise PluginError(f"mkdocs.yml: no place under nav for {', '.join(missing)}")
    return config


def on_files(files, config):
    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=source_of(name)))
    return files


def on_post_build(config):
    """The search index as a script too: a page that is opened as a file may not read another file."""
    folder = pathlib.Path(config.site_dir, "search")
    (folder / "search_index.js").write_text("var __index = " + (folder / "search_index.json").read_text(), encoding="utf-8")


def on_page_markdown(markdown, page, config, files):
    if page.file.src_uri.startswith(("changelog", "adr/", "measurements/")):
        page.meta["search"] = {"boost": 0.1}  # what is true now comes first
    return with_links_for(page.file.src_uri, markdown)
