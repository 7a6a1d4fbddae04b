"""A Jupyter notebook as Markdown, for the documentation site."""


def as_markdown(notebook: dict) -> str:
    """The cells in their order: text as it is, code as a block, and below it what it printed or showed, where that is text."""
    language = notebook["metadata"].get("language_info", {}).get("name", "")
    out = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            out.append(source)
            continue
        out.append(block(language if cell["cell_type"] == "code" else "text", source))
        for result in cell.get("outputs", []):
            if shown := "".join(result.get("text") or result.get("data", {}).get("text/plain") or result.get("traceback") or []):
                out.append(block("text", shown))
    return "\n\n".join(out) + "\n"


def block(language: str, text: str) -> str:
    """A fenced block, with a fence that the text does not hold."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"
