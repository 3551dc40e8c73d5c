"""The built-in routing table: names that data sets give to the kinds of their rows, and who judges them."""

from __future__ import annotations

from typing import Any

__all__ = ["BUILT_IN", "REFUSED"]

_QA: dict[str, Any] = {"ignore_case": True, "ignore_punctuation": True}

BUILT_IN: tuple[tuple[tuple[str, ...], str, dict[str, Any]], ...] = (
    # Grade-school numbers: `#### 18`.
    (("openai/gsm8k", "gsm8k", "gsm8k_*", "*/gsm8k", "plain/gsm8k"), "numeric", {}),
    # Mathematics. A Guru row that asks for its LLM judge has `+math_llm_judge` behind its name.
    (("*+math_llm_judge", "*+llm_judge"), "equivalence", {}),
    (
        (
            *("lighteval/MATH", "DigitalLearningGmbH/MATH-lighteval", "HuggingFaceH4/MATH-500", "*/MATH-500"),
            *("math", "math_*", "strict_math", "verifiable_math", "aime*", "amc*", "numina_*", "math__*"),
            *("hiyouga/geometry3k", "nemo_gym/math", "deepscaler*", "*/competition_math", "*/aime*", "*/AIME*"),
        ),
        "math",
        {},
    ),
    # Programs with tests.
    (
        (
            *("codecontests", "code_contests", "apps", "codeforces", "taco", "leetcode", "leetcode2k", "livecodebench"),
            *("lcb", "primeintellect", "kodcode", "humaneval", "humanevalplus", "mbpp", "mbppplus", "codegen__*"),
            *("verifiable_code", "prime_rl_code", "code", "code_stdio", "code_sandbox", "nemo_gym/code"),
            *("roll/code", "plain/code", "*/apps", "*/taco", "*/code_contests", "openai/openai_humaneval"),
            *("open-r1/codeforces*", "open-r1/ioi*", "ioi", "KodCode/*", "*/KodCode*"),
            *("openai_humaneval", "google-research-datasets/mbpp", "HumanEval*", "open-r1/verifiable-coding-problems*"),
        ),
        "code",
        {},
    ),
    # Predictions of what a function returns, or is to be given; CodeI/O's rows hold one or the other, without code.
    (
        ("simulation__cruxeval-i*", "cruxeval-i*", "code_input_prediction"),
        "code_input_prediction",
        {},
    ),
    (
        ("simulation__codeio",),
        "code_output_prediction",
        {"json_fields": ["output", "input"], "conventions": ["json", "fence", "answer_tag", "last_line"]},
    ),
    (
        ("simulation__cruxeval*", "cruxeval*", "code_output_prediction"),
        "code_output_prediction",
        {},
    ),
    # Queries.
    (("spider",), "sql", {"rule": "auto", "any_column_order": True}),
    (("bird",), "sql", {"rule": "set"}),
    (("text2sql",), "sql", {}),
    # Short texts.
    (("searchR1_*", "search", "string_matcher", "flan", "puzzle"), "exact_match", _QA),
    (("nemo_gym/string_match",), "exact_match", {}),
    (
        (
            *("stem__gpqa*", "stem__supergpqa", "gpqa*", "supergpqa", "mmlu*", "crossthinkqa"),
            *("nemo_gym/multiple_choice", "plain/multiple_choice", "*/gpqa*", "*/mmlu*"),
        ),
        "multiple_choice",
        {},
    ),
    # Names whose verifiers come with later versions.
    (("ifeval", "ifeval_*", "*__ifeval", "nemo_gym/ifeval"), "ifeval", {}),
    (("ifbench", "*__ifbench"), "ifbench", {}),
    (("stem_web*", "general-*", "llm_judge", "llm_judgeable_groundtruth_similarity"), "equivalence", {}),
    (("rubric",), "rubric", {}),
    (("simulation__arcagi*", "simulation__barc", "arcagi*", "barc"), "arc_grid", {}),
    (("logic__zebra_puzzle*", "zebra_puzzle*"), "zebra", {}),
    (("logic__ordering_puzzle*", "ordering_puzzle*"), "ordering", {}),
    (("logic__graph_logical*", "graph_logical*"), "graph", {}),
    (("table__*",), "table", {}),
    (("ood__livebench", "livebench*"), "livebench", {}),
    (("reasoning_gym", "reasoning_gym*", "nemo_gym/reasoning_gym"), "reasoning_gym", {}),
    (("string_f1", "re_search_f1"), "f1", {}),
    (("re_search",), "regex", {}),
    (("max_length", "up_to_max_length"), "target_length", {}),
    (("complex_json_output", "pydantic_adherance", "pydantic_adherence"), "json", {}),
    (("nemo_gym/structured_outputs",), "json", {}),
    (("reverse_text",), "similarity", {}),
    (("unscramble_sentence",), "unscramble", {}),
    (("ascii_tree_formatting",), "ascii_tree", {}),
    (("formatask*",), "format_task", {}),
    (("nemo_gym/lean",), "lean", {}),
    (("no_verification", "passthrough"), "no_verification", {}),
)
"""(patterns, verifier, options); the first match counts."""

REFUSED = {"no_verification": "asks for no verification, so there is nothing to reward."}
"""Routes that lead nowhere on purpose, and why."""
