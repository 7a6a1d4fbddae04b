"""Hooks of mkdocs.yml: the documents of the root folder and the examples become pages, and links follow them.

A link to a file that is no page (source code, say) becomes plain text: the site holds documents alone.
"""
import os
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOT_PAGES = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md",
              "CHANGELOG.md": "changelog.md", "SECURITY.md": "security.md", "examples/README.md": "examples/index.md", "examples/zero/README.md": "examples/zero.md",
              "examples/recompute/README.md": "examples/recompute.md", "examples/scaling/README.md": "examples/scaling.md"}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\](?:\([^)]*\))?)*)\]\(([^\s)]+)\)")


def site_path(repository_path: str) -> str | None:
    """The place of a repository file on the site; None: the site has it not."""
    if repository_path in ROOT_PAGES:
        return ROOT_PAGES[repository_path]
    if repository_path.startswith("docs/") and (ROOT / repository_path).is_file():
        return repository_path.removeprefix("docs/")
    return None


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


def on_files(files, config):
    for name, page in ROOT_PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown, page, config, files):
    return with_links_for(page.file.src_uri, markdown)
