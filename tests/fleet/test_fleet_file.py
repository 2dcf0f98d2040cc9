"""The file of a fleet: what it says of each target, and one line for what is wrong with it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformance.fleet import fleet_file, units
from conformance.fleet.fleet_file import Fleet, FleetError, FleetTarget, Limits
from conformance.fleet.units import Unit
from conformance.judging import packs
from conformance.roles import roles
from conformance.spec import files
from tests.support.installed_packs import write_pack
from tests.support.small_fleets import write_fleet


def fleet(folder: Path, text: str) -> Fleet:
    return fleet_file.load(write_fleet(folder, text))


def target(folder: Path, text: str, name: str = "a") -> FleetTarget:
    return next(each for each in fleet(folder, text).targets if each.name == name)


def unit(folder: Path, text: str, *, here: bool = True) -> Unit:
    return units.make_units(fleet(folder, text), here=here)[0]


def test_a_target_takes_what_the_defaults_say_and_it_does_not(tmp_path: Path) -> None:
    found = target(
        tmp_path,
        """
        [defaults]
        timeout = 5
        rate = 20
        models = []
        headers = { Authorization = "${A}", X-Team = "fleet" }
        limits = { time = 60, retries = 3 }
        [targets.a]
        url = "http://a"
        timeout = 7
        headers = { authorization = "${B}" }
        limits = { retries = 0 }
        """,
    )
    assert found.entries == {
        "url": "http://a",
        "timeout": 7,
        "rate": 20,
        "headers": {"X-Team": "fleet", "authorization": "${B}"},
    }
    assert (found.models, found.limits) == ((), Limits(time=60, retries=0))


def test_a_target_file_is_read_as_it_is_anywhere(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "t.toml").write_text('url = "http://t"\n[headers]\nX-Key = "@key"\n[tls]\nca = "ca.pem"\n')
    found = target(tmp_path, '[targets.a]\nfile = "there/t.toml"\nmodels = ["m"]\n')
    there = tmp_path / "there"
    assert found.entries["headers"] == {"X-Key": f"@{there}/key"}
    assert found.entries["tls"] == {"ca": f"{there}/ca.pem"}
    assert found.models == ("m",)


def test_all_models_are_judged_unless_it_is_said_otherwise_and_over_grpc_alone_none(tmp_path: Path) -> None:
    assert target(tmp_path, '[targets.a]\nurl = "http://a"').models == ("all",)
    assert target(tmp_path, '[targets.a]\ngrpc = "a:1"').models == ()


def test_targets_are_discovered_by_their_urls(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("# ours\nhttp://b:8000/x/y  # two\n\nhttp://b:8000/x/y\nhttps://u:p@c\n")
    found = fleet(tmp_path, '[discover]\nurls = ["http://a"]\nfile = "urls"\n[targets.A]\nurl = "http://z"')
    assert [each.name for each in found.targets] == ["A", "a-2", "b-8000-x-y", "c"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h:1/a?b", "h-1-a-b"),
        ("https://user:secret@h", "h"),
        ("http://${HOST}/", "HOST"),
        ("http://[::1]:80", "1-80"),
        ("http://" + "x" * 200, "x" * 92),
        ("http://...", "target"),
    ],
)
def test_names_of_urls_are_names_of_folders(url: str, name: str) -> None:
    assert fleet_file.make_name(url, ()) == name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = [", "fleet.toml: not TOML: "),
        ("", "fleet.toml: no target: give [targets.NAME] with a url, or [discover]"),
        ("worker = 3", "fleet.toml: Additional properties are not allowed ('worker' was unexpected)"),
        ("[targets.a]\nuri = 'x'", "targets.a: Additional properties are not allowed ('uri' was unexpected)"),
        ("[targets.a]\ntimeout = 3", "fleet.toml: targets.a: give url, grpc, or both"),
        ("[targets.a]\nurl = 'http://a'\nlimits.time = 0", "targets.a.limits.time: 0 is less than or equal to"),
        ("[targets.a]\nurl = 'http://a'\nlimits.time = nan", "targets.a.limits.time: nan is not a number of seconds"),
        ("[targets.a]\nurl = 'http://a'\nrate = nan", "targets.a: --target-rate nan: give requests per second"),
        ("[targets.a]\nurl = 'http://a'\ntimeout = 'x'", "fleet.toml: targets.a.timeout: 'x' is not of type 'number'"),
        ("[targets.'a/b']\nurl = 'http://a'", "'a/b' does not match"),
        ("[targets.a]\nurl = 'ftp://a'", "targets.a: --target-url 'ftp://a' is not an http or https URL"),
        ("[targets.a]\nurl = 'http://a'\nheaders.X = '${NO_SUCH}'", "headers.X: the environment has no variable"),
        ("[targets.a]\nurl = 'http://a'\nheaders.X = '@gone'", "headers.X: cannot read "),
        ("[targets.a]\nurl = 'http://a'\ntls.ca = 'gone.pem'", "gone.pem: no such file"),
        ("[targets.a]\nurl = 'http://a'\nroles.identity_int31 = 'x'", "roles: there is no role 'identity_int31'"),
        ("[targets.a]\nurl = 'http://a'\nextensions = ['litle']", "targets.a: extensions: unknown 'litle'; give"),
        ("[targets.a]\nfile = 'gone.toml'", "targets.a: --target-config "),
        (
            "[targets.a]\nfile = 'x.toml'\nurl = 'http://a'",
            "targets.a: url cannot be combined with file: set it in that file",
        ),
        ("[targets.a]\nurl = 'http://a'\nbaseline = 'gone.toml'", "targets.a: --conformance-baseline "),
        ("[targets.a]\nurl = 'http://a'\n[targets.A]\nurl = 'http://a'", "targets.A: targets.a differs only in case"),
        ("[discover]\nfile = 'gone'", "discover.file "),
        ("[discover]\nurls = ['nonsense']", "discover: nonsense: --target-url 'nonsense' is not an http or https URL"),
    ],
)
def test_what_is_wrong_is_one_line_that_names_the_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FleetError) as error:
        units.make_units(fleet(tmp_path, text), here=True)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert error.value.status == 4


def test_a_line_with_more_than_a_url_is_refused_by_its_number_alone(tmp_path: Path) -> None:
    (tmp_path / "urls").write_text("http://a\nhttp://b secret\n")
    with pytest.raises(FleetError, match=r"line 2 contains more than a URL$"):
        fleet(tmp_path, '[discover]\nfile = "urls"')


def test_messages_do_not_quote_values_of_headers(tmp_path: Path) -> None:
    for text in ("headers.X = ['s3cret']", "headers = 's3cret'"):
        with pytest.raises(FleetError) as error:
            fleet(tmp_path, f"[targets.a]\nurl = 'http://a'\n{text}")
        assert "s3cret" not in str(error.value)


def test_a_unit_shows_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "s3cret-of-the-environment")
    (tmp_path / "key").write_text("s3cret-of-a-file")
    found = unit(
        tmp_path,
        """
        [targets.a]
        url = "http://user:s3cret-of-the-url@a/base"
        [targets.a.headers]
        Authorization = "Bearer ${TOKEN}"
        X-Key = "@key"
        X-Plain = "s3cret-of-the-text"
        X-Both = "s3cret-of-both ${TOKEN}"
        Host = "models"
        """,
    )
    said = files.parse_toml(found.target)
    assert said["url"] == "http://a/base"
    assert said["headers"] == {"Authorization": "Bearer ${TOKEN}", "X-Key": f"@{tmp_path}/key", "Host": "models"}
    assert found.options["--target-header"] == ("X-Plain: s3cret-of-the-text", "X-Both: s3cret-of-both ${TOKEN}")
    assert found.options["--target-url"] == "http://user:s3cret-of-the-url@a/base"
    assert repr(found) == "Unit(name='a')"


def test_a_user_given_by_variables_stays_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER_NAME", "u")
    monkeypatch.setenv("PASS", "p")
    found = unit(tmp_path, '[targets.a]\nurl = "http://${USER_NAME}:${PASS}@a"')
    assert files.parse_toml(found.target)["url"] == "http://${USER_NAME}:${PASS}@a"
    assert found.options["--target-url"] == ""


def test_on_a_cluster_secrets_are_not_looked_up_here(tmp_path: Path) -> None:
    text = '[targets.a]\nurl = "${NO_SUCH}"\ngrpc = "${NO_SUCH}"\nheaders.X = "${NO_SUCH}"\ntls.ca = "gone.pem"\n'
    assert unit(tmp_path, text, here=False).name == "a"
    with pytest.raises(FleetError, match="NO_SUCH"):
        unit(tmp_path, text)


def test_roles_of_a_pack_are_known_where_the_pack_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "_LOADED", {})
    monkeypatch.setattr(roles, "_OF_PACKS", {})
    text = '[targets.a]\nurl = "http://a"\nextensions = ["little"]\nroles.little_texts = "texts"\n'
    assert unit(tmp_path, text, here=False).name == "a"
    with pytest.raises(FleetError, match=r"extensions: unknown 'little'"):
        unit(tmp_path, text)
    tensors = '[{ name = "X", datatype = "BYTES", shape = [-1] }]'
    role = f'[little_texts]\npurpose = "x"\ncompute = "identity"\ninputs = {tensors}\noutputs = {tensors}\n'
    write_pack(tmp_path / "installed", {"roles.toml": role}, package="oip_fleet_pack")
    monkeypatch.syspath_prepend(str(tmp_path / "installed"))
    assert unit(tmp_path, text).name == "a"


def test_a_baseline_travels_as_its_text(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.toml").write_text("advice = true\n")
    text = 'baselines = "b"\n[targets.a]\nurl = "http://a"\n[targets.c]\nurl = "http://c"\n'
    assert [each.baseline for each in units.make_units(fleet(tmp_path, text), here=True)] == ["advice = true\n", None]
    anew = units.make_units(fleet(tmp_path, text), here=True, updates_baselines=True)
    assert [(each.baseline, each.options["--conformance-update-baseline"]) for each in anew] == [
        ("advice = true\n", True),
        ("", True),
    ]


def test_the_digest_of_a_unit_is_that_of_all_but_its_folder() -> None:
    one = Unit("a", "url", "suite", {"--target-header": ("X: 1",)})
    assert units.compute_digest(one, "salt") == units.compute_digest(replace(one, folder="/x"), "salt")
    others = [
        replace(one, options={"--target-header": ("X: 2",)}),
        replace(one, target="uri"),
        replace(one, suite="other"),
    ]
    assert (
        len({units.compute_digest(each, "salt") for each in (one, *others)} | {units.compute_digest(one, "pepper")})
        == 5
    )


def test_tables_of_models_are_kept_beside_names(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('url = "http://t"\n[models.x]\n')
    found = fleet(
        tmp_path,
        '[defaults]\nmodels = ["m"]\n[targets.a]\nfile = "t.toml"\nmodels = ["n"]\n'
        '[targets.b]\nurl = "http://b"\n[targets.b.models.y]\n',
    )
    assert [(each.models, each.entries["models"]) for each in found.targets] == [
        (("n",), {"x": {}}),
        (("m",), {"y": {}}),
    ]
