"""`servers`: a coordinator that spoils reports in order to see one person's vector."""

from dataclasses import replace
from hashlib import sha256

import pytest

from faircount.protocol import SERVERS, Invitation
from faircount.protocol.roles import aggregator
from faircount.protocol.roles.coordinator import invitation_rows
from faircount.protocol.roles.rows import StoredRow
from faircount.protocol.survey.endings import EndCode
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers.messages import AcceptedReports, AggregateShare
from faircount.protocol.wire.codec import encode
from faircount.protocol.wire.messages import Acknowledgement, Published, Reason, Reservation

VICTIM = 4


def garble_all_but_one(play) -> None:
    """Replace all encrypted shares but the victim's, before the manifest names their hashes.

    Enrolment MACs are on people and their keys. They stay valid, so the manifest is admitted.
    """
    play.answer_all()
    victim = play.invitations[VICTIM].user
    reports = play.s1.rows.table("first_messages")
    for user in [user for user in reports if user != victim]:
        report = reports[user].value
        garbled = replace(report, encrypted_share=play.entropy.bytes(len(report.encrypted_share)))
        garbled_hash = sha256(encode(garbled)).digest()
        reports[user] = StoredRow(garbled, garbled_hash, garbled.device_key)


def send_garbled_shares(play):
    """Play until the aggregator has decrypted what it can; return what it signs then."""
    garble_all_but_one(play)
    (manifest,) = play.deadline()
    (reservation,) = play.send_to_s2(manifest)
    assert isinstance(play.read_from_s2(reservation), Reservation)
    (batch,) = play.send_to_s1(reservation)
    (answer,) = play.send_to_s2(batch)
    return answer


def test_the_only_report_that_can_be_decrypted_is_not_added_up(stage, proven) -> None:
    for play in (stage(SERVERS), proven()):
        ending = play.read_from_s2(send_garbled_shares(play))
        assert (ending.code, ending.spent) == (EndCode.TOO_FEW_READABLE, 1)
        assert play.s2.phase is Phase.ABORTED
        assert play.s2.partial_sum is None
        assert play.s2.last(AcceptedReports) is None


def test_without_that_check_the_result_is_one_persons_vector(
    stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the check is for: nothing else at the aggregator stands in the way."""
    monkeypatch.setattr(aggregator, "is_still_private", lambda s, included: True)
    play = stage(SERVERS)
    accepted = send_garbled_shares(play)
    victim = play.invitations[VICTIM].user
    share = play.s1.view.first_messages[victim].share
    accepted_hash = sha256(accepted.payload).digest()
    aggregate_share = AggregateShare(play.params.survey, accepted_hash, share)
    (answer,) = play.send_to_s2(play.by_s1(aggregate_share))
    result = play.read_from_s2(answer)
    assert isinstance(result, Published)
    assert list(result.counts) == [int(item == VICTIM) for item in range(play.params.N)]


def test_no_more_people_are_admitted_than_the_survey_was_made_for(stage) -> None:
    """The field and the noise are planned for so many: the sum of more may wrap around."""
    play = stage(SERVERS)
    play.answer_all()
    extra = Invitation.issue(play.params.digest, play.entropy)
    play.s1.rows.write(list(invitation_rows([extra.access])))
    device = replace(play.device(0), invitation=extra, state=None)
    begun = play.client.start(play.params, device, play.s2.crypto, play.entropy)
    (answer,) = play.send_to_s1(play.client.next_message(begun))
    assert answer.why is Reason.FULL
    # Somebody who has a place sends the same report again.
    (again,) = play.send_to_s1(play.people[0].report)
    assert isinstance(again, Acknowledgement)
    assert len(play.s1.view.first_messages) == play.params.n_max
