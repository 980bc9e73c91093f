"""Source files outside the servers of a pair, as a run document has them."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from results.document import RunDocument
from results.sources import NAMES_MAX, PATH_MAX, OutsideSources, told
from tests.fakes.run_documents import a_run


def test_names_are_told_in_their_order_with_a_digest_of_all() -> None:
    found = told({"client/b.c", "client/a.c"})

    assert found is not None
    assert found.names == ("client/a.c", "client/b.c")
    assert found.count == 2
    # printf 'client/a.c\nclient/b.c\n' | sha256sum
    assert found.digest == "cb082b0e397faf81065d6ff61002798c5c2dada430a3d591bd1375ef5e8106d7"
    assert told(["client/b.c", "client/a.c"]) == found
    assert told(()) is None


def test_of_too_many_some_are_named_from_everywhere_and_all_are_counted() -> None:
    names = [f"storage/{number:06}.cc" for number in range(NAMES_MAX + 2)]
    found = told(names)

    assert found is not None
    assert found.count == NAMES_MAX + 2
    assert found.names == tuple(names[::2])


def test_a_path_that_is_too_long_is_left_out_and_counted() -> None:
    found = told({"a.c", "b" * PATH_MAX + ".c"})

    assert found is not None
    assert (found.count, found.names) == (2, ("a.c",))


def test_a_document_holds_no_more_than_may_be_named() -> None:
    facts = {"digest": "0" * 64, "count": 1}

    for names in (["a.c"] * (NAMES_MAX + 1), ["a" * (PATH_MAX + 1)], [""]):
        with pytest.raises(ValidationError):
            OutsideSources.model_validate(facts | {"names": names})


def test_a_document_without_it_is_still_a_document() -> None:
    document = a_run().with_samples("scan", [[2.0]]).build()
    before = document.model_dump(mode="json")
    del before["outside"]

    assert document.outside is None
    assert RunDocument.model_validate(before) == document
