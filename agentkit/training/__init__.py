r"""Training data: samples from logs and data sets, their token ids, and the tokens that a model learns.

Input: a conversation as a `Sample`, the chat template and the tokenizer of a model. Output: token ids with a mask
of the tokens that the model learns, or rows of a data set. Samples come from the log of an agent, or from rows in
a format of another library.

Read `sample` first, then `tokenization`, `trained_spans` and `rendered_sample`. `sample_text` has the text of a
sample, `block_spans` finds the texts of blocks, and `thinking_spans` finds all thinking. `generation_prompt` finds
the text that opens a reply, and `stop_tokens` finds the token that ends a reply. `recorded_tokens` joins recorded
and new token ids, and `text_encoder` decides if a token is trained. `log_samples` reads logs. The package `rows`
converts rows.

Example:
    >>> from agentkit.training import dump_rows, load_rows
    >>> samples = load_rows("sharegpt", [{"conversations": [
    ...     {"from": "human", "value": "Hello."}, {"from": "gpt", "value": "Hi."}]}])
    >>> next(dump_rows("openai", samples))
    {'messages': [{'role': 'user', 'content': 'Hello.'}, {'role': 'assistant', 'content': 'Hi.'}]}
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.lazy_names import import_on_first_use

if TYPE_CHECKING:
    from agentkit.training.log_samples import samples_from_log as samples_from_log
    from agentkit.training.rewritten_turns import split_rewritten as split_rewritten
    from agentkit.training.rows.row_reader import RowReader as RowReader
    from agentkit.training.rows.row_reader import load_rows as load_rows
    from agentkit.training.rows.row_writer import dump_rows as dump_rows
    from agentkit.training.sample import Sample as Sample
    from agentkit.training.text_encoder import Encode as Encode
    from agentkit.training.tokenization import TokenizedSample as TokenizedSample
    from agentkit.training.tokenization import tokenize as tokenize
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit.training.log_samples": "samples_from_log",
            "agentkit.training.rewritten_turns": "split_rewritten",
            "agentkit.training.rows.row_reader": "RowReader load_rows",
            "agentkit.training.rows.row_writer": "dump_rows",
            "agentkit.training.sample": "Sample",
            "agentkit.training.text_encoder": "Encode",
            "agentkit.training.tokenization": "TokenizedSample tokenize",
        },
    )
