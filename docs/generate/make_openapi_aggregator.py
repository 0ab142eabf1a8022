"""Writes docs/reference/openapi-aggregator.json from the server's own calls. `--check` fails if it
is out of date.
"""

import json

from openapi_calls import descriptions
from page import write

write(
    "reference/openapi-aggregator.json", json.dumps(descriptions()["aggregator"], indent=1) + "\n"
)
