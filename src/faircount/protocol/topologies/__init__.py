"""The ways in which shares travel, one package each. A new one is a package with a `Topology`, and a name here."""

from faircount.protocol.survey.topology import register
from faircount.protocol.topologies.explicit import EXPLICIT
from faircount.protocol.topologies.masked import MASKED
from faircount.protocol.topologies.two_servers import SERVERS
from faircount.protocol.topologies.two_stage import TWO_STAGE

__all__ = ["EXPLICIT", "MASKED", "SERVERS", "TWO_STAGE"]

for _topology in (SERVERS, MASKED, EXPLICIT, TWO_STAGE):  # in the order in which people are shown them
    register(_topology)
