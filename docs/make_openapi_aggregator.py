"""Writes docs/openapi-aggregator.json from the server's own calls. `--check` fails if it is out of date."""

import json

from page import write

from faircount.service.descriptions import descriptions

write("openapi-aggregator.json", json.dumps(descriptions()["aggregator"], indent=1) + "\n")
