"""Writes docs/reference/openapi-coordinator.json from the server's own calls. `--check` fails if it
is out of date.
"""

import json

from openapi_calls import descriptions
from page import write

write(
    "reference/openapi-coordinator.json", json.dumps(descriptions()["coordinator"], indent=1) + "\n"
)
