"""The story of `docs/story.md`, told anew: `make story` writes the page.

Nothing comes in; the whole service runs between doubles for half a minute, and what people would
have read is written down. `--out` writes elsewhere, `--seed` draws other noise.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Final

from tests.fakes.story.scenes import SEED, tell
from tests.fakes.story.transcript import transcript

PAGE: Final = Path(__file__).parents[2] / "docs" / "story.md"


def main() -> None:
    """Write the page and say where."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.story", description=__doc__)
    parser.add_argument("--out", type=Path, default=PAGE, help="where to write the page")
    parser.add_argument("--seed", type=int, default=SEED, help="of all noise")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="forkwatch-") as folder:
        told = tell(Path(folder), seed=chosen.seed)
    chosen.out.write_text(transcript(told.scenes), encoding="utf-8")
    print(chosen.out)


if __name__ == "__main__":
    main()
