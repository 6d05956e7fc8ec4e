"""Models that say what a test wants them to say."""
import json
from pathlib import Path

from tl import run

# Says a line of its file, chosen by the digit that ends the prompt; a constraint makes it say something else.
PAGE = """
struct Parrot { lines: tensor, line: tensor, at: int }
fn open(m: model) -> Parrot { Parrot { lines: m["lines"], line: zeros([1000]), at: 0 } }
impl Parrot {
    fn forward(self, ids) {
        let digit = int(ids[-1]) - 51
        if len(ids) > 1 and digit >= 0 and digit < len(self.lines) { self.line = self.lines[digit] }
        self.at = if len(ids) > 1 { 0 } else { self.at + 1 }
        zeros([len(ids), 259]) + (one_hot(self.line[min(self.at, len(self.line) - 1)].reshape([1]) as int64, 259) as float32) * 9
    }
    fn logits(self, x) { x }
}"""
MAKE = """
let words = parse_json(read_file("words.json"))
save_model({"lines": tensor(words.lines, dtype: float32)}, words.name, meta: {
    "general.architecture": "parrot", "parrot.context_length": 4096, "tokenizer.ggml.model": "llama",
    "tokenizer.ggml.tokens": words.tokens, "tokenizer.ggml.scores": words.scores,
    "tokenizer.ggml.token_type": words.kinds, "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 2, "tokenizer.ggml.add_space_prefix": false, "tokenizer.chat_template": words.template,
})"""


def parrot(folder, name, template, lines, page=PAGE):
    """Writes the model, which says one of the lines, and its page."""
    Path(folder, "models").mkdir(exist_ok=True)
    Path(folder, "models", "parrot.tl").write_text(page)
    rows = [[byte + 3 for byte in line.encode()] + [2] for line in lines]
    wide = max(map(len, rows))
    words = {"name": name, "template": template, "lines": [row + [2] * (wide - len(row)) for row in rows],
             "tokens": ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)],
             "scores": [0.5] * 259, "kinds": [2, 3, 3] + [6] * 256}
    Path(folder, "words.json").write_text(json.dumps(words))
    made = run("-e", MAKE, cwd=folder)
    assert made.status == 0, made.err
