"""What the command line does with people's files: read strictly or refused, written whole or not at all, nothing left behind."""

import csv
import errno
import io
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from fractions import Fraction
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import optdp
from optdp import files
from optdp.cli import main
from optdp.cli.columns import randomize_csv
from optdp.cli.lip import read_prior
from optdp.exact import table

COMMON = ["randomize", "--eps", "1", "--column", "age", "--lower", "0", "--upper", "100", "--mechanism", "optimal"]


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def process(*arguments, **options):
    """The command as a process of its own."""
    command = [sys.executable, "-m", "optdp", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=False, timeout=120, **options)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def mechanism():
    return optdp.solve_piecewise(1.0, domain=(0, 100)).mechanism


@pytest.fixture(scope="module")
def survey():
    return optdp.plan({"age": optdp.Number(0, 100), "note": optdp.Category(["a", "b"], other="category")}, 1.0)


# --- what is refused, with its row


SECRETS = ("61", "62", "63", "Smith", "x" * 50)

REFUSED = {
    "blank line": (b"age,note\n61,a\n\n62,b\n", "row 2 is a blank line"),
    "blank line at the end": (b"age,note\n61,a\n\n", "row 2 is a blank line"),
    "blank line of CR LF": (b"age,note\r\n61,a\r\n\r\n62,b\r\n", "row 2 is a blank line"),
    "blank first line": (b"\nage,note\n61,a\n", "the header is a blank line"),
    "unclosed quote": (b'age,note\n61,"Smith\n62,x\n63,y\n', "row 1 has a quote that is not closed"),
    "a quote missing that a later row closes": (b'age,note\n61,"Smith\n62,"Smith"\n', "row 1 has a quote that is not closed"),
    "rows between two quotes": (b'note,age\n"Smith,61\nx",62\n', "row 1 has a quote that is not closed"),
    "unclosed quote in the header": (b'age,"note\n61,a\n', "the header has a quote that is not closed"),
    "quote inside a field": (b'age,note\n61,a"Smith"\n', "row 1 has a quote inside a field"),
    "text after a quote": (b'age,note\n61,"a"Smith\n', "row 1 has a quote inside a field"),
    "space before a quote": (b'age,note\n61, "Smith"\n', "row 1 has a quote inside a field"),
    "lone CR in quotes": (b'age,note\n61,"a\rSmith"\n', "row 1 has a carriage return"),
    "lone CR": (b"age,note\n61,a\rSmith\n", "row 1 has a carriage return"),
    "CR as the end of lines": (b"age,note\r61,Smith\r", "the header has a carriage return"),
    "CR CR LF": (b"age,note\n61,Smith\r\r\n", "row 1 has a carriage return"),
    "CR at the end": (b"age,note\n61,Smith\r", "row 1 has a carriage return"),
    "NUL": (b"age,note\n61,Smi\0th\n", "row 1 has a control character"),
    "escape": (b"age,note\n61,\x1b[31mSmith\n", "row 1 has a control character"),
    "line separator": ("age,note\n61,Smith\u2028x\n".encode(), "row 1 has a control character"),
    "short row": (b"age,note\n61,a\n62\n", "row 2 has 1 fields where the header has 2"),
    "long row": (b"age,note\n61,Smith,b\n", "row 1 has 3 fields where the header has 2"),
    "long field": (b"age,note\n61," + b"x" * 131_073 + b"\n", "row 1 has a field longer than 131072"),
    "long field in quotes": (b'age,note\n61,"' + b"x" * 131_073 + b'"\n', "row 1 has a field longer than 131072"),
    "long line": (b"age,note\n61," + b"x," * 3_000_000 + b"\n", "row 1 is longer than 4194304 bytes"),
    "Latin-1": ("age,note\n61,a\n62,Müller\n".encode("latin-1"), "row 2 is not UTF-8"),
    "overlong UTF-8": (b"age,note\n61,\xc0\xafSmith\n", "row 1 is not UTF-8"),
    "surrogates": (b"age,note\n61,\xed\xa0\x80Smith\n", "row 1 is not UTF-8"),
    "UTF-16": ("age,note\n61,Smith\n".encode("utf-16"), "UTF-16"),
    "two byte order marks": (b"\xef\xbb\xbf\xef\xbb\xbfage,note\n61,Smith\n", "column 1 has characters that do not show"),
    "empty": (b"", "is empty"),
    "byte order mark alone": (b"\xef\xbb\xbf", "the header is a blank line"),
    "repeated column": (b"age,note,age\n61,Smith,62\n", "column 3 has the name of another column"),
    "another column twice": (b"age,note,note\n61,Smith,a\n", "column 3 has the name of another column"),
    "no such column": (b"Age,note\n61,Smith\n", "no such column among the 2"),
    "no header": (b"61,Smith\n62,x\n", "no such column among the 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_strictly_a_table_is_refused_with_its_row(capsys, here, name):
    """Nothing is written, and nothing that the file holds is in the message, whichever way the file comes."""
    content, words = REFUSED[name]
    (here / "in.csv").write_bytes(content)
    status, out, err = run(capsys, *COMMON, "--keep", "note", "in.csv", "out.csv")
    assert status == 2 and words in err and err.count("\n") == 1 and len(err) < 400, err
    assert not out and not any(secret in err for secret in SECRETS)
    assert os.listdir(here) == ["in.csv"]


@pytest.mark.parametrize("name", REFUSED)
def test_plans_read_files_as_strictly(capsys, here, survey, name):
    """There were tracebacks at quotes and long fields, rows that a line break made, and names and bytes of private files."""
    content, words = REFUSED[name]
    if name in ("no such column", "no header"):
        words = "a column (number 1 of 2) that the plan does not know"
    (here / "in.csv").write_bytes(content)
    survey.save(here / "plan.json")
    for line in (["randomize", "--plan", "plan.json", "in.csv", "out.csv"],
                 ["client", "--plan", "plan.json", "--vectors", "in.csv", "--out", "out.jsonl"],
                 ["estimate", "--plan", "plan.json", "in.csv"]):  # fmt: skip
        status, out, err = run(capsys, *line)
        if line[0] == "estimate" and name in ("no such column", "no header"):
            words = "no column 'age'"
        assert status == 2 and words in err and err.count("\n") == 1 and len(err) < 400, err
        assert not out and not any(secret in err for secret in SECRETS) and "--multiline" not in err
        assert "in.csv" in err or "the plan does not know" in words or "no column" in words
    assert sorted(os.listdir(here)) == ["in.csv", "plan.json"]


def test_headers_of_collected_files_are_refused_without_their_names(capsys, here):
    """A traceback of the csv module."""
    optdp.plan({"age": optdp.Number(0, 100)}, 1.0).save(here / "plan.json")
    for content, words in ((b'"age\n1\n', "the header has a quote that is not closed"),
                           (b'"age"Smith\n1\n', "a quote inside a field"),
                           (b"x" * 131_073 + b"\n", "a field longer than 131072"), (b"M\xfcller\n", "is not UTF-8")):  # fmt: skip
        (here / "in.csv").write_bytes(content)
        status, _, err = run(capsys, "collect", "--plan", "plan.json", "--out", "answers", "in.csv")
        assert status == 2 and "in.csv, the header" in err and words in err and "Smith" not in err and len(err) < 300


def test_plans_and_standard_streams_and_compressed_files(here, capsys):
    """ "-" was refused with --plan; of a compressed file only the name was."""
    optdp.plan({"f": optdp.Flag()}, 1.0).save(here / "plan.json")
    found = process("randomize", "--plan", "plan.json", "--seed", "1", "-", "-", input=b"f\n1\n0\n")
    assert found.returncode == 0 and found.stdout.splitlines()[0] == b"f" and len(found.stdout.splitlines()) == 3
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", "in.csv.gz", "out.csv.gz")
    assert status == 2 and "what is compressed must be unpacked first" in err
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", "--seed", "-1", "-", "-")
    assert status == 2 and "--seed -1 is not allowed: it must be at least 0" in err


NUMBERS = ["1_0", "1٢", "１２", "nan", "inf", "-inf", "1,5", "1 000", "1'000", " 61", "61 ", "0x1f", "1e", "e5", ".", "+", "",
           "1.2.3", "--1", "1e5.0", "½", "②", "1e+", "true", "1f", "1d0", "٣", "1\u00a0000", "−5", "1j", "9" * 1001]  # fmt: skip


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers_have_one_grammar(capsys, here, text):
    cell = f'"{text}"'
    (here / "in.csv").write_text(f"age\n5\n{cell}\n", encoding="utf-8")
    status, _, err = run(capsys, *COMMON, "--clip", "in.csv", "out.csv")
    assert status == 2 and "row 2: age is" in err and ("61" not in err and "1_0" not in err)
    assert os.listdir(here) == ["in.csv"]
    assert table.real(text) is None and table.exact(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_a_number_as_it_is_written(value):
    for text in (repr(value), f"{value:+.17e}", f"{value:.0f}"):
        assert table.real(text) == float(text)
        assert table.exact(text) is None or float(table.exact(text)) == float(text)


@given(st.text("0123456789+-.eE_ ", max_size=8))
def test_a_number_is_what_python_and_json_agree_on_and_no_more(text):
    """Whatever is accepted is read as Python reads it; what is refused is no JSON number, or has spaces around it."""
    found = table.real(text)
    if found is not None:
        assert found == float(text) and "_" not in text and " " not in text
    else:
        with pytest.raises(ValueError):
            json.loads(text if text.strip() == text else "refused: " + text)


@pytest.mark.parametrize(
    "delimiter", ['"', "'", "", ",,", "a", "1", ".", "-", "+", " ", "\n", "\r", "\0", "e", "\u2028", "_", "\ufeff"]
)
def test_separators_that_could_be_something_else(delimiter):
    with pytest.raises(ValueError, match="delimiter"):
        table.separator(delimiter)


cells = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=6)
quotable = st.text('ab",;|\t', max_size=6)


@given(st.lists(st.lists(st.one_of(cells, quotable), min_size=2, max_size=2), max_size=6), st.sampled_from(",;|\t"),
       st.sampled_from(["\n", "\r\n"]), st.booleans(), st.booleans())  # fmt: skip
def test_strict_reading_agrees_with_the_csv_module(rows, delimiter, ending, always, mark):
    """What `csv` writes is read back the same, and so is what is written here, by both."""
    stream = io.StringIO()
    writer = csv.writer(
        stream, delimiter=delimiter, lineterminator=ending, quoting=csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL
    )
    writer.writerows([["h", "k"], *rows])
    raw = stream.getvalue().encode("utf-8-sig" if mark else "utf-8")
    found = table.Table(io.BytesIO(raw), "t", delimiter)
    assert found.header == ["h", "k"] and list(found.rows()) == rows
    own = "".join(table.written(row, delimiter) for row in [["h", "k"], *rows])
    assert list(table.Table(io.BytesIO(own.encode()), "t", delimiter).rows()) == rows
    assert list(csv.reader(io.StringIO(own, newline=""), delimiter=delimiter, strict=True))[1:] == rows


@given(
    st.lists(
        st.sampled_from([b"a", b"1", b",", b'"', b'""', b"\n", b"\r", b"\r\n", b"\0", b"\xc3\xa9", b"\xff", b" "]),
        max_size=25,
    )
)
def test_any_bytes_are_rows_or_refused(parts):
    """Accepted: the csv module reads the same rows, one for each line; else a ValueError. Nothing is lost or made up."""
    raw = b"".join(parts)
    try:
        rows = list(table.Records(io.BytesIO(raw), "t").rows())
    except ValueError as error:
        assert str(error).startswith("t, row ")
        return
    assert list(csv.reader(io.StringIO(raw.decode(), newline=""), strict=True)) == rows
    assert len(rows) == raw.count(b"\n") + (not raw.endswith(b"\n") and bool(raw))


def test_line_breaks_in_fields_only_where_they_are_asked_for(capsys, here):
    (here / "in.csv").write_bytes(b'age,note\r\n61,"a\r\nb ""c"""\r\n62,d\r\n')
    common = [*COMMON, "--keep", "note", "in.csv", "out.csv"]
    status, _, err = run(capsys, *common)
    assert status == 2 and "row 1 has a quote that is not closed on its line" in err and "--multiline" in err
    assert run(capsys, *common, "--multiline")[0] == 0
    with open("out.csv", newline="") as stream:
        assert [row[1] for row in csv.reader(stream, strict=True)] == ["note", 'a\nb "c"', "d"]
    (here / "in.csv").write_bytes(b'age,note\n61,a\n62,"a\nb\n')
    status, _, err = run(capsys, *common, "--multiline")
    assert status == 2 and "row 2 has a quote that is not closed" in err


# --- columns


def test_columns_that_nobody_named_are_refused(capsys, here):
    (here / "in.csv").write_text("id,age,income,town\n1,61,1000,Rome\n2,62,2000,Bern\n")
    status, _, err = run(capsys, *COMMON, "--keep", "id", "in.csv", "out.csv")
    assert status == 2 and "number 3, 4 of 4" in err and "--keep" in err and "--only" in err
    assert "income" not in err and "Rome" not in err and os.listdir(here) == ["in.csv"]
    for options, header in (
        (["--keep", "id", "--keep", "income", "--keep", "town"], ["id", "age", "income", "town"]),
        (["--keep", "town, id,income"], ["id", "age", "income", "town"]),
        (["--only"], ["age"]),
        (["--only", "--keep", "town"], ["age", "town"]),
    ):
        assert run(capsys, *COMMON, *options, "in.csv", "out.csv")[0] == 0
        with open("out.csv", newline="") as stream:
            rows = list(csv.reader(stream))
        assert rows[0] == header and len(rows) == 3
        assert not {"61", "62"} & {cell for row in rows for cell in row}
        assert ("Rome" in rows[1]) == ("town" in header)
    for options, words in (
        (["--keep", "ID"], "--keep = 'ID'"),
        (["--keep", "age,id,income,town"], "--keep is not allowed to name the column"),
        (["--keep", "id,,town"], "--keep = ''"),
    ):
        status, _, err = run(capsys, *COMMON, *options, "in.csv", "new.csv")
        assert status == 2 and words in err and not Path("new.csv").exists()


def test_a_name_with_a_comma(capsys, here):
    (here / "in.csv").write_text('age,"a,b"\n61,c\n')
    assert run(capsys, *COMMON, "--keep", "a,b", "in.csv", "out.csv")[0] == 0
    assert Path("out.csv").read_text().startswith('age,"a,b"\n')


@pytest.mark.parametrize("again", [["--column", "income"], ["--eps", "2"], ["--lower", "1"], ["--upper", "7"]])
def test_options_given_twice_are_refused(capsys, here, again):
    """U1: of two columns the first stayed in clear, without a word."""
    (here / "in.csv").write_text("age,income\n61,62\n")
    with pytest.raises(SystemExit) as stop:
        run(capsys, *COMMON, *again, "in.csv", "out.csv")
    assert stop.value.code == 2 and "given twice" in capsys.readouterr().err
    assert os.listdir(here) == ["in.csv"]


@pytest.mark.parametrize(
    "arguments", [["--lower", "1_0"], ["--eps", "1_0"], ["--upper", "１２"], ["--seed", "1_0"], ["--lower", "0x1"]]
)
def test_options_take_the_same_numbers(capsys, here, arguments):
    given = {"--eps": "1", "--column": "age", "--lower": "0", "--upper": "100"} | {arguments[0]: arguments[1]}
    with pytest.raises(SystemExit) as stop:
        run(capsys, "randomize", *(word for pair in given.items() for word in pair), "in.csv", "out.csv")
    assert stop.value.code == 2 and "use " in capsys.readouterr().err


def test_messages_of_the_library_hold_no_private_value():
    """U6, S16: entries are named by their place, and those that a mask hides are not randomised."""
    number, category = optdp.solve_piecewise(1.0).mechanism, optdp.solve_lip([0.5, 0.5], 1.0).mechanism
    for made in (number, category):
        for x in (
            777.5,
            [0, 777.5],
            "secret",
            ["secret"],
            [["secret"]],
            float("nan"),
            None,
            object(),
            [0, "secret"],
            b"secret",
        ):
            with pytest.raises((ValueError, TypeError)) as caught:
                made.randomize(x)
            assert not any(word in str(caught.value) for word in ("777", "secret", "nan"))
        with pytest.raises(ValueError, match=r"x \(entry 1\) is masked"):
            made.randomize(np.ma.masked_array([0, 1, 1], [False, True, False]))
        assert made.randomize(np.ma.masked_array([0, 1], [False, False])).shape == (2,)


# --- where outputs go


def source(path, values=(1.0, 2.0, 3.0)):
    path.write_text("age\n" + "".join(f"{v!r}\n" for v in values))
    return path


@pytest.mark.parametrize("kind", ["name", "path", "hard link", "symbolic link", "link to the output", "standard input"])
def test_the_output_is_not_the_input(capsys, here, kind):
    path = source(here / "in.csv")
    before, given, target = path.read_bytes(), "in.csv", "out.csv"
    match kind:
        case "name":
            target = "in.csv"
        case "path":
            target = f"{here}/../{here.name}/in.csv"
        case "hard link":
            os.link("in.csv", "out.csv")
        case "symbolic link":
            os.symlink("in.csv", "out.csv")
        case "link to the output":
            path.rename("out.csv")
            os.symlink("out.csv", "in.csv")
        case "standard input":
            with path.open("rb") as stream:
                done = process(*COMMON, "-", "in.csv", stdin=stream)
            assert done.returncode == 2 and b"--in-place" in done.stderr and path.read_bytes() == before
            return
    status, _, err = run(capsys, *COMMON, given, target)
    assert status == 2 and "--in-place" in err and path.read_bytes() == before
    assert run(capsys, *COMMON, "--in-place", given, target)[0] == 0
    assert Path(target).read_bytes() != before and Path(target).read_bytes().count(b"\n") == 4
    assert not [name for name in os.listdir(here) if name.endswith((".part", ".old"))]


def test_standard_output_appended_to_the_input(here):
    path = source(here / "in.csv")
    before = path.read_bytes()
    with path.open("ab") as stream:
        done = subprocess.run(
            [sys.executable, "-m", "optdp", *COMMON, "in.csv", "-"], stdout=stream, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2 and b"--in-place" in done.stderr and path.read_bytes() == before


def test_links_are_followed_and_modes_kept(capsys, here):
    source(here / "in.csv")
    (here / "folder").mkdir()
    real = here / "folder" / "real.csv"
    real.write_text("old")
    real.chmod(0o640)
    (here / "link.csv").symlink_to("folder/real.csv")
    (here / "dangling.csv").symlink_to("folder/new.csv")
    for name, target in (("link.csv", real), ("dangling.csv", here / "folder" / "new.csv")):
        assert run(capsys, *COMMON, "in.csv", name)[0] == 0
        assert (here / name).is_symlink() and target.read_text().startswith("age\n")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert {p.name for p in (here / "folder").iterdir()} == {"real.csv", "new.csv"}


def test_pipes_and_devices_stay_what_they_are(capsys, here):
    source(here / "in.csv")
    os.mkfifo("pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append(Path("pipe").read_text()))
    reader.start()
    assert run(capsys, *COMMON, "in.csv", "pipe")[0] == 0
    reader.join(20)
    assert stat.S_ISFIFO(os.stat("pipe").st_mode) and got[0].startswith("age\n") and got[0].count("\n") == 4
    assert run(capsys, *COMMON, "in.csv", "/dev/null")[0] == 0
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    (here / "folder").mkdir()
    status, _, err = run(capsys, *COMMON, "in.csv", "folder")
    assert status == 2 and "it is a folder" in err
    assert sorted(os.listdir(here)) == ["folder", "in.csv", "pipe"]


def test_names_of_what_is_open(here):
    os.symlink("/dev/stdout", "link")
    os.symlink("link", "link to it")
    for name in (
        "-",
        "/dev/stdout",
        "/dev/fd/1",
        "/proc/self/fd/1",
        "/dev/../dev/stdout",
        "link",
        "link to it",
        here / "link",
    ):
        assert files._descriptor(name) == 1, name
    for name in ("stdout", "/dev/null", "/dev/fd", "/dev/fd/x", "./-", "missing", here):
        assert files._descriptor(name) is None, name


@pytest.mark.parametrize("name", ["-", "link"])
def test_standard_output(here, name):
    source(here / "in.csv")
    os.symlink("/dev/stdout", "link")
    done = process(*COMMON, "in.csv", name)
    assert done.returncode == 0 and done.stdout.startswith(b"age\n") and done.stdout.count(b"\n") == 4, done.stderr
    with open("log", "wb") as stream:  # a file that the shell has opened is written on, not replaced
        stream.write(b"before\n")
        stream.flush()
        done = subprocess.run([sys.executable, "-m", "optdp", *COMMON, "in.csv", name], stdout=stream, check=False)
        stream.seek(0, os.SEEK_END)
        stream.write(b"after\n")
    text = Path("log").read_text()
    assert text.startswith("before\nage\n") and text.endswith("\nafter\n") and text.count("\n") == 6
    (here / "bad.csv").write_text("age\n1\n\n")
    done = process(*COMMON, "bad.csv", name)
    assert done.returncode == 2 and not done.stdout
    assert sorted(os.listdir(here)) == ["bad.csv", "in.csv", "link", "log"]


def test_standard_input_with_a_byte_order_mark(here):
    """S17, from a pipe to a pipe; separators other than the comma."""
    done = process(
        *COMMON,
        "--keep",
        "note",
        "--delimiter",
        ";",
        "-",
        "-",
        input='\ufeff"age";"note"\n"0.5";"a;b"\n0.25;c'.encode(),
    )
    rows = list(csv.reader(io.StringIO(done.stdout.decode()), delimiter=";"))
    assert done.returncode == 0 and rows[0] == ["age", "note"] and [row[1] for row in rows[1:]] == ["a;b", "c"]
    assert all(0 <= float(row[0]) <= 100 for row in rows[1:])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_what_the_system_refuses_names_the_output(capsys, here, monkeypatch):
    """Not the temporary file, of which nobody has heard, and not nothing."""
    given = ["plan", "--eps", "1", "--flag", "a", "--out"]
    assert run(capsys, *given, "/dev/full")[2] == "optdp: error: /dev/full: No space left on device\n"

    def full(path, *_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", full)
        assert run(capsys, *given, "p.json")[2] == "optdp: error: p.json: No space left on device\n"
    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", full)
        assert run(capsys, *given, "p.json")[2] == "optdp: error: p.json: No space left on device\n"
    assert os.listdir(here) == []


def test_a_source_that_is_missing_makes_no_folder(capsys, here):
    assert run(capsys, "plan", "--eps", "1", "--flag", "a", "--out", "p.json")[0] == 0
    status, _, err = run(capsys, "collect", "--plan", "p.json", "--out", "folder", "none.jsonl")
    assert status == 2 and "none.jsonl: No such file" in err and os.listdir(here) == ["p.json"]


def test_outputs_of_one_command_appear_together(capsys, here, monkeypatch):
    """Whichever fails, no other is there, and what was there before still is."""
    source(here / "in.csv")
    source(here / "bad.csv", [1.0, 1e9])
    (here / "m.json").write_text("old")
    before = sorted(os.listdir(here))
    for arguments in (
        ["bad.csv", "out.csv"],
        ["in.csv", "/nowhere/out.csv"],
        ["in.csv", "m.json"],
        ["in.csv", "./m.json"],
        ["in.csv", "."],
    ):
        assert run(capsys, *COMMON, "--save-mechanism", "m.json", *arguments)[0] == 2
        assert sorted(os.listdir(here)) == before and Path("m.json").read_text() == "old"
    for name in ("/nowhere/m.json", "in.csv", "out.csv"):
        assert run(capsys, *COMMON, "--save-mechanism", name, "in.csv", "out.csv")[0] == 2
        assert sorted(os.listdir(here)) == before
    replace, calls = os.replace, []

    def second_fails(*paths):
        calls.append(paths)
        if len(calls) == 2:
            raise OSError("no space left")
        replace(*paths)

    monkeypatch.setattr(os, "replace", second_fails)
    for target in ("out.csv", "new.csv"):
        (here / "out.csv").write_text("older")
        calls.clear()
        status, _, err = run(capsys, *COMMON, "--save-mechanism", "m.json", "in.csv", target)
        assert status == 2 and "no space" in err and Path("m.json").read_text() == "old"
        assert sorted(os.listdir(here)) == sorted([*before, "out.csv"]) and Path("out.csv").read_text() == "older"
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert run(capsys, *COMMON, "--save-mechanism", "m.json", "in.csv", "out.csv")[0] == 0
    assert optdp.Mechanism.load("m.json").satisfies(optdp.LDP(1.0))
    assert sorted(os.listdir(here)) == sorted([*before, "out.csv"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "piecewise", "--eps", "1", "--out", "s.json", "--plot", "s.doc"],
        ["solve", "piecewise", "--eps", "1", "--out", "s.json", "--write", "s.mps"],
        ["solve", "piecewise", "--eps", "1", "--out", "s.json", "--write", "/nowhere/s.nl"],
        ["solve", "piecewise", "--eps", "1", "--out", "s.json", "--plot", "./s.json"],
        ["solve", "kernel", "--eps", "1", "--rtol", "0.1", "--out", "s.json", "--errors", "e.doc"],
        ["compare", "--eps", "1", "--html", "c.html", "--plot", "/nowhere/c.png"],
    ],
)  # fmt: skip
def test_the_same_for_every_command(capsys, here, arguments):
    status, out, err = run(capsys, *arguments)
    assert status == 2 and not out and err.count("\n") == 1 and os.listdir(here) == []


def test_solutions_to_standard_output_and_back(here):
    assert main(["solve", "piecewise", "--eps", "1", "--out", "s.json"]) == 0
    done = process("verify", "-", input=Path("s.json").read_bytes())
    assert done.returncode == 0 and done.stdout.rstrip().endswith(b"verified")
    assert os.listdir(here) == ["s.json"]


def test_an_error_that_is_handled_drops_its_own_output_alone(here):
    with files.together():
        files.write_text("a", "a")
        with pytest.raises(RuntimeError), files.replacing("b") as stream:
            stream.write("half")
            raise RuntimeError
        files.write_text("b", "whole")
        assert not Path("a").exists()
    assert Path("a").read_text() == "a" and Path("b").read_text() == "whole" and sorted(os.listdir(here)) == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_leave_nothing_behind(here, number):
    with (here / "in.csv").open("w") as stream:
        stream.write("age\n" + "1\n" * 800_000)
    (here / "m.json").write_text("old")
    child = subprocess.Popen(
        [sys.executable, "-m", "optdp", *COMMON, "--save-mechanism", "m.json", "in.csv", "out.csv"],
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # what runs in the background may ignore SIGINT
    )
    until = time.monotonic() + 60
    while not (parts := [n for n in os.listdir(here) if n.startswith(".out.csv") and os.path.getsize(n) > 0]):
        assert time.monotonic() < until and child.poll() is None, child.stderr.read()
        time.sleep(0.005)
    assert parts
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode in (-number, 128 + number) and b"Traceback" not in err
    assert sorted(os.listdir(here)) == ["in.csv", "m.json"] and Path("m.json").read_text() == "old"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_large_files_take_constant_memory(here, mechanism):
    """Ten times the rows, no more memory: in a process of its own, whose peak is compared."""
    code = (
        "import re, sys; from pathlib import Path; from optdp.cli import main; "
        "main(sys.argv[1:]); print(re.search('VmHWM:[^0-9]*([0-9]+)', Path('/proc/self/status').read_text())[1])"
    )
    peaks = []
    for rows in (12_000, 120_000):
        (here / "in.csv").write_text("age,note\n" + "12.5,some longer text that is kept\n" * rows)
        done = subprocess.run(
            [sys.executable, "-c", code, *COMMON, "--keep", "note", "in.csv", "out.csv"],
            capture_output=True,
            check=True,
        )
        peaks.append(int(done.stdout.split()[-1]))
        assert Path("out.csv").read_text().count("\n") == rows + 1
    assert peaks[1] < peaks[0] * 1.05 + 4_000, peaks


def test_progress_counts_bytes(here, mechanism, capsys):
    source(here / "in.csv", [1.0] * 200_000)
    assert randomize_csv("in.csv", "out.csv", mechanism, "age", progress=True) == 200_000
    assert "B/s" in capsys.readouterr().err


@pytest.mark.parametrize("first", ["1_000", "50%", "nan", "NA", "", "inf", "-", "1 000", "log(3)"])
def test_a_first_row_of_a_prior_that_cannot_be_read_is_no_header(tmp_path, first):
    """Its category was left out without a word, and the counts of the others made a prior."""
    (tmp_path / "prior.csv").write_text(f"a,{first}\nb,5\nc,5\n")
    with pytest.raises(ValueError, match=r"row 1 is not allowed: what follows the category is not a number"):
        read_prior(tmp_path / "prior.csv", True)
    (tmp_path / "prior.csv").write_text("town,how many\nb,5\nc,5\n")
    assert read_prior(tmp_path / "prior.csv", True) == {"b": Fraction(1, 2), "c": Fraction(1, 2)}
