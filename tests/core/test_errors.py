from __future__ import annotations

from skillhorizon.core.errors import COMMON_CODES, InputError, Rejected


def test_a_refusal_carries_code_message_and_details():
    refusal = Rejected("unknown_id", "no parcel 'x'", id="x", limit=3)
    assert (refusal.code, str(refusal), refusal.message) == ("unknown_id", "no parcel 'x'", "no parcel 'x'")
    assert refusal.details == {"id": "x", "limit": 3}
    assert not isinstance(refusal, InputError)


def test_the_common_codes_are_a_closed_list():
    codes = "bad_argument unknown_id stale_input wrong_state script_failed budget_exhausted unknown_tool not_permitted"
    assert sorted(COMMON_CODES) == sorted(codes.split())
