"""Import contracts hold, and each of them notices what it forbids.

Every contract in pyproject.toml is broken on purpose in a copy of the tree: a contract that nothing
can break protects nothing.
"""

from __future__ import annotations

import shutil
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from runner import shell

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS: list[dict[str, Any]] = SETTINGS["contracts"]
PLANTED = "planted_violation"


def lint(folder: Path) -> shell.Completed:
    """Check the contracts of the tree at `folder`."""
    program = Path(sys.executable).parent / "lint-imports"
    return shell.run(
        # A wide terminal keeps each contract's name on one line.
        ["env", "COLUMNS=400", str(program), "--no-cache", "--no-logo"],
        timeout_s=120,
        cwd=folder,
    )


def forbidden_imports(contract: dict[str, Any]) -> list[tuple[str, str]]:
    """Return (importer, imported) pairs that the contract has to refuse."""
    if contract["type"] == "forbidden":
        return [
            (source, module)
            for source in contract["source_modules"]
            for module in contract["forbidden_modules"]
        ]
    assert contract["type"] == "layers", f"teach this test to break {contract['type']!r}"
    layers = [[name.strip() for name in layer.split("|")] for layer in contract["layers"]]
    upward = [
        (lower, upper)
        for position, layer in enumerate(layers)
        for lower in layer
        for above in layers[:position]
        for upper in above
    ]
    sideways = [
        (one, other) for layer in layers for one in layer for other in layer if one != other
    ]
    return upward + sideways


def plant(folder: Path, importer: str, imported: str) -> None:
    """Make the module or package `importer` import `imported`."""
    place = folder / importer.replace(".", "/")
    file = place / f"{PLANTED}.py" if place.is_dir() else place.with_suffix(".py")
    with file.open("a") as text:
        text.write(f"\nimport {imported}\n")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for package in SETTINGS["root_packages"]:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    return tmp_path


def test_every_contract_is_kept() -> None:
    done = lint(ROOT)

    assert done.ok, done.stdout + done.stderr
    for contract in CONTRACTS:
        assert f"{contract['name']} KEPT" in done.stdout


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract["name"].split(":")[0])
def test_every_contract_can_fail(contract: dict[str, Any], copy: Path) -> None:
    pairs = forbidden_imports(contract)
    for importer, imported in pairs:
        plant(copy, importer, imported)

    done = lint(copy)

    assert not done.ok
    assert f"{contract['name']} BROKEN" in done.stdout
    unnoticed = [
        f"{importer} -> {imported}"
        for importer, imported in pairs
        if f"{importer} is not allowed to import {imported}" not in done.stdout
    ]
    assert not unnoticed, done.stdout


def test_every_package_is_under_the_contracts() -> None:
    wheel = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]

    assert sorted(SETTINGS["root_packages"]) == sorted(wheel["targets"]["wheel"]["packages"])
