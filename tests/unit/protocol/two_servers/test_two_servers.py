"""`servers`: one visit, manifest before encrypted shares, one accepted set, one sum."""

from dataclasses import replace
from hashlib import sha256
from itertools import product

import numpy as np
import pytest

from faircount.core.entropy import SeededStream
from faircount.core.errors import ProtocolError
from faircount.mechanisms.decoys import Decoys
from faircount.mechanisms.laplace import Laplace
from faircount.protocol import SERVERS, resume
from faircount.protocol.peers.messages import Enrolment
from faircount.protocol.simulator import play as play_survey
from faircount.protocol.simulator import set_up
from faircount.protocol.survey.inclusion import verify_inclusion
from faircount.protocol.survey.phases import Phase
from faircount.protocol.topologies.two_servers import user as servers_user
from faircount.protocol.topologies.two_servers.messages import BatchManifest
from faircount.protocol.topologies.two_servers.user import expansion_info, seed_info
from faircount.protocol.wire.codec import Party, encode
from faircount.protocol.wire.crypto import ENCRYPTED_SEED_BYTES, IdealCrypto, StandardCrypto
from faircount.protocol.wire.messages import (
    Acknowledgement,
    FinalStatement,
    InclusionProof,
    NotReady,
    OutcomeRequest,
    Reason,
    Rejection,
    Reservation,
    SyncRequest,
)
from faircount.protocol.wire.signing import sign
from faircount.sharing.keys import SEED_BYTES

S = SERVERS


def test_everybody_is_counted_once(stage) -> None:
    play = stage(S)
    play.answer_all()
    play.settle(play.deadline())
    assert play.counts() == [1] * 6
    assert play.s1.phase is play.s2.phase is Phase.PUBLISHED


def test_a_user_who_does_not_come_is_not_counted(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(2, 4))
    play.settle(play.deadline())
    assert play.counts() == [1, 1, 0, 1, 0, 1]


def test_too_few_answers_abort_and_reveal_nothing(stage) -> None:
    play = stage(S, minimum=5)
    play.answer_all(skip=(0, 1))
    play.settle(play.deadline())
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
    assert play.s2.manifest is None
    assert play.s2.ledger.find(play.setup.params.survey) is None


def test_a_retry_is_the_same_bytes_and_is_accepted_even_late(stage) -> None:
    play = stage(S)
    play.answer_all()
    first = play.people[0]
    assert isinstance(play.send_to_s1(first.report)[0], Acknowledgement)
    play.settle(play.deadline())
    assert isinstance(play.send_to_s1(first.report)[0], Acknowledgement)
    assert play.counts() == [1] * 6


def test_a_second_draw_of_the_same_person_is_a_conflict(stage) -> None:
    play = stage(S)
    play.answer_all()
    again = servers_user.respond(play.setup.params, play.invitations[0], (3,), play.entropy)
    (answer,) = play.send_to_s1(again.report)
    assert answer.why is Reason.INVITATION_USED
    same_device = replace(again.report, device_key=play.people[0].report.device_key)
    assert play.send_to_s1(same_device)[0].why is Reason.CONFLICT
    play.settle(play.deadline())
    assert play.counts() == [1] * 6


def test_a_late_answer_is_never_forwarded(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(5,))
    out = play.deadline()
    (answer,) = play.send_to_s1(play.people[5].report)
    assert answer.why is Reason.LATE
    play.settle(out)
    assert play.counts() == [1, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"access": bytes(32)}, Reason.UNKNOWN),
        ({"share": b""}, Reason.MALFORMED),
        ({"share": b"\xff" * 3}, Reason.MALFORMED),
        ({"encrypted_share": bytes(ENCRYPTED_SEED_BYTES - 1)}, Reason.MALFORMED),
        ({"encrypted_share": bytes(ENCRYPTED_SEED_BYTES + 16)}, Reason.MALFORMED),
        ({"public_key": b"\xff" * 32}, Reason.MALFORMED),
        ({"survey": bytes(16)}, Reason.MALFORMED),
    ],
)
def test_malformed_reports_are_rejected(stage, change, reason) -> None:
    play = stage(S)
    play.answer_all(skip=(0,))
    (answer,) = play.send_to_s1(replace(play.people[0].report, **change))
    assert isinstance(answer, Rejection)
    assert answer.why is reason


@pytest.mark.parametrize("crypto", [None, StandardCrypto()], ids=["ideal", "standard"])
def test_a_copy_of_a_report_counts_for_nobody_else(stage, crypto) -> None:
    """A participant who was given the report of another one cannot have it counted a second time."""
    play = stage(S, crypto=crypto)
    play.answer_all(skip=(0,))
    own, copied = play.people[0].report, play.people[1].report
    key = copied.public_key
    copy = replace(copied, access=own.access, mac=play.invitations[0].authenticate_key(key))
    assert isinstance(play.send_to_s1(copy)[0], Acknowledgement)
    play.settle(play.deadline())
    # The MAC is valid, but the encrypted share was made for another user id.
    assert play.counts() == [0, 1, 1, 1, 1, 1]


def _answer_with_one_key(play) -> None:
    """Everybody has answered; the reports have one public key, and each person a device."""
    params, entropy = play.setup.params, play.entropy
    keys = play.s2.crypto.keypair(entropy)
    play.people = [
        servers_user.make_report(
            params,
            play.invitations[place],
            params.mechanism.respond_as(0, (place,), entropy),
            entropy.bytes(SEED_BYTES),
            keys,
            entropy,
            play.s2.crypto,
        )
        for place in play.places
    ]
    for person in play.people:
        assert isinstance(play.send_to_s1(person.report)[0], Acknowledgement)


def test_one_key_with_two_invitations_counts_once_for_each(stage) -> None:
    play = stage(S)
    _answer_with_one_key(play)
    play.settle(play.deadline())
    assert play.counts() == [1] * 6


def test_whoever_shares_a_key_speaks_for_nobody_else(stage) -> None:
    play = stage(S)
    _answer_with_one_key(play)
    withdrawal = play.withdrawal(0)
    other = play.invitations[1].access
    assert play.send_to_s1(replace(withdrawal, access=other))[0].why is Reason.INVITATION_USED
    moved = replace(play.withdrawal(1), signature=withdrawal.signature)
    assert play.send_to_s1(moved)[0].why is Reason.UNSIGNED
    assert isinstance(play.send_to_s1(withdrawal)[0], Acknowledgement)

    play.settle(play.deadline())
    assert play.counts() == [0, 1, 1, 1, 1, 1]
    # The result, for somebody whom it does not count.
    assert isinstance(play.send_to_s1(play.inquiry(0))[0], FinalStatement)
    for place in play.places[1:]:
        (proof,) = play.send_to_s1(play.inquiry(place))
        holders = [
            verify_inclusion(play.params, proof, person.user, person.public_key)
            for person in play.people
        ]
        assert holders == [number == place for number in play.places]


def test_encrypted_shares_leave_only_after_the_reservation(stage) -> None:
    play = stage(S)
    play.answer_all()
    (manifest,) = play.deadline()
    # The coordinator signed it, not the aggregator.
    assert play.read_from_s2(manifest) is None
    assert resume(play.s1.state, play.s1.rows) == (manifest,)
    (reservation,) = play.send_to_s2(manifest)
    assert isinstance(play.read_from_s2(reservation), Reservation)
    (batch,) = play.send_to_s1(reservation)
    assert resume(play.s1.state, play.s1.rows) == (batch,)


def test_the_manifest_reveals_nothing_about_the_shares(stage) -> None:
    """The aggregator knows the seed: a plain hash of share1 would let it try every response."""
    play = stage(S)
    play.answer_all()
    play.settle(play.deadline())
    manifest = play.s2.manifest
    assert isinstance(manifest, BatchManifest)
    for person in play.people:
        assert sha256(person.report.share).digest() not in encode(manifest)
        assert person.report.salt not in encode(manifest)


def test_a_user_can_check_that_it_was_counted(stage) -> None:
    play = stage(S)
    play.answer_all(skip=(3,))
    assert isinstance(play.send_to_s1(play.inquiry(0))[0], NotReady)
    play.settle(play.deadline())
    (proof,) = play.send_to_s1(play.inquiry(0))
    assert isinstance(proof, InclusionProof)
    first, second = play.people[:2]
    assert verify_inclusion(play.params, proof, first.user, first.public_key)
    assert not verify_inclusion(play.params, proof, second.user, second.public_key)
    # Another size with the same path is another result.
    for size in (proof.size - 1, proof.size + 1):
        assert not verify_inclusion(
            play.params, replace(proof, size=size), first.user, first.public_key
        )
    (answer,) = play.send_to_s1(play.inquiry(3))
    # The result, for somebody whom it does not count.
    assert isinstance(answer, FinalStatement)
    stranger = play.signed_with(OutcomeRequest, bytes(32))
    assert play.send_to_s1(stranger)[0].why is Reason.UNKNOWN


def test_an_invitation_to_other_parameters_is_not_answered(stage) -> None:
    play = stage(S)
    other = stage(S, seed=2)
    with pytest.raises(ProtocolError, match="other parameters"):
        servers_user.respond(play.setup.params, other.invitations[0], (0,), play.entropy)


def test_it_runs_on_ideal_cryptography_too(stage) -> None:
    play = stage(S, crypto=IdealCrypto())
    play.answer_all(skip=(1,))
    play.settle(play.deadline())
    assert play.counts() == [1, 0, 1, 1, 1, 1]


def test_a_guessed_seed_fits_one_user_of_one_survey(stage) -> None:
    """If expansions were the same for everybody, a guessed seed could be tried on all at once."""
    params = stage(S).params
    other = stage(S, seed=2).params
    users = (bytes(16), b"u" * 16)
    keys = (bytes(32), b"k" * 32)
    seed = bytes(SEED_BYTES)
    uses = list(product((params, other), users, keys))
    long = [
        StandardCrypto().expand(seed, survey.digest, expansion_info(survey, *whose), 1009, 50)
        for survey, *whose in uses
    ]
    assert len({tuple(row.tolist()) for row in long}) == len(uses)


def test_an_encrypted_seed_is_bound_to_its_survey_user_key_and_share(stage) -> None:
    surveys = stage(S).params, stage(S, seed=2).params
    both = bytes(32), b"x" * 32
    uses = list(product(surveys, (bytes(16), b"u" * 16), both, both))
    assert len({seed_info(*whose) for whose in uses}) == len(uses)


def test_under_300_bytes_for_30_items_and_1000_users() -> None:
    sizes = {}
    for mechanism in (
        Laplace(items=30, users=1000, epsilon=1.0, dropouts=200),
        Decoys(items=30, users=1000, epsilon=1.0, delta=1e-6, dropouts=200),
    ):
        entropy = SeededStream(3)
        cast = set_up(mechanism, S, entropy)
        person = servers_user.respond(cast.params, cast.invitations[0], (7,), entropy)
        sizes[mechanism.name] = len(encode(person.report))
    assert all(size < 300 for size in sizes.values()), sizes
    assert sizes == {"laplace": 261, "decoys": 264}


def test_a_played_survey_carries_its_guarantee() -> None:
    answers = np.arange(200) % 5
    result = play_survey(answers, Laplace(items=5, epsilon=1.0), SERVERS, entropy=SeededStream(5))
    published = result.facts["published"]
    assert result.included == published.included == 200
    assert abs(result.count_votes().estimates - 0.2).max() < 0.1
    assert published.realized_epsilon == published.epsilon


def test_secrets_do_not_print(stage) -> None:
    play = stage(S)
    play.answer_all()
    shown = repr(play.people[0]) + repr(play.s1) + repr(play.s2) + repr(play.setup)
    for secret in (
        play.s2.encryption_keys.secret,
        play.s2.key.secret,
        play.invitations[0].token,
        play.s1.key.secret,
    ):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown


def synchronize(play) -> None:
    play.settle((sign(play.s1.key, Party.COORDINATOR, SyncRequest(play.s1.params.survey)),))


def test_servers_know_no_enrolment(stage) -> None:
    """A message of another topology must not stop a server."""
    play = stage(SERVERS)
    guest = play.invitations[0]
    enrolment = Enrolment(
        play.setup.params.survey, guest.access, bytes(31) + b"\1", bytes(32), bytes(32), bytes(32)
    )
    assert play.send_to_s1(enrolment)[0].why is Reason.MALFORMED
    assert resume(play.s1.state, play.s1.rows) == ()
    unopened = play.s1.copy()
    play.answer_all()
    (reservation,) = play.send_to_s2(play.deadline()[0])
    assert reservation is not None
    play.s1 = unopened
    # The reports were lost with the restore.
    synchronize(play)
    assert play.s1.phase is play.s2.phase is Phase.ABORTED
