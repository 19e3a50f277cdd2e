"""Small corpus of texts by kind, as in conversations with agents. Tests compare estimates with its counts."""

from __future__ import annotations

import json
from typing import Final

__all__ = ["CORPUS", "OTHERS"]

_PROSE = """\
The library opens at nine, but the reading room upstairs stays closed until the heating has been repaired. If you
only want to return a book, leave it in the box beside the door and somebody will take care of it in the morning.
Friday asked whether the train would be late again. Nobody knew, so they walked along the river for a while and
talked about the trip they had planned last summer. It had rained for most of that week, and they had ended up in a
small museum with a collection of old clocks, none of which told the right time.

I have looked at the three offers you sent me. The second one is cheaper, yet it leaves out the insurance and the
cost of delivery, so in the end you would pay about the same. My advice is to take the first, ask for a discount of
five per cent, and have the contract checked before you sign it. Let me know if you would like me to write the
letter for you.
"""

_TALK = """\
Sure! Here is a short plan for the weekend:

1. On Saturday morning, visit the market near the old harbour. It gets crowded after ten, so go early.
2. Have lunch at one of the cafes on the square; most of them have vegetarian dishes.
3. In the afternoon, take the ferry to the island. The crossing takes about twenty minutes, and a ticket costs
   less than five euros.
4. On Sunday, if the weather is good, hike up to the lighthouse. Otherwise, the aquarium is a good choice.

**Note:** the ferry doesn't run on public holidays. Would you like me to check the timetable, or shall I look for
a hotel first? I can't book anything for you, but I'll gladly compare prices.
"""

_CODE = '''\
class Ledger:
    """What happened to every block of a conversation."""

    def __init__(self, blocks: Sequence[Block], *, strict: bool = False) -> None:
        self.blocks = tuple(blocks)
        self._entries: dict[int, Entry] = {}
        self._strict = strict

    def note(self, number: int, disposition: Disposition, reason: str) -> None:
        """Write down one disposition; the first one stays."""
        if number in self._entries:
            if self._strict and self._entries[number].disposition is not disposition:
                raise ValueError(f"block {number} has two dispositions: {disposition!r}")
            return
        self._entries[number] = Entry(number, disposition, reason)

    def losses(self) -> list[Entry]:
        return [entry for entry in self._entries.values() if entry.disposition.lossy]


def read_config(path: Path) -> dict[str, Any]:
    with path.open(encoding="utf-8") as file:
        config = tomllib.load(file)
    for key in ("host", "port", "timeout"):
        if key not in config:
            raise KeyError(key)
    return {**DEFAULTS, **config, "retries": min(config.get("retries", 3), 10)}
'''

_TYPESCRIPT = """\
import { useEffect, useState } from "react";

interface Order {
  id: string;
  customerName: string;
  total: number;
  status: "open" | "paid" | "shipped";
}

export function OrderList({ customerId }: { customerId: string }) {
  const [orders, setOrders] = useState<Order[]>([]);
  const [error, setError] = useState<string | null>(null);

  useEffect(() => {
    let cancelled = false;
    fetch(`/api/customers/${customerId}/orders?limit=50`)
      .then((response) => response.json())
      .then((data) => {
        if (!cancelled) setOrders(data.items.filter((order: Order) => order.total > 0));
      })
      .catch((reason) => setError(String(reason)));
    return () => {
      cancelled = true;
    };
  }, [customerId]);

  if (error !== null) return <p className="error">{error}</p>;
  return (
    <ul>
      {orders.map((order) => (
        <li key={order.id}>
          {order.customerName}: {order.total.toFixed(2)} ({order.status})
        </li>
      ))}
    </ul>
  );
}
"""

_ROWS = [
    {
        "id": 48_213 + 977 * number,
        "customer": name,
        "city": city,
        "created_at": f"2026-{number + 1:02}-{number * 3 + 4:02}T09:{number * 7 + 11:02}:00Z",
        "total": round(19.9 + 37.35 * number, 2),
        "paid": number % 2 == 0,
        "items": [{"sku": f"BK-{1_000 + number}", "title": title, "quantity": number + 1, "discount": None}],
        "note": "Leave the parcel with the neighbour if nobody answers the door." if number % 3 == 0 else "",
    }
    for number, (name, city, title) in enumerate(
        [
            ("Alice Moreau", "Lyon", "A History of Lighthouses"),
            ("Bob Lindqvist", "Uppsala", "Sourdough for Beginners"),
            ("Carol Njeri", "Nairobi", "The Clockmaker's Year"),
            ("Dan Okafor", "Lagos", "Rivers of the North"),
        ]
    )
]

_SCHEMA = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What to look for, in plain words.", "minLength": 1},
        "limit": {"type": "integer", "description": "The most results to return.", "default": 10, "maximum": 100},
        "filters": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"field": {"type": "string"}, "value": {"type": ["string", "number", "boolean"]}},
                "required": ["field", "value"],
                "additionalProperties": False,
            },
        },
        "sort": {"type": "string", "enum": ["relevance", "newest", "oldest"]},
    },
    "required": ["query"],
    "additionalProperties": False,
}

_CHINESE = """\
图书馆早上九点开门，但楼上的阅览室要等到暖气修好以后才能使用。如果你只是想还书，可以把书放进门口的箱子里，第二天早上会有人处理。
星期五问火车会不会又晚点，谁也不知道，于是他们沿着河边走了一会儿，聊起去年夏天计划的旅行。那个星期几乎天天下雨，最后他们去了一家小博物馆，里面收藏着许多旧钟表，没有一只走得准。
我看了您发来的三份报价。第二份比较便宜，但是没有包含保险和运费，所以最后的价格其实差不多。我的建议是选择第一份，请对方打九五折，并且在签字之前把合同仔细检查一遍。如果需要，我可以帮您写这封信。
人工智能助手需要理解用户的问题，调用合适的工具，然后根据返回的结果给出清楚、准确的回答。系统会自动保存对话记录，并在超出长度限制时删除最早的内容。
"""

_MIXED = """\
请帮我检查一下这段代码：`def load(path): return json.loads(Path(path).read_text())`。运行时报错 `FileNotFoundError: config.json`，
我用的是 Python 3.12 和 Windows 11。之前在 macOS 上没有问题，是不是 encoding 的原因？
好的，我来看一下。The error means that the file does not exist in the current working directory. 请先运行 `print(Path.cwd())`，
确认 `config.json` 是否在这个目录下面；如果不在，可以把 path 改成绝对路径，或者使用 `Path(__file__).parent / "config.json"`。
另外建议加上 `encoding="utf-8"`，因为 Windows 默认的编码可能是 GBK。API 返回 {"status": 200, "message": "成功", "data": []} 就说明配置已经生效了。
"""

CORPUS: Final[dict[str, tuple[str, ...]]] = {
    "prose": (_PROSE, _TALK),
    "json": (
        json.dumps(_ROWS),
        json.dumps(_ROWS, separators=(",", ":")),
        json.dumps(_ROWS, indent=2),
        json.dumps(_SCHEMA),
    ),
    "code": (_CODE, _TYPESCRIPT),
    "chinese": (_CHINESE,),
    "mixed": (_MIXED,),
}
"""Kinds of text with a documented limit of the error."""

OTHERS: Final[dict[str, str]] = {
    "japanese": "図書館は朝九時に開きますが、二階の閲覧室は暖房の修理が終わるまで使えません。本を返すだけなら、入り口の横の箱に入れて"
    "おいてください。三つの見積もりを確認しました。二番目は安いですが、保険と送料が含まれていないので、結局は同じくらいの値段になります。"
    "契約書に署名する前に、もう一度内容を確認することをおすすめします。",
    "korean": "도서관은 아침 아홉 시에 문을 열지만 위층 열람실은 난방 수리가 끝날 때까지 이용할 수 없습니다. 책만 반납하려면 문 옆의 상자에 "
    "넣어 두세요. 보내 주신 견적서 세 개를 확인했습니다. 두 번째가 더 싸지만 보험과 배송비가 빠져 있어서 결국 비슷한 금액을 내게 됩니다.",
    "russian": "Библиотека открывается в девять, но читальный зал наверху закрыт, пока не починят отопление. Если вы хотите "
    "только вернуть книгу, оставьте её в ящике у двери. Я посмотрел три предложения, которые вы прислали. Второе "
    "дешевле, но в нём нет страховки и доставки, поэтому в итоге вы заплатите примерно столько же.",
    "ukrainian": "Бібліотека відчиняється о дев'ятій, але читальна зала нагорі зачинена, доки не відремонтують опалення. "
    "Якщо ви хочете лише повернути книжку, залиште її у скриньці біля дверей.",
    "greek": "Η βιβλιοθήκη ανοίγει στις εννέα, αλλά το αναγνωστήριο στον επάνω όροφο μένει κλειστό μέχρι να επισκευαστεί η "
    "θέρμανση. Αν θέλετε μόνο να επιστρέψετε ένα βιβλίο, αφήστε το στο κουτί δίπλα στην πόρτα.",
    "hebrew": "הספרייה נפתחת בתשע, אבל אולם הקריאה בקומה העליונה סגור עד שיתקנו את החימום. אם אתם רוצים רק להחזיר ספר, "
    "השאירו אותו בתיבה ליד הדלת ומישהו יטפל בו בבוקר.",
    "arabic": "تفتح المكتبة أبوابها في التاسعة صباحا، لكن قاعة القراءة في الطابق العلوي تبقى مغلقة حتى يتم إصلاح التدفئة. إذا "
    "أردت إعادة كتاب فقط فضعه في الصندوق بجانب الباب وسيهتم به أحد الموظفين في الصباح.",
    "hindi": "पुस्तकालय सुबह नौ बजे खुलता है, लेकिन ऊपर का वाचनालय तब तक बंद रहेगा जब तक हीटिंग ठीक नहीं हो जाती। अगर आप केवल "
    "किताब लौटाना चाहते हैं, तो उसे दरवाज़े के पास रखे डिब्बे में डाल दीजिए।",
    "thai": "ห้องสมุดเปิดเวลาเก้าโมงเช้า แต่ห้องอ่านหนังสือชั้นบนจะปิดจนกว่าจะซ่อมระบบทำความร้อนเสร็จ ถ้าคุณต้องการคืนหนังสือเท่านั้น "
    "ให้วางไว้ในกล่องข้างประตู",
    "french": "La bibliothèque ouvre à neuf heures, mais la salle de lecture à l'étage reste fermée jusqu'à ce que le chauffage "
    "soit réparé. Si vous voulez seulement rendre un livre, déposez-le dans la boîte près de la porte. J'ai regardé "
    "les trois offres que vous m'avez envoyées ; la deuxième est moins chère, mais l'assurance n'est pas comprise.",
    "german": "Die Bibliothek öffnet um neun, aber der Lesesaal im Obergeschoss bleibt geschlossen, bis die Heizung repariert "
    "ist. Wenn Sie nur ein Buch zurückgeben möchten, legen Sie es bitte in die Kiste neben der Tür. Das zweite "
    "Angebot ist günstiger, enthält aber weder die Versicherung noch die Lieferung.",
    "polish": "Biblioteka otwiera się o dziewiątej, ale czytelnia na piętrze jest zamknięta, dopóki nie zostanie naprawione "
    "ogrzewanie. Jeśli chcesz tylko zwrócić książkę, zostaw ją w skrzynce obok drzwi.",
    "vietnamese": "Thư viện mở cửa lúc chín giờ, nhưng phòng đọc trên lầu vẫn đóng cho đến khi hệ thống sưởi được sửa xong. Nếu bạn "
    "chỉ muốn trả sách, hãy để sách vào hộp cạnh cửa.",
    "emoji": "Great news! 🎉🎉 The tickets arrived 🚂✨ See you on Saturday 😀👍🏽 Bring an umbrella ☔️, please 🙏❤️‍🔥🇫🇷",
    "marks": "“Yes” — she said … it’s 20 °C · see § 4 → next ≤ 10 € • done ✓",
    "hex": "3f2504e0-4f89-41d3-9a0c-0305e82c3301 9e107d9d372bb6826bd81d3542a4d6 e4d909c290d0fb1ca068ffaddf22cbd0",
    "base64": "TW96aWxsYS81LjAgKFgxMTsgTGludXggeDg2XzY0KSBBcHBsZVdlYktpdC81MzcuMzYgKEtIVE1MLCBsaWtlIEdlY2tvKQ==",
    "numbers": "1024.50, 998.12, 7.0, 33.3333, 120938, 4481, 0.00021, 17, 2026-11-21, 18:45:09, 555-0199, 42%",
    "shouting": "WARNING: DO NOT OPEN THE DOOR BEFORE THE TRAIN HAS STOPPED. PLEASE KEEP CLEAR OF THE PLATFORM EDGE.",
}
"""Other scripts and kinds of text."""
