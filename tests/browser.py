"""A page in a real browser, where there is one."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")

PROBE = """<script>addEventListener("load", () => {
  const panels = [...document.querySelectorAll(".panels svg")].map(s => s.getBoundingClientRect());
  const luminance = c => { const [r, g, b] = c.match(/\\d+/g).map(Number); return 0.3 * r + 0.6 * g + 0.1 * b; };
  const style = getComputedStyle(document.body);
  const cells = [...document.querySelectorAll("td")].map(c => c.getBoundingClientRect().right);
  const shaded = [...document.querySelectorAll("td.near, td.off, td.far, td.wrong")].map(c => {
    const s = getComputedStyle(c); return Math.abs(luminance(s.color) - luminance(s.backgroundColor)); });
  parent.postMessage(JSON.stringify({
    inner: innerWidth, overflow: document.documentElement.scrollWidth - innerWidth,
    drawn: panels.filter(p => p.width > 100 && p.height > 50).length, shaded: Math.min(...shaded, 255),
    images: [...document.images].filter(i => i.complete && i.naturalWidth && i.getBoundingClientRect().width > 20).length,
    ink: luminance(style.color), paper: luminance(style.backgroundColor), cells: Math.max(...cells)}), "*")});</script>"""


def look_at(page: Path, width: int, dark: bool, tmp_path: Path) -> dict[str, Any]:
    """How a page is laid out at a width, in light or dark."""
    (tmp_path / "probe.html").write_text(page.read_text().replace("</body>", PROBE + "</body>"))
    frame = tmp_path / "frame.html"  # a window is never as narrow as a phone, a frame may be
    frame.write_text(
        '<meta name="color-scheme" content="light dark"><script>onmessage = e => { document.title = e.data; }</script>'
        f'<iframe src="probe.html" width="{width}" height="800" style="border:0"></iframe>'
    )
    options = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"),
        *("--disable-component-update", "--disable-sync", "--disable-quic", "--hide-scrollbars"),
        f"--user-data-dir={tmp_path / 'profile'}",
        "--window-size=1400,900",
        "--virtual-time-budget=5000",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
    ]
    dom = subprocess.run(
        [str(CHROMIUM), *options, "--dump-dom", frame.as_uri()], capture_output=True, text=True, timeout=600, check=True
    ).stdout
    found = re.search(r"<title>(.*?)</title>", dom)
    assert found is not None
    return json.loads(found.group(1))
