"""Every link within the built site leads to a page, a file and a place on the page that exist: `make docs` runs this."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the places on it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("id", "name"):
                self.places.add(value)
            elif value and name in ("href", "src"):
                self.links.append(value)


def broken(site: Path) -> tuple[int, list[str]]:
    """The number of links within the site, and those that lead nowhere or load something from elsewhere."""
    found = (path for path in site.rglob("*.html") if "_downloads" not in path.parts)  # files to take away are no pages
    pages = {path.resolve(): Page(path) for path in found}
    count, wrong = 0, []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = pages[target].places if target in pages else None
            if not target.exists() or (known is not None and unquote(parts.fragment) not in known):
                wrong.append(f"{path.relative_to(site.resolve())}: {link}")
    return count, wrong


if __name__ == "__main__":
    links, nowhere = broken(Path(sys.argv[1]))
    print(*nowhere, sep="\n", end="\n" if nowhere else "")
    print(f"{links} links within the site, {len(nowhere)} broken")
    sys.exit(1 if nowhere or not links else 0)
