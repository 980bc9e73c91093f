from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from service.core.errors import SettingsError
from service.core.weeks import Week, parse_week, week_of, zone_of

HELSINKI = zone_of("Europe/Helsinki")


def test_a_week_has_a_name_and_days() -> None:
    week = parse_week("2026-W47")

    assert week == Week(year=2026, number=47)
    assert week.name == "2026-W47"
    assert (week.first_day, week.last_day) == (date(2026, 11, 16), date(2026, 11, 22))


def test_weeks_follow_each_other_over_the_year() -> None:
    last = parse_week("2026-W53")

    assert last.after(1).name == "2027-W01"
    assert last.after(1).after(-1) == last
    assert last < last.after(1)


def test_a_week_begins_at_midnight_where_its_people_are() -> None:
    week = parse_week("2026-W44")

    # Clocks go back on the 25th of October: Helsinki is two hours ahead after it, three before.
    assert week.begins(HELSINKI) == datetime(2026, 10, 25, 22, tzinfo=UTC)
    assert week.after(-1).begins(HELSINKI) == datetime(2026, 10, 18, 21, tzinfo=UTC)
    assert week.after(-1).ends(HELSINKI) == week.begins(HELSINKI)


@pytest.mark.parametrize(
    ("hour", "utc", "helsinki"), [(21, "2026-W47", "2026-W47"), (23, "2026-W47", "2026-W48")]
)
def test_a_moment_lies_in_another_week_elsewhere(hour: int, utc: str, helsinki: str) -> None:
    moment = datetime(2026, 11, 22, hour, tzinfo=UTC)

    assert week_of(moment, zone_of("UTC")).name == utc
    assert week_of(moment, HELSINKI).name == helsinki


@pytest.mark.parametrize(
    "name",
    ["", "2026", "2026-47", "2026-W00", "2026-W54", "2025-W53", "2026-W7", "1999-W01", "../x"],
)
def test_what_is_no_week_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="week"):
        parse_week(name)


@pytest.mark.parametrize("name", ["", "Nowhere", "Europe", "../../etc/passwd", "/etc/passwd"])
def test_what_is_no_zone_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="no time zone"):
        zone_of(name)
