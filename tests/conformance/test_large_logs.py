"""The lines of the guide for `datasets` and Ray Data run, and give the token ids of `tokenize`.

The lines run in a process of their own, because Ray starts other processes and changes global state. All servers
listen on this machine only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.documents.pages import ROOT

GUIDE: Final = ROOT / "examples" / "guides" / "training_data.md"
BLOCK: Final = re.compile(r"^```py(?:thon)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
START: Final = """
import ray

ray.init(
    num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100_000_000,
    _node_ip_address="127.0.0.1", _temp_dir=FOLDER,
)
"""
CHECK: Final = """
import pyarrow.parquet

expected = [to_tokens(json.loads(line)) for line in open(folder / "train.jsonl")]
assert len(expected) == 4
assert datasets.load_from_disk(folder / "tokens").to_list() == expected
table = pyarrow.parquet.read_table(folder / "parquet")
assert sorted(table.to_pylist(), key=str) == sorted(expected, key=str)
assert set(map(str, table.schema.types)) == {"list<element: int64>"}
ray.shutdown()
"""


def test_the_lines_of_the_guide_run_in_several_processes() -> None:
    blocks = [match[1] for match in BLOCK.finditer(GUIDE.read_text("utf-8"))]
    assert sum("map_batches(" in block for block in blocks) == sum(".map(" in block for block in blocks) == 1
    with TemporaryDirectory(prefix="r") as folder:  # the path of a socket of Ray has at most 107 characters
        script = Path(folder) / "guide.py"
        script.write_text("\n".join([START.replace("FOLDER", repr(folder)), *blocks, CHECK]), "utf-8")
        variables = {
            **os.environ,
            "PYTHONPATH": str(ROOT),  # the guide imports `examples`
            "HF_HOME": folder,
            "HF_HUB_OFFLINE": "1",
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_AUTH_MODE": "disabled",  # otherwise Ray writes a token into the home folder
        }
        command = [sys.executable, str(script)]
        done = subprocess.run(
            command, cwd=folder, env=variables, capture_output=True, text=True, timeout=300, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
