"""GRPO with TRL, rewards from adjudge. Complete: without ``--model`` it needs no download and no GPU.

    adjudge serve &                                       # in another terminal
    pip install torch trl
    python examples/trl_grpo.py                           # a tiny random model, two steps, some seconds
    python examples/trl_grpo.py --model Qwen/Qwen2.5-0.5B-Instruct --steps 200

The tiny model learns nothing; it shows that rewards arrive. Two reward functions ask the same server concurrently: one
for the right number, one for a short answer. An answer that could not be judged is left out of its group, and
``adjudge/failed_share`` in the log says how many there were.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import Any

from datasets import Dataset
from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
from trl import GRPOConfig, GRPOTrainer

from adjudge_trainer.adapters.trl import reward_function

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def sums(count: int, seed: int = 0) -> Dataset:
    """Little sums as a data set: ``prompt`` in chat form, ``solution`` the right number."""
    source = random.Random(seed)
    pairs = [(source.randrange(10), source.randrange(10)) for _ in range(count)]
    return Dataset.from_list(
        [
            {
                "prompt": [{"role": "user", "content": f"What is {a} + {b}? Answer with the number only."}],
                "solution": str(a + b),
                "data_source": "sums",
            }
            for a, b in pairs
        ]
    )


def tiny_tokenizer() -> PreTrainedTokenizerFast:
    """Byte-level BPE, trained in memory."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    tokenizer.train_from_iterator(["What is 1 + 2? The answer is 3."], trainer)
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|im_end|>", pad_token="<|endoftext|>")
    fast.chat_template = CHAT_TEMPLATE
    return fast


def tiny_model(tokenizer: PreTrainedTokenizerFast) -> Qwen2ForCausalLM:
    """A Qwen2 of a hundred thousand random weights."""
    return Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=512,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="name or folder of a model; by default a tiny random one")
    parser.add_argument("--base-url", help="the adjudge server; by default ADJUDGE_BASE_URL or http://127.0.0.1:8080")
    parser.add_argument("--verifier", default="numeric", help="who judges the answers (default: numeric)")
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--on-error", default="mask", choices=["raise", "mask", "zero", "mean"])
    parser.add_argument("--completions", action="store_true", help="print the table of completions after each step")
    parser.add_argument("--log", type=Path, help="write TRL's log to this file, as JSON")
    return parser.parse_args()


def main() -> None:
    args = arguments()
    correct = reward_function(
        verifier=args.verifier, reference_column="solution", on_error=args.on_error, base_url=args.base_url
    )
    brief = reward_function(
        verifier="length",
        reference_column=None,
        options={"unit": "tokens", "max_length": 64, "buffer": 32},
        name="brevity",
        log_prefix="brevity",
        on_error=args.on_error,
        base_url=args.base_url,
    )
    settings: dict[str, Any] = {"bf16": True} if args.model else {"use_cpu": True, "bf16": False}
    tokenizer = None if args.model else tiny_tokenizer()
    with tempfile.TemporaryDirectory() as folder:
        trainer = GRPOTrainer(
            model=args.model or tiny_model(tokenizer),
            processing_class=tokenizer,
            reward_funcs=[correct, brief],
            train_dataset=sums(256),
            args=GRPOConfig(
                output_dir=folder,
                max_steps=args.steps,
                per_device_train_batch_size=8,
                num_generations=4,
                max_completion_length=256 if args.model else 8,
                reward_weights=[1.0, 0.1],
                logging_steps=1,
                log_completions=args.completions,
                report_to=[],
                save_strategy="no",
                **settings,
            ),
        )
        trainer.train()
    if args.log:
        args.log.write_text(json.dumps(trainer.state.log_history))
    for entry in trainer.state.log_history:
        if "reward" in entry:
            print(f"step {entry['step']}: reward {entry['reward']}, failed {entry['adjudge/failed_share']:.0%}")


if __name__ == "__main__":
    main()
