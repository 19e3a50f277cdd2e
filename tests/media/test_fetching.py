"""Fetching URLs: only with `Fetch`, only from public addresses, within limits. A failure is a reason."""

from __future__ import annotations

import asyncio
import base64
import gzip
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from io import BytesIO
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import sniffio
import trustme
from PIL import Image

from agentkit import (
    AudioBlock,
    Base64Source,
    Budget,
    DocumentBlock,
    Fetch,
    ImageBlock,
    LossError,
    MediaCache,
    MissingExtraError,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OptionError,
    Plan,
    URLSource,
    VideoBlock,
    load_provider,
)
from agentkit.media.fetching import fetch_media
from agentkit.provider_kit import MediaLimits, MediaRule
from tests.cases import each_case
from tests.conftest import EchoFormatter, get_turns, target, text_msg
from tests.media.website import PUBLIC, Answer, Internet, Website, answer, redirect, website

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[2]
PNG = b"\x89PNG\r\n\x1a\n\0\0\0first"
LOCAL = Fetch(allow_private=True)
NoURLFormatter = target(
    media__image=MediaRule(), media__audio=MediaRule(), media__video=MediaRule(), media__document=MediaRule()
)
"""Target that fetches no URLs itself."""


@pytest.fixture
def site() -> Generator[Website]:
    """Website with an image."""
    with website() as site:
        site.pages["/a.png"] = answer(PNG)
        yield site


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    """Network in which `site.test` has a public address."""
    net = Internet(monkeypatch)
    net.names["site.test"] = [[PUBLIC]]
    return net


def picture(url: str, media_type: str | None = None) -> Msg:
    return Msg("Bob", (ImageBlock(URLSource(url, media_type)),), "user")


async def fetch_block(url: str, fetch: Fetch = LOCAL, media_type: str | None = None) -> dict[str, Any]:
    """Returns the block that a target without URLs gets for an image at a URL."""
    (turn,) = get_turns(await NoURLFormatter(fetch=fetch).plan([picture(url, media_type)]))
    block: dict[str, Any] = turn["content"][0]
    return block


async def get_refusal(url: str, fetch: Fetch = LOCAL) -> str:
    """Returns the reason for a URL without content, which is the only loss and part of the text."""
    plan = await NoURLFormatter(fetch=fetch).plan([picture(url)])
    ((place, reason),) = plan.ledger.losses
    assert place == "msgs[0].content[0]"
    assert reason in get_turns(plan)[0]["content"][0]["text"]
    return reason


def data(block: dict[str, Any]) -> bytes:
    return base64.b64decode(block["source"]["data"])


async def wait_until(holds: Callable[[], bool]) -> None:
    """Waits for the work of another thread."""
    while not holds():  # noqa: ASYNC110 - the server's threads set no event of this loop
        await anyio.sleep(0.005)


def losses(plan: Plan) -> dict[str, str]:
    return dict(plan.ledger.losses)


# -- when media are fetched --------------------------------------------------------------------------------------


async def test_a_url_that_the_target_cannot_open_is_fetched(site: Website) -> None:
    block = await fetch_block(site.url("/a.png"))
    assert data(block) == PNG
    assert block["source"]["media_type"] == "image/png"


async def test_without_fetch_options_nothing_is_fetched(site: Website) -> None:
    plan = await NoURLFormatter().plan([picture(site.url("/a.png"))])
    assert losses(plan) == {"msgs[0].content[0]": "the source is a remote URL, which was not fetched"}
    assert site.paths == []


async def test_a_url_that_the_target_can_open_is_not_fetched(site: Website) -> None:
    (turn,) = get_turns(await EchoFormatter(fetch=LOCAL).plan([picture(site.url("/a.png"))]))
    assert turn["content"][0]["source"]["url"] == site.url("/a.png")
    assert site.paths == []


async def test_media_that_the_target_refuses_are_not_fetched(site: Website) -> None:
    blocks = (VideoBlock(URLSource(site.url("/a.mp4"))), ImageBlock(URLSource(site.url("/a.bmp"))))
    capabilities = target(media__video=None, media__image=MediaRule(types=frozenset({"image/png"})))
    plan = await capabilities(fetch=LOCAL).plan([Msg("Bob", blocks, "user")])
    assert len(losses(plan)) == 2
    assert site.paths == []


async def test_only_kinds_that_the_api_accepts_as_data_alone_are_fetched(site: Website) -> None:
    site.pages["/a.pdf"] = answer(b"%PDF-1.7", "application/pdf")
    blocks = (DocumentBlock(URLSource(site.url("/a.pdf"))), ImageBlock(URLSource(site.url("/a.png"))))
    request = await load_provider("openai").chat_formatter(fetch=LOCAL).format([Msg("Bob", blocks, "user")])
    assert site.paths == ["/a.pdf"]
    assert site.url("/a.png") in str(request)


async def test_a_text_document_is_fetched_and_sent_as_text(site: Website) -> None:
    site.pages["/a.txt"] = answer("Milk, bröd.".encode(), "text/plain; charset=utf-8")
    msg = Msg("Bob", (DocumentBlock(URLSource(site.url("/a.txt"))),), "user")
    (turn,) = get_turns(await target(media__document=None)(fetch=LOCAL).plan([msg]))
    assert turn["content"][0]["text"] == "[document, as text]\nMilk, bröd."


@pytest.mark.parametrize("name", ["ollama", "dashscope"])
async def test_a_provider_without_urls_gets_the_data(name: str, site: Website) -> None:
    site.pages["/a.png"] = answer(PNG)
    request = await load_provider(name).multi_agent_formatter(fetch=LOCAL).format([picture(site.url("/a.png"))])
    assert (base64.b64encode(PNG).decode() in str(request)) is (name == "ollama")
    assert len(site.paths) == (name == "ollama")


async def test_lower_fetches_nothing(site: Website) -> None:
    plan = NoURLFormatter(fetch=LOCAL).lower([picture(site.url("/a.png"))])
    assert losses(plan) == {"msgs[0].content[0]": "the source is a remote URL, which was not fetched"}
    assert site.paths == []


async def test_a_loss_that_needs_no_download_raises_before_any_download(site: Website) -> None:
    formatter = target(media__image=MediaRule(), media__video=None)(fetch=LOCAL, on_loss="raise")
    msgs = [picture(site.url("/a.png")), Msg("Bob", (VideoBlock(URLSource("https://a/b.mp4")),), "user")]
    with pytest.raises(LossError) as caught:
        await formatter.format(msgs)
    assert caught.value.losses == (("msgs[1].content[0]", "Echo does not accept videos"),)
    assert site.paths == []


async def test_a_url_that_can_be_fetched_is_no_loss(site: Website) -> None:
    msgs = [picture(site.url("/a.png")), picture(site.url("/b"))]
    site.pages["/b"] = answer(PNG)
    for budget in (None, Budget(10_000)):
        request = await NoURLFormatter(fetch=LOCAL, on_loss="raise", budget=budget).format(msgs)
        assert str(request).count(base64.b64encode(PNG).decode()) == 2


async def test_a_url_that_cannot_be_fetched_is_a_single_loss(site: Website) -> None:
    msgs = [picture(site.url("/a.png")), picture(site.url("/gone.png")), text_msg("Bob", "Which?")]
    plan = await NoURLFormatter(fetch=LOCAL).plan(msgs)
    assert losses(plan) == {"msgs[1].content[0]": "the request to the URL returned status 404"}
    assert [turn["content"][0].get("type") for turn in get_turns(plan)[:2]] == ["image", "text"]
    with pytest.raises(LossError, match="status 404"):
        await NoURLFormatter(fetch=LOCAL, on_loss="raise").format(msgs)


@each_case("limit", [1_200, 10_000, 18_500])
async def test_media_of_dropped_messages_are_never_fetched(site: Website, limit: int) -> None:
    msgs = [
        picture(site.url("/a.png")),
        *(text_msg("Bob", "many words " * 400) for _ in range(20)),
        text_msg("Al", "End."),
    ]
    plan = await NoURLFormatter(fetch=LOCAL, budget=Budget(limit, strategy=OldestFirst())).plan(msgs)
    assert plan.cut is not None
    assert "msgs[0]" in plan.cut.dropped
    assert site.paths == []


@each_case("letters", [1, 3, 9])
@each_case("keep_task", [False, True])
async def test_an_unexpectedly_large_text_never_exceeds_the_budget(
    letters: int, keep_task: bool, site: Website
) -> None:
    site.pages["/long.txt"] = answer(b"many words " * 2_000, "text/plain")
    site.pages["/short.txt"] = answer(b"few words", "text/plain")
    names = ["/long.txt", "/short.txt", "/long.txt"]
    documents = [Msg("Bob", (DocumentBlock(URLSource(site.url(name))),), "user") for name in names]
    msgs = [*(text_msg("Bob", "many words " * 100) for _ in range(letters)), *documents, text_msg("Al", "End.")]
    budget = Budget(3_500, strategy=OldestFirst(keep_task=keep_task))
    formatter = target(media__document=None)(fetch=LOCAL, budget=budget)
    plan = await formatter.plan(msgs)
    assert plan.tokens is not None
    assert plan.tokens <= 3_500
    assert plan.cut is not None
    assert f"msgs[{letters + 2}]" in plan.cut.dropped
    assert (await formatter.plan(msgs)).request == plan.request
    assert "End." in str(plan.request)


async def test_media_hidden_from_the_viewer_are_not_fetched(site: Website) -> None:
    history = MultiAgentHistory(viewer="Friday", visible=lambda msg: msg.name != "Eve")
    secret = Msg("Eve", (ImageBlock(URLSource(site.url("/secret.png"))),), "user")
    for budget in (None, Budget(10_000)):
        formatter = NoURLFormatter(fetch=LOCAL, history=history, budget=budget)
        request = await formatter.format([picture(site.url("/a.png")), secret, text_msg("Bob", "Well?")])
        assert str(request).count(base64.b64encode(PNG).decode()) == 1
    assert {*site.paths} == {"/a.png"}


# -- caching --------------------------------------------------------------------------------------------------


async def test_a_source_is_fetched_once_per_call(site: Website) -> None:
    msgs = [picture(site.url("/a.png")), text_msg("Al", "Again?", "assistant"), picture(site.url("/a.png"))]
    for budget in (None, Budget(10_000)):
        turns = get_turns(await NoURLFormatter(fetch=LOCAL, budget=budget).plan(msgs))
        assert data(turns[0]["content"][0]) == data(turns[2]["content"][0]) == PNG
    assert site.paths == ["/a.png", "/a.png"]


async def test_a_cache_serves_later_calls_and_other_formatters(site: Website) -> None:
    cache = MediaCache()
    fetch = Fetch(allow_private=True, cache=cache)
    texts = [(await fetch_block(site.url("/a.png"), fetch))["source"]["data"] for _ in range(3)]
    assert site.paths == ["/a.png"]
    assert texts[0] is texts[1] is texts[2]
    assert (len(cache), cache.bytes > len(texts[0])) == (1, True)
    cache.clear()
    assert (len(cache), cache.bytes) == (0, 0)
    await fetch_block(site.url("/a.png"), fetch)
    assert len(site.paths) == 2


async def test_a_cache_entry_is_not_used_for_stricter_limits(site: Website) -> None:
    cache = MediaCache()
    await fetch_block(site.url("/a.png"), Fetch(allow_private=True, cache=cache))
    assert "not public" in await get_refusal(site.url("/a.png"), Fetch(cache=cache))
    assert "larger" in await get_refusal(site.url("/a.png"), Fetch(allow_private=True, max_bytes=3, cache=cache))


async def test_concurrent_tasks_share_a_download(site: Website) -> None:
    all_started = threading.Event()
    waiting: list[int] = []

    def slow(handler: Answer) -> None:
        all_started.wait(20)
        answer(PNG)(handler)

    site.pages["/slow.png"] = slow
    fetch = Fetch(allow_private=True, cache=MediaCache())

    async def fetch_once() -> None:
        waiting.append(1)
        assert data(await fetch_block(site.url("/slow.png"), fetch)) == PNG

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(fetch_once)
        await wait_until(lambda: bool(site.paths) and len(waiting) == 5)
        all_started.set()
    assert site.paths == ["/slow.png"]


async def test_tasks_with_other_timeouts_do_not_share_a_download(site: Website) -> None:
    stopped = threading.Event()

    def slow(handler: Answer) -> None:
        stopped.wait(20)
        answer(PNG)(handler)

    site.pages["/slow.png"] = slow
    cache = MediaCache()
    patient = Fetch(allow_private=True, timeout=20, cache=cache)

    async with anyio.create_task_group() as group:
        group.start_soon(get_refusal, site.url("/slow.png"), Fetch(allow_private=True, timeout=0.3, cache=cache))
        await wait_until(lambda: bool(site.paths))
        group.start_soon(fetch_block, site.url("/slow.png"), patient)
        await wait_until(lambda: len(site.paths) == 2)
        await anyio.sleep(0.4)
        stopped.set()
    assert len(cache) == 1
    assert data(await fetch_block(site.url("/slow.png"), patient)) == PNG


async def test_another_task_takes_over_a_canceled_download(site: Website) -> None:
    first, go = threading.Event(), threading.Event()

    def slow(handler: Answer) -> None:
        if not first.is_set():
            first.set()
            go.wait(20)
        answer(PNG)(handler)

    site.pages["/slow.png"] = slow
    fetch = Fetch(allow_private=True, cache=MediaCache())
    results: list[bytes] = []

    async def leader(scope: anyio.CancelScope) -> None:
        with scope:
            await fetch_block(site.url("/slow.png"), fetch)

    async def follower() -> None:
        results.append(data(await fetch_block(site.url("/slow.png"), fetch)))

    async with anyio.create_task_group() as group:
        scope = anyio.CancelScope()
        group.start_soon(leader, scope)
        await wait_until(first.is_set)
        group.start_soon(follower)
        await anyio.sleep(0.05)
        scope.cancel()
    go.set()
    assert results == [PNG]


async def test_a_full_cache_removes_the_least_recently_used_entry(site: Website) -> None:
    for name in "abcd":
        site.pages[f"/{name}.png"] = answer(PNG + bytes(3_000))
    cache = MediaCache(max_bytes=28_000)  # space for three images, each as base64 text and data URL
    fetch = Fetch(allow_private=True, cache=cache)
    for name in "abcabcd":
        await fetch_block(site.url(f"/{name}.png"), fetch)
        assert cache.bytes <= 28_000
    assert len(cache) == 3
    for name in "bcd":
        await fetch_block(site.url(f"/{name}.png"), fetch)
    assert len(site.paths) == 4
    await fetch_block(site.url("/a.png"), fetch)
    assert len(site.paths) == 5


async def test_a_download_larger_than_the_cache_is_not_cached(site: Website) -> None:
    cache = MediaCache(max_bytes=0)
    assert data(await fetch_block(site.url("/a.png"), Fetch(allow_private=True, cache=cache))) == PNG
    assert (len(cache), cache.bytes) == (0, 0)


async def test_a_refused_download_is_repeated_by_the_next_request_only(site: Website) -> None:
    site.pages["/busy.png"] = answer(b"", status=503)
    cache = MediaCache()
    formatter = NoURLFormatter(fetch=Fetch(allow_private=True, cache=cache))
    urls = [site.url("/busy.png"), site.url("/gone.png")] * 2
    assert len(losses(await formatter.plan([picture(url) for url in urls]))) == 4
    assert sorted(site.paths) == ["/busy.png", "/gone.png"]
    assert len(cache) == 0
    site.pages["/busy.png"] = site.pages["/gone.png"] = answer(PNG)
    assert losses(await formatter.plan([picture(url) for url in urls])) == {}


async def test_a_cache_counts_the_smaller_copies_of_its_images(site: Website) -> None:
    buffer = BytesIO()
    Image.effect_noise((300, 300), 100).save(buffer, "PNG")
    for name in "ab":
        site.pages[f"/{name}.png"] = answer(buffer.getvalue())
    large = 8 * len(buffer.getvalue()) // 3 + 600  # base64 text and data URL
    cache = MediaCache(max_bytes=2 * large + 5_000)  # space for both images, but not for their smaller copies
    fetch = Fetch(allow_private=True, cache=cache)
    await fetch_block(site.url("/a.png"), fetch)
    before = cache.bytes
    small = target(media__image=MediaRule(limits=MediaLimits(side=200)))(fetch=fetch)
    (turn,) = get_turns(await small.plan([picture(site.url("/a.png"))]))
    assert cache.bytes == before + 2 * len(turn["content"][0]["source"]["data"])
    await fetch_block(site.url("/b.png"), fetch)
    assert (len(cache), cache.bytes) == (1, before)


async def test_concurrent_downloads_stay_within_max_concurrency(site: Website) -> None:
    running, most, lock = 0, 0, threading.Lock()

    def counted(handler: Answer) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.05)
        with lock:
            running -= 1
        answer(PNG)(handler)

    urls = [site.url(f"/{number}.png") for number in range(8)]
    site.pages.update({f"/{number}.png": counted for number in range(8)})
    await NoURLFormatter(fetch=Fetch(allow_private=True, max_concurrency=2)).format([picture(url) for url in urls])
    assert len(site.paths) == 8
    assert most == 2


async def test_a_slow_download_delays_no_other_task(site: Website) -> None:
    ticked = threading.Event()

    def slow(handler: Answer) -> None:
        assert ticked.wait(20), "the loop stood still"
        answer(PNG + bytes(5_000_000))(handler)

    site.pages["/slow.png"] = slow

    async def tick() -> None:
        await wait_until(lambda: bool(site.paths))
        for _ in range(20):
            await anyio.sleep(0.001)
        ticked.set()

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        assert len(data(await fetch_block(site.url("/slow.png")))) > 5_000_000


# -- addresses --------------------------------------------------------------------------------------------

PRIVATE_HOSTS = [
    "127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::]", "2130706433", "0x7f000001", "0177.0.0.1", "127.1",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]", "[2001:0:7f00:1::]", "169.254.169.254", "[::ffff:169.254.169.254]", "[fe80::1]",
    "[fd00:ec2::254]", "[fec0::1]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200",
    "192.0.0.192", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "[ff02::1]",
    "[2001:db8::1]", "[4000::1]", "168.63.129.16", "127.0.0.1.", "①②⑦.0.0.1",
]  # fmt: skip
"""Hosts outside the public network, in all spellings."""


@each_case("host", PRIVATE_HOSTS)
async def test_a_private_address_is_not_contacted(host: str, site: Website, internet: Internet) -> None:
    site.requests.clear()
    internet.reached.clear()
    reason = await get_refusal(site.url("/a.png", host), Fetch())
    assert reason in (
        "the host of the URL has an IP address that is not public",
        "the host of the URL is unknown",
        "the download from the URL failed",
    )
    assert internet.reached == []
    assert site.paths == []


@each_case("host", PRIVATE_HOSTS)
async def test_a_redirect_to_a_private_address_is_not_followed(
    host: str, site: Website, internet: Internet
) -> None:
    site.requests.clear()
    internet.reached.clear()
    site.pages["/start.png"] = redirect(site.url("/a.png", host))
    await get_refusal(site.url("/start.png", "site.test"), Fetch())
    assert internet.reached == [PUBLIC]
    assert site.paths == ["/start.png"]


async def test_a_public_address_is_contacted(site: Website, internet: Internet) -> None:
    assert data(await fetch_block(site.url("/a.png", "site.test"), Fetch())) == PNG
    assert data(await fetch_block(site.url("/a.png", PUBLIC), Fetch())) == PNG
    assert internet.reached == [PUBLIC, PUBLIC]


async def test_a_host_is_resolved_once_and_the_checked_address_is_used(site: Website, internet: Internet) -> None:
    internet.names["turncoat.test"] = [[PUBLIC], ["127.0.0.1"]]
    assert data(await fetch_block(site.url("/a.png", "turncoat.test"), Fetch())) == PNG
    assert internet.looked_up == ["turncoat.test"]
    assert internet.reached == [PUBLIC]
    assert "not public" in await get_refusal(site.url("/a.png", "turncoat.test"), Fetch())
    assert internet.reached == [PUBLIC]


async def test_a_slow_name_server_delays_no_other_task(site: Website, monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    lookups: list[object] = []

    def mute(*_: object, **__: object) -> Any:
        lookups.append(_)
        answered.wait(20)
        raise OSError("unknown host")

    monkeypatch.setattr(socket, "getaddrinfo", mute)
    msgs = [picture(f"http://{number}.test/a.png") for number in range(40)]
    async with anyio.create_task_group() as group:
        group.start_soon(NoURLFormatter(fetch=Fetch(max_concurrency=40)).plan, msgs)
        await wait_until(lambda: len(lookups) >= 16)
        with anyio.fail_after(10):
            if sniffio.current_async_library() == "asyncio":
                assert await asyncio.to_thread(int) == 0
            assert await anyio.to_thread.run_sync(int) == 0
        group.cancel_scope.cancel()
    answered.set()


async def test_the_host_of_each_redirect_is_checked(site: Website, internet: Internet) -> None:
    internet.names["turncoat.test"] = [[PUBLIC], ["127.0.0.1"]]
    site.pages["/start.png"] = redirect("/a.png")
    assert "not public" in await get_refusal(site.url("/start.png", "turncoat.test"), Fetch())
    assert internet.looked_up == ["turncoat.test", "turncoat.test"]
    assert site.paths == ["/start.png"]


@each_case("addresses", [[PUBLIC, "127.0.0.1"], ["::1", PUBLIC], [PUBLIC, "fe80::1%eth0"], []])
async def test_a_host_with_one_private_address_is_refused(
    addresses: list[str], site: Website, internet: Internet
) -> None:
    internet.reached.clear()
    internet.names["mixed.test"] = [addresses]
    assert "not public" in await get_refusal(site.url("/a.png", "mixed.test"), Fetch())
    assert internet.reached == []


async def test_the_next_address_is_tried_if_an_address_does_not_answer(site: Website, internet: Internet) -> None:
    internet.names["two.test"] = [["1.1.1.1", PUBLIC]]
    internet.down.add("1.1.1.1")
    assert data(await fetch_block(site.url("/a.png", "two.test"), Fetch())) == PNG
    assert internet.reached == ["1.1.1.1", PUBLIC]


async def test_an_unknown_host_and_a_closed_port_are_refused(site: Website, internet: Internet) -> None:
    assert await get_refusal("http://nowhere.test/a.png") == "the host of the URL is unknown"
    internet.down.add(PUBLIC)
    assert await get_refusal(site.url("/a.png", "site.test")) == "the download from the URL failed"


@each_case(
    "host",
    [
        *("169.254.169.254", "0.0.0.0", "[fe80::1]", "224.0.0.1", "[::ffff:169.254.1.1]"),
        *("100.100.100.200", "[::ffff:100.100.100.200]", "[fd00:ec2::254]", "[fd20:ce::254]"),
    ],
)
async def test_allow_private_excludes_metadata_services_of_clouds(
    host: str, site: Website, internet: Internet
) -> None:
    internet.reached.clear()
    assert "not public" in await get_refusal(site.url("/a.png", host), LOCAL)
    assert internet.reached == []


# -- redirects ---------------------------------------------------------------------------------------------


@each_case("status", [301, 302, 303, 307, 308])
async def test_redirects_are_followed_up_to_the_limit(status: int, site: Website) -> None:
    site.pages.update({f"/{n}": redirect(f"/{n + 1}", status) for n in range(3)})
    site.pages["/3"] = answer(PNG)
    assert data(await fetch_block(site.url("/0"), Fetch(allow_private=True, max_redirects=3))) == PNG
    reason = await get_refusal(site.url("/0"), Fetch(allow_private=True, max_redirects=2))
    assert reason == "the URL redirects more than 2 times"


async def test_circular_redirects_end_at_the_limit(site: Website) -> None:
    site.pages["/0"] = redirect("/0")
    assert "redirects more than 5 times" in await get_refusal(site.url("/0"))
    assert len(site.paths) == 6


@each_case(
    "to",
    ["file:///etc/passwd", "ftp://site.test/a.png", "data:image/png;base64,AAAA", "gopher://x/", "javascript:0"],
)
async def test_a_redirect_to_another_scheme_is_refused(to: str, site: Website, internet: Internet) -> None:
    internet.reached.clear()
    site.pages["/start.png"] = redirect(to)
    await get_refusal(site.url("/start.png"))
    assert internet.reached == ["127.0.0.1"]


async def test_credentials_in_a_url_are_not_sent_and_not_shown(site: Website) -> None:
    url = site.url("/a.png", "user:secret@127.0.0.1")
    plan = await NoURLFormatter(fetch=LOCAL).plan([picture(url)])
    assert losses(plan) == {"msgs[0].content[0]": "the URL, or a redirect, contains credentials"}
    assert "secret" not in str(plan.request)
    site.pages["/start.png"] = redirect(url)
    assert "credentials" in await get_refusal(site.url("/start.png"))
    assert site.paths == ["/start.png"]


async def test_a_request_has_no_headers_of_the_caller(
    site: Website, internet: Internet, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    site.pages["/start.png"] = answer(
        b"", status=302, Location=site.url("/a.png?q=1", "site.test"), Set_Cookie="a=b; Path=/"
    )
    site.pages["/a.png?q=1"] = answer(PNG)
    assert data(await fetch_block(site.url("/start.png", "site.test"), Fetch())) == PNG
    assert site.paths == ["/start.png", "/a.png?q=1"]
    for _, headers in site.requests:
        assert headers == {
            "Host": f"site.test:{site.port}",
            "Accept": "*/*",
            "Accept-Encoding": "identity",
            "Connection": "close",
            "User-Agent": "agentkit",
        }


# -- limits of size and time --------------------------------------------------------------------------------


def _send_endlessly(handler: Answer) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "image/png")
    handler.end_headers()
    while True:
        handler.wfile.write(PNG * 1_000)


def _send_slowly(handler: Answer) -> None:
    handler.send_response(200)
    handler.send_header("Content-Type", "image/png")
    handler.end_headers()
    while True:
        handler.wfile.write(b"x")
        threading.Event().wait(0.05)


def _headers_without_end(handler: Answer) -> None:
    handler.send_response(200)
    while True:
        handler.wfile.write(b"X-More: and more\r\n" * 1_000)


async def test_an_endless_body_is_refused_at_the_limit(site: Website) -> None:
    site.pages["/endless.png"] = _send_endlessly
    reason = await get_refusal(site.url("/endless.png"), Fetch(allow_private=True, max_bytes=100_000))
    assert reason == "the content of the URL is larger than 100000 bytes"


async def test_a_body_in_too_many_chunks_is_refused_and_delays_no_other_task(site: Website) -> None:
    def send_many_chunks(handler: Answer) -> None:
        handler.protocol_version = "HTTP/1.1"
        handler.send_response(200)
        handler.send_header("Content-Type", "image/png")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        while True:
            handler.wfile.write(b"1\r\nx\r\n" * 5_000)

    site.pages["/crumbs.png"] = send_many_chunks
    turns, reason = 0, ""

    async def count() -> None:
        nonlocal turns
        await wait_until(lambda: bool(site.paths))
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        reason = await get_refusal(site.url("/crumbs.png"), Fetch(allow_private=True, max_bytes=1_000_000))
        group.cancel_scope.cancel()
    assert reason == "the server at the URL split the content into too many pieces"
    assert turns > 6_000 / 32


def test_the_client_is_imported_in_a_worker_thread() -> None:
    program = """
import anyio, builtins, sys, threading
from agentkit import Fetch, URLSource
from agentkit.media.fetching import fetch_media
found, load = [], builtins.__import__
def watched(name, *args, **options):
    if name.partition(".")[0] in ("httpx2", "httpcore2", "h11") and name not in sys.modules:
        found.append(threading.current_thread() is threading.main_thread())
    return load(name, *args, **options)
builtins.__import__ = watched
anyio.run(fetch_media, URLSource("http://127.0.0.1:9/a.png"), Fetch(allow_private=True))
assert found and True not in found, found
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


async def test_a_body_with_a_declared_length_over_the_limit_is_not_read(site: Website) -> None:
    site.pages["/huge.png"] = answer(PNG, Content_Length="999999999999")
    assert "larger than" in await get_refusal(site.url("/huge.png"))


async def test_a_body_of_exactly_the_limit_is_accepted(site: Website) -> None:
    assert data(await fetch_block(site.url("/a.png"), Fetch(allow_private=True, max_bytes=len(PNG)))) == PNG
    assert "larger" in await get_refusal(site.url("/a.png"), Fetch(allow_private=True, max_bytes=len(PNG) - 1))


async def test_a_slow_body_is_refused_after_the_timeout(site: Website) -> None:
    site.pages["/drip.png"] = _send_slowly
    reason = await get_refusal(site.url("/drip.png"), Fetch(allow_private=True, timeout=0.4))
    assert reason == "the download from the URL took longer than 0.4 seconds"


async def test_a_silent_server_is_refused_after_the_timeout(site: Website) -> None:
    site.pages["/mute.png"] = lambda handler: (threading.Event().wait(2), None)[1]
    assert "took longer" in await get_refusal(site.url("/mute.png"), Fetch(allow_private=True, timeout=0.2))


async def test_endless_headers_are_refused(site: Website) -> None:
    site.pages["/headers.png"] = _headers_without_end
    assert await get_refusal(site.url("/headers.png")) == "the download from the URL failed"


async def test_an_incomplete_body_is_refused(site: Website) -> None:
    site.pages["/broken.png"] = answer(PNG, Content_Length="500")
    assert await get_refusal(site.url("/broken.png")) == "the download from the URL failed"


async def test_compressed_content_is_refused(site: Website) -> None:
    site.pages["/bomb.png"] = answer(gzip.compress(bytes(1_000_000)), Content_Encoding="gzip")
    assert "compressed" in await get_refusal(site.url("/bomb.png"))


@each_case("status", [201, 204, 206, 304, 400, 401, 404, 429, 500])
async def test_any_status_but_200_is_refused(status: int, site: Website) -> None:
    site.pages["/a.png"] = answer(b"", status=status)
    assert await get_refusal(site.url("/a.png")) == f"the request to the URL returned status {status}"


async def test_canceling_a_request_ends_its_downloads(site: Website) -> None:
    site.pages["/drip.png"] = _send_slowly
    with anyio.move_on_after(0.2) as scope:
        await NoURLFormatter(fetch=LOCAL).format([picture(site.url("/drip.png"))])
    assert scope.cancelled_caught


# -- media types -----------------------------------------------------------------------------------------

TYPES: list[tuple[str, bytes, str | None, str | None, str]] = [
    ("/a.png", PNG, "image/png", None, "image/png"),
    ("/a.png", PNG, "image/jpeg", None, "image/png"),
    ("/a.jpg", PNG, "text/html", None, "image/png"),
    ("/a", PNG, None, None, "image/png"),
    ("/a", PNG, "application/octet-stream", None, "image/png"),
    ("/a", PNG, "nonsense", "image/webp", "image/png"),
    ("/a", b"unheard of", "IMAGE/X-Own; q=1", None, "image/x-own"),
    ("/a.avif", b"unheard of", "binary/octet-stream", "image/svg+xml", "image/svg+xml"),
]


@each_case(("path", "body", "named", "declared", "expected"), TYPES)
async def test_the_first_bytes_decide_the_type_then_the_declared_types(
    path: str, body: bytes, named: str | None, declared: str | None, expected: str, site: Website
) -> None:
    site.pages[path] = answer(body, named)
    assert (await fetch_block(site.url(path), media_type=declared))["source"]["media_type"] == expected


@each_case(
    ("body", "named", "reason"),
    [
        (b"<!DOCTYPE html><html>Sorry</html>", "image/png", "Echo does not accept text/html"),
        (b"\n <html><body>Sorry</body></html>", "text/html", "Echo does not accept text/html"),
        (b"404: no such picture", "image/png", "the content of the URL is not image/png"),
        (b'{"error": "sorry"}', "application/json", "Echo does not accept application/json"),
        (b"", "image/png", "the URL has no content"),
        (b"%PDF-1.7", "image/png", "Echo does not accept application/pdf"),
    ],
)
async def test_an_error_page_is_not_sent_as_an_image(body: bytes, named: str, reason: str, site: Website) -> None:
    site.pages["/a.png"] = answer(body, named)
    assert await get_refusal(site.url("/a.png")) == reason


async def test_content_of_unknown_type_is_refused(site: Website) -> None:
    site.pages["/a"] = answer(b"unheard of", None)
    assert await get_refusal(site.url("/a")) == "the content of the URL has an unknown media type"


async def test_text_of_any_type_is_decoded(site: Website) -> None:
    site.pages["/a.json"] = answer('{"é": 1}'.encode(), "application/json")
    media = await fetch_media(URLSource(site.url("/a.json")), LOCAL)
    assert isinstance(media, Base64Source)
    assert media.cache["text"] == '{"é": 1}'
    assert "data_url" not in media.cache


@pytest.mark.parametrize(
    ("named", "declared"),
    [("text/plain; charset=ISO-8859-1", None), ("text/plain", "text/plain; charset=latin-1")],
    ids=["by the server", "by the block"],
)
async def test_a_text_is_decoded_with_its_declared_charset(
    named: str, declared: str | None, site: Website
) -> None:
    site.pages["/a.txt"] = answer("Blåbär".encode("latin-1"), named)
    msg = Msg("Bob", (DocumentBlock(URLSource(site.url("/a.txt"), declared)),), "user")
    plan = await target(media__document=None)(fetch=LOCAL).plan([msg])
    assert "Blåbär" in str(plan.request)
    assert plan.ledger.losses == []


async def test_a_type_that_the_data_contradicts_is_in_the_ledger(site: Website) -> None:
    site.pages["/a.mp3"] = answer(b"RIFF\0\0\0\0WAVEfmt ", "audio/mpeg")
    msg = Msg("Bob", (AudioBlock(URLSource(site.url("/a.mp3"))),), "user")
    (entry,) = (await NoURLFormatter(fetch=LOCAL).plan([msg])).ledger.entries
    assert (entry.disposition.word, entry.lost) == ("carried", False)
    assert entry.reason == "media type sent as audio/wav instead of audio/mpeg, according to the content or server"


# -- https -------------------------------------------------------------------------------------------------


@pytest.fixture
def secure(monkeypatch: pytest.MonkeyPatch) -> Generator[Website]:
    """Website with a certificate for `site.test`, from an authority that the client trusts."""
    from agentkit.media import safe_http

    authority: Any = trustme.CA()
    server, client = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("site.test").configure_cert(server)
    authority.configure_trust(client)
    monkeypatch.setattr(safe_http, "tls_context", lambda: client)
    names: list[str | None] = []
    server.sni_callback = lambda _, name, __: names.append(name)

    def answer_name(handler: Answer) -> None:
        answer(str(names[-1]).encode(), "text/plain")(handler)

    with website(server) as site:
        site.pages["/a.png"] = answer(PNG)
        site.pages["/name"] = answer_name
        yield site


async def test_the_certificate_is_checked_for_the_host_of_the_url(secure: Website, internet: Internet) -> None:
    assert data(await fetch_block(secure.url("/a.png", "site.test", "https"), Fetch())) == PNG
    internet.names["other.test"] = [[PUBLIC]]
    reason = await get_refusal(secure.url("/a.png", "other.test", "https"), Fetch())
    assert reason == "the download from the URL failed"
    await get_refusal(secure.url("/a.png", PUBLIC, "https"), Fetch())
    assert secure.paths == ["/a.png"]


async def test_the_server_gets_the_host_name_not_the_address(secure: Website, internet: Internet) -> None:
    msg = Msg("Bob", (DocumentBlock(URLSource(secure.url("/name", "site.test", "https"))),), "user")
    (turn,) = get_turns(await NoURLFormatter(fetch=Fetch()).plan([msg]))
    assert data(turn["content"][0]) == b"site.test"
    assert secure.requests[0][1]["Host"] == f"site.test:{secure.port}"


async def test_a_redirect_from_https_to_http_is_refused(
    secure: Website, site: Website, internet: Internet
) -> None:
    secure.pages["/down.png"] = redirect(site.url("/a.png", "site.test"))
    reason = await get_refusal(secure.url("/down.png", "site.test", "https"), Fetch())
    assert reason == "the URL redirects from https to http"
    site.pages["/up.png"] = redirect(secure.url("/a.png", "site.test", "https"))
    assert data(await fetch_block(site.url("/up.png", "site.test"), Fetch())) == PNG
    assert site.paths == ["/up.png"]


def test_the_tls_context_trusts_the_default_roots_and_checks_host_names() -> None:
    from agentkit.media import safe_http

    context = safe_http.tls_context()
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED


# -- options -------------------------------------------------------------------------------------------


@each_case(
    ("options", "place"),
    [
        ({"max_bytes": 0}, "fetch.max_bytes"),
        ({"max_bytes": True}, "fetch.max_bytes"),
        ({"max_redirects": -1}, "fetch.max_redirects"),
        ({"max_concurrency": 0}, "fetch.max_concurrency"),
        ({"timeout": 0}, "fetch.timeout"),
        ({"timeout": float("inf")}, "fetch.timeout"),
        ({"timeout": float("nan")}, "fetch.timeout"),
        ({"timeout": "soon"}, "fetch.timeout"),
        ({"allow_private": 1}, "fetch.allow_private"),
        ({"cache": {}}, "fetch.cache"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], place: str) -> None:
    with pytest.raises(OptionError) as caught:
        Fetch(**options)
    assert caught.value.place == place
    assert caught.value.advice.endswith(".")


@each_case("max_bytes", [-1, 1.5, "much", True])
def test_an_invalid_cache_size_is_refused(max_bytes: Any) -> None:
    with pytest.raises(OptionError):
        MediaCache(max_bytes)


def test_a_formatter_accepts_only_a_fetch_value() -> None:
    fetch: Any = True
    with pytest.raises(OptionError) as caught:
        NoURLFormatter(fetch=fetch)
    assert caught.value.place == "fetch"


def test_a_missing_client_raises_when_the_formatter_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[fetch\]"):
        NoURLFormatter(fetch=Fetch())
    NoURLFormatter()
