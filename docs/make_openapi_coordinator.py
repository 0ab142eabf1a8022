"""Writes docs/openapi-coordinator.json from the server's own calls. `--check` fails if it is out of date."""

import json

from page import write

from faircount.service.descriptions import descriptions

write("openapi-coordinator.json", json.dumps(descriptions()["coordinator"], indent=1) + "\n")
