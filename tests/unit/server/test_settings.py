"""Settings from a file, the environment and the command line; error messages name the setting."""

from pathlib import Path

import pytest
from make_settings import settings_table

from faircount.core.errors import ParameterError
from faircount.server.common.settings import (
    AggregatorSettings,
    CoordinatorSettings,
    ServerSettings,
    read_settings,
)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "s1.toml"
    file.write_text('host = "10.0.0.1"\nport = 1000\noperator = "from the file"\n')
    environment = {
        "FAIRCOUNT_COORDINATOR_PORT": "2000",
        "FAIRCOUNT_COORDINATOR_HOST": "10.0.0.2",
        "PATH": "/",
    }
    found = read_settings(CoordinatorSettings, file, {"port": 3000, "host": None}, environment)
    assert (found.port, found.host, found.operator) == (3000, "10.0.0.2", "from the file")


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("prot = 1", "prot"),
        ('port = "many"', "port"),
        ("port = 70000", "65535"),
        ('tls_key = "key.pem"', "tls_certificate"),
        ("burst = 0", "burst"),
        ('log_level = "loud"', "log_level"),
        ("= 1", "TOML"),
    ],
)
def test_an_error_names_the_setting(tmp_path: Path, text: str, named: str) -> None:
    file = tmp_path / "s2.toml"
    file.write_text(text)
    with pytest.raises(ParameterError, match=named):
        read_settings(AggregatorSettings, file, {}, {})


@pytest.mark.parametrize(
    ("aggregator", "is_authentic"),
    [
        ("http://127.0.0.1:8462", True),
        ("http://localhost:8462", True),
        ("http://[::1]:8462", True),
        ("https://s2.example", True),
        ("http://s2.example", False),
        ("http://10.0.0.2:8462", False),
        ("http://localhost.example", False),
        ("http://127.0.0.1@s2.example", False),
        ("http://[", False),
        ("s2.example", False),
    ],
)
def test_an_aggregator_on_another_machine_is_called_with_tls(
    aggregator: str, is_authentic: bool
) -> None:
    asked = CoordinatorSettings(aggregator=aggregator, plain_http=True)
    assert asked.is_aggregator_authentic is is_authentic
    if is_authentic:
        assert CoordinatorSettings(aggregator=aggregator).is_aggregator_authentic
    else:
        with pytest.raises(ParameterError, match="plain_http"):
            CoordinatorSettings(aggregator=aggregator)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="there is no"):
        read_settings(AggregatorSettings, tmp_path / "none.toml", {}, {})


def test_a_server_stores_everything_in_its_folder_unless_set_otherwise(tmp_path: Path) -> None:
    found = read_settings(
        AggregatorSettings, None, {"data": str(tmp_path), "anchor": "/elsewhere"}, {}
    )
    assert found.database_url == f"sqlite:///{tmp_path}/database.sqlite"
    assert (found.key_folder, found.anchor_folder) == (tmp_path / "keys", Path("/elsewhere"))
    assert (found.public_port, found.metrics_port) == (8462, 9462)


@pytest.mark.parametrize("kind", [CoordinatorSettings, AggregatorSettings])
def test_every_setting_has_a_description_and_a_name_in_the_environment(
    kind: type[ServerSettings],
) -> None:
    table = settings_table(kind)
    assert [name for name, *_ in table] == list(kind.__struct_fields__)
    for name, environment, default, description in table:
        assert environment == f"FAIRCOUNT_{kind.role.upper()}_{name.upper()}"
        assert description.endswith(".")
        assert isinstance(default, str)
