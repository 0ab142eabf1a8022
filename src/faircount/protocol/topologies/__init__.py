"""The topologies: how the shares of a response travel, one package each.

To add one, write a package with a subclass of `Topology` and register its instance here.
"""

from faircount.protocol.survey.topology import register
from faircount.protocol.topologies.explicit import EXPLICIT
from faircount.protocol.topologies.masked import MASKED
from faircount.protocol.topologies.two_servers import SERVERS
from faircount.protocol.topologies.two_stage import TWO_STAGE

__all__ = ["EXPLICIT", "MASKED", "SERVERS", "TWO_STAGE"]

# Plans and help texts list the topologies in this order.
for _topology in (SERVERS, MASKED, EXPLICIT, TWO_STAGE):
    register(_topology)
