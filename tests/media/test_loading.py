"""Loading media: files below roots only, in worker threads, once. A failure is a reason, not an exception."""

from __future__ import annotations

import base64
import contextlib
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from agentkit import (
    Base64Source,
    Budget,
    DocumentBlock,
    ImageBlock,
    LossError,
    MessageError,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OptionError,
    TextBlock,
    ToolResultBlock,
    URLSource,
    VideoBlock,
    load_provider,
)
from agentkit.provider_kit import MediaLimits, MediaRule
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, dispositions, get_turns, target, text_msg

pytestmark = pytest.mark.anyio

TextsAsText = target(media__document=None)
"""Target that accepts documents only as text."""

PNG = b"\x89PNG\r\n\x1a\nfirst"
OTHER = b"\x89PNG\r\n\x1a\nsecond, longer"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Folder that media may be read from, with an image; a secret is next to the folder."""
    (tmp_path / "root" / "sub").mkdir(parents=True)
    (tmp_path / "root" / "a.png").write_bytes(PNG)
    (tmp_path / "root" / "a b.png").write_bytes(PNG)
    (tmp_path / "root" / "empty.png").write_bytes(b"")
    (tmp_path / "root" / "nosuffix").write_bytes(PNG)
    (tmp_path / "root" / "unknown").write_bytes(b"in a format that nobody knows")
    (tmp_path / "secret.png").write_bytes(OTHER)
    (tmp_path / "rootless").mkdir()
    (tmp_path / "rootless" / "a.png").write_bytes(OTHER)
    return tmp_path / "root"


def picture(url: str, media_type: str | None = None) -> Msg:
    return Msg("Bob", (ImageBlock(URLSource(url, media_type)),), "user")


def data(turn: dict[str, Any]) -> bytes:
    """Returns the bytes of the only media item of a turn."""
    source = turn["content"][0]["source"]
    assert source["type"] == "base64"
    return base64.b64decode(source["data"])


async def get_turn(msg: Msg, *roots: Path) -> dict[str, Any]:
    (turn,) = get_turns(await EchoFormatter(media_roots=roots).plan([msg]))
    return turn


PATHS: list[tuple[str, Callable[[Path], str]]] = [
    ("a bare path", lambda root: str(root / "a.png")),
    ("a file URL", lambda root: (root / "a.png").as_uri()),
    ("a file URL with an encoded space", lambda root: (root / "a b.png").as_uri()),
    ("a file URL with the host localhost", lambda root: f"file://localhost{root}/a.png"),
    ("the host in upper case", lambda root: f"file://LOCALHOST{root}/a.png"),
    ("a scheme in upper case", lambda root: f"FILE://{root}/a.png"),
    ("a path with ..", lambda root: f"{root}/sub/../a.png"),
]


@each_case("name", {row[0]: row[1] for row in PATHS})
async def test_a_file_below_a_root_is_read(name: Callable[[Path], str], root: Path) -> None:
    turn = await get_turn(picture(name(root)), root)
    assert data(turn) == PNG
    assert turn["content"][0]["source"]["media_type"] == "image/png"


async def test_a_file_with_any_name_is_read(root: Path) -> None:
    for name in ("photo#1.png", "what?.png", "50%.png"):
        (root / name).write_bytes(PNG)
        assert data(await get_turn(picture(str(root / name)), root)) == PNG
        assert data(await get_turn(picture((root / name).as_uri()), root)) == PNG
        assert ImageBlock.from_path(root / name) == ImageBlock.from_bytes(PNG, "image/png")


async def test_a_relative_path_is_read_from_the_working_folder(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert data(await get_turn(picture("a.png"), root)) == PNG
    assert data(await get_turn(picture("sub/../a.png"), root)) == PNG


async def test_a_file_below_any_of_several_roots_is_read(root: Path) -> None:
    assert (
        data(await get_turn(picture(str(root.parent / "rootless" / "a.png")), root, root.parent / "rootless"))
        == OTHER
    )


async def test_a_root_can_be_a_string_or_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root, target_is_directory=True)
    turn = get_turns(await EchoFormatter(media_roots=[str(link)]).plan([picture(str(root / "a.png"))]))[0]
    assert data(turn) == PNG
    assert data(await get_turn(picture(str(link / "a.png")), root)) == PNG


@each_case("name", ["nosuffix", "a.dat"])
@each_case("on_loss", ["describe", "raise"])
async def test_the_content_decides_the_type_of_a_file_without_a_usual_suffix(
    root: Path, name: str, on_loss: Literal["describe", "raise"]
) -> None:
    (root / name).write_bytes(PNG)
    plan = await EchoFormatter(media_roots=[root], on_loss=on_loss).plan([picture(str(root / name))])
    assert get_turns(plan)[0]["content"][0]["source"] == {
        "type": "base64",
        "media_type": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }
    assert plan.ledger.losses == []
    assert ImageBlock.from_path(root / name) == ImageBlock.from_bytes(PNG, "image/png")


def test_a_file_of_unknown_type_is_described(root: Path) -> None:
    with pytest.raises(MessageError, match="Pass `media_type`"):
        ImageBlock.from_path(root / "unknown")
    assert ImageBlock.from_path(root / "unknown", "image/png").source.media_type == "image/png"


async def test_a_declared_type_wins_over_the_suffix(root: Path) -> None:
    (root / "nosuffix").write_bytes(b"in a format that nobody knows")
    turn = await get_turn(picture(str(root / "nosuffix"), "image/svg+xml"), root)
    assert turn["content"][0]["source"]["media_type"] == "image/svg+xml"


UNREADABLE_PATHS: list[tuple[str, Callable[[Path], str], str]] = [
    (
        "next to the root",
        lambda root: str(root.parent / "secret.png"),
        "the source is a local file outside the media roots",
    ),
    ("above the root", lambda root: f"{root}/../secret.png", "the source is a local file outside the media roots"),
    (
        "above the root, encoded",
        lambda root: f"file://{root}/%2e%2e/secret.png",
        "the source is a local file outside the media roots",
    ),
    (
        "in a folder whose name starts with the name of the root",
        lambda root: f"{root}less/a.png",
        "the source is a local file outside the media roots",
    ),
    ("missing", lambda root: str(root / "missing.png"), "the source is a local file that cannot be read"),
    ("a folder", lambda root: str(root / "sub"), "the path is not a file"),
    (
        "on another machine",
        lambda root: f"file://elsewhere{root}/a.png",
        "the source is a local file that cannot be read",
    ),
    ("with a null character", lambda root: f"{root}/a\0.png", "the source is a local file that cannot be read"),
    (
        "with a name that is too long",
        lambda root: f"{root}/{'x' * 5000}.png",
        "the source is a local file that cannot be read",
    ),
    ("empty", lambda root: str(root / "empty.png"), "the source is an empty file"),
    (
        "of unknown type",
        lambda root: str(root / "unknown"),
        "neither the name nor the content of the file shows the media type",
    ),
]


@each_case(("name", "reason"), {row[0]: row[1:] for row in UNREADABLE_PATHS})
async def test_a_file_that_cannot_be_read_is_described(
    name: Callable[[Path], str], reason: str, root: Path
) -> None:
    plan = await EchoFormatter(media_roots=[root]).plan([picture(name(root))])
    assert plan.ledger.losses == [("msgs[0].content[0]", reason)]
    assert reason in get_turns(plan)[0]["content"][0]["text"]
    assert str(root) not in str(plan.request)
    with pytest.raises(LossError, match=reason):
        await EchoFormatter(media_roots=[root], on_loss="raise").format([picture(name(root))])


async def test_a_link_to_a_file_outside_the_root_is_not_followed(root: Path) -> None:
    (root / "out.png").symlink_to(root.parent / "secret.png")
    (root / "away").symlink_to(root.parent, target_is_directory=True)
    for path in (root / "out.png", root / "away" / "secret.png"):
        plan = await EchoFormatter(media_roots=[root]).plan([picture(str(path))])
        assert plan.ledger.losses == [("msgs[0].content[0]", "the source is a local file outside the media roots")]


async def test_a_link_within_the_root_is_followed(root: Path) -> None:
    (root / "in.png").symlink_to(root / "a.png")
    assert data(await get_turn(picture(str(root / "in.png")), root)) == PNG


async def test_circular_links_cannot_be_read(root: Path) -> None:
    (root / "x.png").symlink_to(root / "y.png")
    (root / "y.png").symlink_to(root / "x.png")
    plan = await EchoFormatter(media_roots=[root]).plan([picture(str(root / "x.png"))])
    assert plan.ledger.losses == [("msgs[0].content[0]", "the source is a local file that cannot be read")]


async def test_a_pipe_is_refused_without_waiting(root: Path) -> None:
    pipe = root / "pipe.png"
    os.mkfifo(pipe)
    rescue = threading.Timer(3, _open_and_close, [pipe])  # opens the pipe if the reader waits
    rescue.start()
    started = time.monotonic()
    plan = await EchoFormatter(media_roots=[root]).plan([picture(str(pipe))])
    rescue.cancel()
    assert time.monotonic() - started < 2.5
    assert plan.ledger.losses == [("msgs[0].content[0]", "the path is not a file")]


def _open_and_close(pipe: Path) -> None:
    with contextlib.suppress(OSError):
        os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))


async def test_a_file_replaced_by_an_outside_link_is_not_read_again(root: Path) -> None:
    msg, formatter = picture(str(root / "a.png")), EchoFormatter(media_roots=[root])
    assert data(get_turns(await formatter.plan([msg]))[0]) == PNG
    (root / "a.png").unlink()
    (root / "a.png").symlink_to(root.parent / "secret.png")
    assert dispositions(await formatter.plan([msg])) == {"msgs[0].content[0]": "described"}


@pytest.mark.parametrize("outside", ["folder", "file"])
async def test_a_path_swapped_for_a_link_after_the_check_is_not_read(
    outside: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "sub" / "secret.png").write_bytes(PNG)
    path, formatter = root / "sub" / "secret.png", EchoFormatter(media_roots=[root])
    resolve: Any = os.path.realpath

    def resolve_and_swap(name: Any, **options: Any) -> Any:
        real = resolve(name, **options)
        if str(name) == str(path) and not path.is_symlink() and not path.parent.is_symlink():
            path.unlink()
            if outside == "file":
                path.symlink_to(root.parent / "secret.png")
            else:
                path.parent.rmdir()
                path.parent.symlink_to(root.parent, target_is_directory=True)
        return real

    monkeypatch.setattr(os.path, "realpath", resolve_and_swap)
    plan = await formatter.plan([picture(str(path))])
    assert plan.ledger.losses == [("msgs[0].content[0]", "the source is a local file that cannot be read")]
    assert path.read_bytes() == OTHER


async def test_a_file_over_the_limit_is_not_read(root: Path) -> None:
    from agentkit.messages.sources import MAX_FILE_BYTES

    with (root / "a.png").open("ab") as file:
        file.truncate(MAX_FILE_BYTES + 1)  # a sparse file
    plan = await EchoFormatter(media_roots=[root]).plan([picture(str(root / "a.png"))])
    reason = "the source is a local file larger than 100000000 bytes"
    assert plan.ledger.losses == [("msgs[0].content[0]", reason)]


async def test_the_target_limits_the_size_of_a_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _RecordedReads(monkeypatch)
    (root / "a.pdf").write_bytes(b"%PDF-1.7" + bytes(3_000))
    small = target(media__document=MediaRule(limits=MediaLimits(data=4_000)))(media_roots=[root])
    msg = Msg("Bob", (DocumentBlock(URLSource(str(root / "a.pdf"))),), "user")
    assert (await small.plan([msg])).ledger.losses == [
        ("msgs[0].content[0]", "the source is a local file larger than 3000 bytes")
    ]
    assert reads.paths == []
    assert dispositions(await EchoFormatter(media_roots=[root]).plan([msg])) == {"msgs[0].content[0]": "carried"}
    assert len((await small.plan([msg])).ledger.losses) == 1


async def test_a_replaced_file_of_equal_age_and_size_is_read_again(root: Path) -> None:
    msg, formatter, path = picture(str(root / "a.png")), EchoFormatter(media_roots=[root]), root / "a.png"
    assert data(get_turns(await formatter.plan([msg]))[0]) == PNG
    age, other = path.stat().st_mtime_ns, PNG.replace(b"first", b"other")
    (root / "new.png").write_bytes(other)
    os.utime(root / "new.png", ns=(age, age))
    (root / "new.png").replace(path)
    assert data(get_turns(await formatter.plan([msg]))[0]) == other


async def test_without_roots_nothing_is_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", _fail)
    plan = await EchoFormatter().plan([picture(str(root / "a.png"))])
    assert plan.ledger.losses == [("msgs[0].content[0]", "the source is a local file outside the media roots")]


def _fail(*_: object, **__: object) -> int:
    raise AssertionError("a file was opened")


async def test_the_roots_of_a_formatter_do_not_apply_to_another(root: Path) -> None:
    msg = picture(str(root / "a.png"))
    assert data(await get_turn(msg, root)) == PNG
    assert dispositions(await EchoFormatter().plan([msg])) == {"msgs[0].content[0]": "described"}
    assert data(await get_turn(msg, root)) == PNG


async def test_a_loss_that_needs_no_file_raises_before_any_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "open", _fail)
    formatter = target(media__video=None)(media_roots=[root], on_loss="raise")
    msgs = [picture(str(root / "a.png")), Msg("Bob", (VideoBlock(URLSource("https://a/b.mp4")),), "user")]
    with pytest.raises(LossError) as caught:
        await formatter.format(msgs)
    assert caught.value.losses == (("msgs[1].content[0]", "Echo does not accept videos"),)


class _RecordedReads:
    """Names of the files that are read; each read can be delayed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float = 0.0) -> None:
        self.paths: list[str] = []
        fdopen: Any = os.fdopen

        def counted(descriptor: int, *args: Any, **options: Any) -> Any:
            self.paths.append(os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")))
            time.sleep(seconds)
            return fdopen(descriptor, *args, **options)

        monkeypatch.setattr(os, "fdopen", counted)


async def test_a_file_is_read_and_encoded_once(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _RecordedReads(monkeypatch)
    msg, formatter = picture(str(root / "a.png")), EchoFormatter(media_roots=[root])
    texts = [get_turns(await formatter.plan([msg]))[0]["content"][0]["source"]["data"] for _ in range(3)]
    assert reads.paths == ["a.png"]
    assert texts[0] is texts[1] is texts[2]


async def test_a_file_that_occurs_twice_in_a_request_is_read_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = _RecordedReads(monkeypatch)
    msgs = [picture(str(root / "a.png")), text_msg("Al", "ok"), picture(str(root / "a.png"))]
    turns = get_turns(await EchoFormatter(media_roots=[root]).plan(msgs))
    assert data(turns[0]) == data(turns[2]) == PNG
    assert reads.paths == ["a.png"]


async def test_a_changed_file_is_read_again(root: Path) -> None:
    msg, formatter = picture(str(root / "a.png")), EchoFormatter(media_roots=[root])
    assert data(get_turns(await formatter.plan([msg]))[0]) == PNG
    (root / "a.png").write_bytes(OTHER)
    assert data(get_turns(await formatter.plan([msg]))[0]) == OTHER
    (root / "a.png").write_bytes(OTHER.replace(b"second", b"other!"))
    os.utime(root / "a.png", ns=(1, 1))
    assert data(get_turns(await formatter.plan([msg]))[0]) == OTHER.replace(b"second", b"other!")
    (root / "a.png").unlink()
    assert dispositions(await formatter.plan([msg])) == {"msgs[0].content[0]": "described"}


async def test_a_file_that_occurs_twice_has_both_declared_types(root: Path) -> None:
    (root / "x.bin").write_bytes(b"text")
    url = str(root / "x.bin")
    blocks = (ImageBlock(URLSource(url, "image/svg+xml")), DocumentBlock(URLSource(url, "text/plain")))
    (turn,) = get_turns(await EchoFormatter(media_roots=[root]).plan([Msg("Bob", blocks, "user")]))
    assert [block["source"]["media_type"] for block in turn["content"]] == ["image/svg+xml", "text/plain"]


async def test_a_file_in_a_tool_result_is_read(root: Path) -> None:
    shot = ToolResultBlock("c", "camera", (TextBlock("here"), ImageBlock(URLSource(str(root / "a.png")))))
    turns = get_turns(await EchoFormatter(media_roots=[root]).plan([call("c"), Msg("s", (shot,), "system")]))
    assert base64.b64decode(turns[1]["content"][0]["output"][1]["source"]["data"]) == PNG


async def test_reading_does_not_block_the_event_loop(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _RecordedReads(monkeypatch, seconds=0.3)
    ticks = 0
    for name in ("b.png", "c.png"):
        (root / name).write_bytes(PNG)
    msgs = [picture(str(root / name)) for name in ("a.png", "b.png", "c.png")]

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.01)
            ticks += 1

    started = time.monotonic()
    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await EchoFormatter(media_roots=[root]).format(msgs)
        group.cancel_scope.cancel()
    assert ticks >= 5
    assert time.monotonic() - started < 0.85, "files are read side by side"


async def test_large_data_is_checked_in_a_worker_thread_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentkit.media import resolution as shelf

    threads: list[threading.Thread] = []
    check = shelf.__dict__["is_base64"]

    def check_and_record(text: str) -> bool:
        threads.append(threading.current_thread())
        return bool(check(text))

    monkeypatch.setattr(shelf, "is_base64", check_and_record)
    msg = Msg("Bob", (ImageBlock(Base64Source("image/png", "iVBORw0KGgoAAAAN" * 25_000)),), "user")
    for _ in range(2):
        await EchoFormatter().format([msg])
    assert len(threads) == 1
    assert threads[0] is not threading.main_thread()


@pytest.mark.parametrize("budget", [None, Budget(1_000_000)], ids=["without a budget", "with a budget"])
async def test_many_small_data_are_checked_in_one_worker_thread(
    budget: Budget | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agentkit.media import resolution as shelf

    threads: list[threading.Thread] = []
    check = shelf.__dict__["is_base64"]

    def check_and_record(text: str) -> bool:
        threads.append(threading.current_thread())
        return bool(check(text))

    monkeypatch.setattr(shelf, "is_base64", check_and_record)
    small = base64.b64encode(PNG + bytes(3_000)).decode()
    plain, url = Base64Source("image/png", small), URLSource(f"data:image/png;base64,{small}")
    blocks = [ImageBlock(source) for _ in range(20) for source in (replace(plain), replace(url))]
    msgs = [Msg("Bob", (block,), "user") for block in blocks]
    await EchoFormatter(budget=budget).format(msgs)
    assert len(threads) == 40
    assert threading.main_thread() not in threads
    assert len({*threads}) == 1


async def test_after_a_canceled_format_no_task_runs(root: Path) -> None:
    with anyio.move_on_after(0) as scope:
        await EchoFormatter(media_roots=[root]).format([picture(str(root / "a.png"))])
    assert scope.cancelled_caught


@each_case("name", ["anthropic", "gemini", "ollama", "openai", "openai-responses", "dashscope"])
@each_case(
    "budget",
    {
        "without a budget": None,
        "with a budget": Budget(100_000),
    },
)
async def test_a_text_document_that_is_not_read_yet_is_no_loss(
    name: str, budget: Budget | None, root: Path
) -> None:
    (root / "a.txt").write_bytes("Milk, bröd.".encode())
    msg = Msg("Bob", (TextBlock("See."), DocumentBlock(URLSource(str(root / "a.txt")))), "user")
    for kind in (load_provider(name).chat_formatter, load_provider(name).multi_agent_formatter):
        plan = await kind(media_roots=[root], on_loss="raise", budget=budget).plan([msg])
        assert plan.ledger.losses == []
    (root / "a.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(LossError):
        await load_provider(name).chat_formatter(media_roots=[root], on_loss="raise", budget=budget).plan([msg])


def _long_message(number: int) -> Msg:
    return text_msg("Bob", f"Letter {number}. " + "many words " * 50)


@each_case(
    "history",
    {
        "chat": None,
        "frame": MultiAgentHistory(),
    },
)
@each_case("place", [0, 5, 9])
async def test_a_text_file_over_the_budget_is_cut_and_never_read(
    place: int, history: MultiAgentHistory | None, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "long.txt").write_text("many words " * 20_000)
    reads = _RecordedReads(monkeypatch)
    msgs = [_long_message(number) for number in range(10)]
    msgs.insert(place, Msg("Bob", (DocumentBlock(URLSource(str(root / "long.txt"))),), "user"))
    budget = Budget(3_000, strategy=OldestFirst())
    plan = await TextsAsText(media_roots=[root], budget=budget, history=history).plan(msgs)
    assert plan.cut is not None
    assert f"msgs[{place}]" in plan.cut.dropped
    assert plan.tokens is not None
    assert plan.tokens <= 3_000
    assert reads.paths == []


@each_case(
    ("charset", "codec"),
    [
        ("charset=latin-1", "latin-1"),
        ('Charset="ISO-8859-1"', "latin-1"),
        ("format=flowed; charset=windows-1251", "cp1251"),
        ("charset=shift_jis", "cp932"),
        ("charset=utf-8", "utf-8"),
        ("charset=us-ascii", "utf-8"),
        ("charset=no-such-thing", "utf-8"),
        ("charset=gbk", "gbk"),
    ],
)
async def test_a_text_file_is_decoded_with_its_declared_charset(charset: str, codec: str, root: Path) -> None:
    text = {"cp1251": "Молоко", "cp932": "牛乳", "gbk": "牛奶"}.get(codec, "Blåbär")
    content, media_type = text.encode(codec), f"text/plain; {charset}"
    (root / "a.txt").write_bytes(content)
    percent = "".join(f"%{byte:02x}" for byte in content)
    sources: list[Base64Source | URLSource] = [
        Base64Source(media_type, base64.b64encode(content).decode()),
        URLSource(str(root / "a.txt"), media_type),
        URLSource(f"data:{media_type},{percent}"),
    ]
    for source in sources:
        plan = await TextsAsText(media_roots=[root]).plan([Msg("Bob", (DocumentBlock(source),), "user")])
        assert text in get_turns(plan)[0]["content"][0]["text"]
        assert plan.ledger.losses == []


async def test_a_text_that_cannot_be_decoded_is_described() -> None:
    wrong = Base64Source("text/plain; charset=euc-jp", base64.b64encode(b"Bl\xe5b\xe4r").decode())
    plan = await TextsAsText().plan([Msg("Bob", (DocumentBlock(wrong),), "user"), text_msg("Al", "Well?")])
    assert [place for place, _ in plan.ledger.losses] == ["msgs[0].content[0]"]


async def test_an_image_declared_as_text_stays_an_image() -> None:
    source = Base64Source("text/plain; charset=latin-1", base64.b64encode(PNG).decode())
    assert data(await get_turn(Msg("Bob", (ImageBlock(source),), "user"))) == PNG


async def test_a_small_text_file_causes_no_cut(root: Path) -> None:
    (root / "short.txt").write_text("Milk.")
    msgs = [Msg("Bob", (DocumentBlock(URLSource(str(root / "short.txt"))),), "user"), text_msg("Al", "Read it.")]
    plan = await TextsAsText(media_roots=[root], budget=Budget(150)).plan(msgs)
    assert plan.cut is None
    assert "Milk." in str(plan.request)


async def test_an_earlier_read_of_a_text_file_does_not_change_the_cut(root: Path) -> None:
    (root / "long.txt").write_text("ö, " * 4_000)
    msgs = [
        _long_message(0),
        Msg("Bob", (DocumentBlock(URLSource(str(root / "long.txt"))),), "user"),
        _long_message(1),
    ]
    formatter = TextsAsText(media_roots=[root], budget=Budget(5_000, strategy=OldestFirst()))
    cold = await formatter.plan(msgs)
    await TextsAsText(media_roots=[root]).plan(msgs)
    assert (await formatter.plan(msgs)).request == cold.request


async def test_a_text_file_hidden_from_the_viewer_is_not_measured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "secret.txt").write_text("Secret.")
    monkeypatch.setattr(os, "open", _fail)
    history = MultiAgentHistory(viewer="Friday", visible=lambda msg: msg.name != "Eve")
    secret = Msg("Eve", (DocumentBlock(URLSource(str(root / "secret.txt"))),), "user")
    await TextsAsText(media_roots=[root], budget=Budget(5_000), history=history).plan(
        [secret, text_msg("Bob", "Hi.")]
    )


async def test_a_text_over_the_length_limit_costs_only_its_description(root: Path) -> None:
    (root / "huge.txt").write_bytes(b"x" * 4_000_001)
    msgs = [Msg("Bob", (DocumentBlock(URLSource(str(root / "huge.txt"))),), "user"), text_msg("Al", "Well?")]
    plan = await TextsAsText(media_roots=[root], budget=Budget(200)).plan(msgs)
    assert plan.cut is None
    assert plan.ledger.losses == [("msgs[0].content[0]", "the document has more than 1000000 characters")]


async def test_a_certain_loss_raises_before_a_text_file_is_measured(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "a.txt").write_text("Milk.")
    monkeypatch.setattr(os, "open", _fail)
    film = VideoBlock(URLSource("https://a/b.mp4"))
    msgs = [Msg("Bob", (DocumentBlock(URLSource(str(root / "a.txt"))), film), "user")]
    formatter = target(media__video=None, media__document=None)
    with pytest.raises(LossError):
        await formatter(media_roots=[root], on_loss="raise", budget=Budget(5_000)).format(msgs)


async def test_each_concurrent_call_gets_its_file(root: Path) -> None:
    formatter = EchoFormatter(media_roots=[root])
    contents: dict[int, bytes] = {}
    for number in range(20):
        (root / f"{number}.png").write_bytes(PNG + str(number).encode())

    async def format_picture(number: int) -> None:
        contents[number] = data(get_turns(await formatter.plan([picture(str(root / f"{number}.png"))]))[0])

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(format_picture, number)
    assert contents == {number: PNG + str(number).encode() for number in range(20)}


def _image_at_all_positions() -> list[Msg]:
    """Returns messages with one source as image and document, in each role, in a result, and with a wrong type."""
    source = Base64Source("image/png", base64.b64encode(PNG + bytes(40)).decode())
    named = Base64Source("image/jpeg", source.data)
    result = ToolResultBlock("c", "camera", (TextBlock("here"), ImageBlock(source)))
    return [
        text_msg("System", "Look.", "system"),
        Msg("Bob", (TextBlock("See."), ImageBlock(source), DocumentBlock(source)), "user"),
        Msg("Friday", (ImageBlock(source), TextBlock("Mine.")), "assistant"),
        call("c"),
        Msg("s", (result,), "system"),
        Msg("Eve", (ImageBlock(named), VideoBlock(source), ImageBlock(source)), "user"),
    ]


@pytest.mark.parametrize("on_loss", ["describe", "drop"])
async def test_cached_checks_change_no_request(on_loss: Any) -> None:
    names = ["anthropic", "gemini", "ollama", "openai", "openai-responses", "dashscope"]
    kinds = [
        kind
        for name in names
        for kind in (load_provider(name).chat_formatter, load_provider(name).multi_agent_formatter)
    ]
    cached = _image_at_all_positions()
    for budget in (None, Budget(100_000)):
        for kind in (*kinds, *reversed(kinds)):
            formatter = kind(on_loss=on_loss, budget=budget)
            warm, cold = await formatter.plan(cached), await formatter.plan(_image_at_all_positions())
            assert warm.request == cold.request
            assert warm.ledger.entries == cold.ledger.entries


async def test_a_file_of_a_refused_type_is_described(root: Path) -> None:
    formatter = target(media__image=MediaRule(types=frozenset({"image/webp"})))(media_roots=[root])
    plan = await formatter.plan([picture(str(root / "a.png"))])
    assert plan.ledger.losses == [("msgs[0].content[0]", "Echo does not accept image/png")]


def test_lower_reads_no_file(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "open", _fail)
    plan = EchoFormatter(media_roots=[root]).lower([picture(str(root / "a.png"))])
    assert plan.ledger.losses == [("msgs[0].content[0]", "the source is a file that was not read")]


@each_case(
    ("roots", "place"),
    {
        "missing": (["missing-folder"], "media_roots[0]"),
        "second missing": ([".", "missing-folder"], "media_roots[1]"),
        "a file": ([__file__], "media_roots[0]"),
        "a string": (".", "media_roots"),
        "a path": (Path(), "media_roots"),
        "a number in it": ([5], "media_roots"),
        "a number": (5, "media_roots"),
    },
)
def test_roots_that_are_not_folders_are_refused(roots: Any, place: str) -> None:
    with pytest.raises(OptionError) as caught:
        EchoFormatter(media_roots=roots)
    assert caught.value.place.startswith(place)
    assert caught.value.advice.endswith(".")


@each_case("name", ["anthropic", "gemini", "ollama", "openai", "openai-responses", "dashscope"])
async def test_every_provider_reads_an_image_and_never_shows_its_path(name: str, root: Path) -> None:
    formatter = load_provider(name).multi_agent_formatter(media_roots=[root])
    request = await formatter.format([picture((root / "a.png").as_uri())])
    assert str(root) not in str(request)
    assert "file:" not in str(request)


async def test_a_file_hidden_from_the_viewer_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40))
    source = URLSource(str(tmp_path / "secret.png"))
    history = MultiAgentHistory(viewer="Friday", visible=lambda msg: msg.name != "Eve")
    formatter = load_provider("anthropic").chat_formatter(history=history, media_roots=[tmp_path])
    await formatter.format([Msg("Bob", "Hi.", "user"), Msg("Eve", [ImageBlock(source)], "user")])
    assert source.cached_content is None


async def test_only_the_changed_file_of_a_message_is_read_again(root: Path, anyio_backend: str) -> None:
    paths = [root / "a.png", root / "b.png"]
    (root / "b.png").write_bytes(PNG)
    msg = Msg("Bob", tuple(ImageBlock(URLSource(str(path))) for path in paths), "user")
    formatter = EchoFormatter(media_roots=[root])

    async def read() -> list[bytes]:
        (turn,) = get_turns(await formatter.plan([msg]))
        return [base64.b64decode(block["source"]["data"]) for block in turn["content"]]

    assert await read() == [PNG, PNG]
    for changed, expected in ((1, [PNG, OTHER]), (0, [OTHER, OTHER])):
        paths[changed].write_bytes(OTHER)
        assert await read() == expected
        assert await read() == expected
