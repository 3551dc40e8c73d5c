"""SandboxFusion's wire format, field by field, through the application and in real jails."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from starlette.testclient import TestClient

RUN_CODE = "/compat/sandboxfusion/run_code"
SUBMIT = "/compat/sandboxfusion/submit"
SUM = "print(sum(map(int, input().split())))"


@pytest.fixture(scope="module", autouse=True)
def _with_a_sandbox(client: TestClient) -> None:
    if client.app.state.engine.sandbox is None:  # type: ignore[attr-defined]
        pytest.skip("this host cannot isolate programs")


def run_code(client: TestClient, code: str, **more: Any) -> dict[str, Any]:
    reply = client.post(RUN_CODE, json={"code": code, "language": "python", **more})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    assert set(found) == {"status", "message", "compile_result", "run_result", "executor_pod_name", "files"}
    return found


def test_run_code(client: TestClient) -> None:
    found = run_code(client, "import sys\nprint(input()[::-1])\nprint('e', file=sys.stderr)", stdin="hällo\n")
    run = found["run_result"]
    assert (found["status"], found["message"], found["compile_result"]) == ("Success", "", None)
    assert (run["status"], run["return_code"], run["stdout"], run["stderr"]) == ("Finished", 0, "olläh\n", "e\n")
    assert 0 < run["execution_time"] < 10


def test_run_code_as_verl_sends_it(client: TestClient) -> None:
    body = {
        "compile_timeout": 10, "run_timeout": 10, "code": "print(1)", "stdin": None, "memory_limit_MB": 1024,
        "language": "python", "files": {}, "fetch_files": [],
    }  # fmt: skip
    for path in (RUN_CODE, "/run_code"):
        reply = client.post(path, json=body).json()
        assert (reply["status"], reply["run_result"]["stdout"]) == ("Success", "1\n")


@pytest.mark.parametrize(
    ("code", "status", "return_code", "message"),
    [
        ("import sys; sys.exit(3)", "Finished", 3, ""),
        ("1 / 0", "Finished", 1, ""),
        ("print(", "Finished", 1, "compile_error"),
        ("import os; os.kill(os.getpid(), 6)", "Finished", -6, "SIGABRT"),
        ("while True: pass", "TimeLimitExceeded", None, "time_limit"),
        ("import time; time.sleep(60)", "TimeLimitExceeded", None, "time_limit"),
        ("x = bytearray(1 << 29)", "Finished", -9, "memory_limit"),
        ("while True: print('x' * 100000)", "Finished", -9, "output_limit"),
    ],
)
def test_run_code_of_programs_that_fail(
    client: TestClient, code: str, status: str, return_code: int | None, message: str
) -> None:
    found = run_code(client, code, run_timeout=0.4, memory_limit_MB=128)
    assert found["status"] == "Failed"
    run = found["run_result"]
    assert (run["status"], run["return_code"]) == (status, return_code)
    assert message in found["message"]
    if return_code == 1:
        assert "Error" in run["stderr"]


def test_nothing_is_cut_or_lost(client: TestClient) -> None:
    text = run_code(client, "print('x' * 2_000_000)")["run_result"]["stdout"]
    assert len(text) == 2_000_001
    found = run_code(client, "import os; os.write(1, bytes([255, 254, 49]))")["run_result"]
    assert base64.b64decode(found["stdout_base64"]) == b"\xff\xfe1"
    assert found["stdout"] == "\\xff\\xfe1"
    assert run_code(client, "print('\\x00\\x1b[31m')")["run_result"]["stdout"] == "\0\x1b[31m\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"files": {"/etc/x": "aGk="}}, "absolute"),
        ({"files": {"../x": "aGk="}}, "'..'"),
        ({"files": {"a/../../x": "aGk="}}, "'..'"),
        ({"fetch_files": ["/etc/passwd"]}, "absolute"),
        ({"files": {"x": "not base64!"}}, "base64"),
        ({"language": "cobol"}, "cobol"),
        ({"run_timeout": 0}, "run_timeout"),
        ({"run_timeout": 1e9}, "run_timeout"),
        ({"code": None}, "code"),
    ],
)
def test_run_code_refuses(client: TestClient, change: dict[str, Any], said: str) -> None:
    reply = client.post(RUN_CODE, json={"code": "print(1)", "language": "python", **change})
    assert (reply.status_code, reply.json()["type"]) == (422, "urn:adjudge:invalid-request")
    assert said in reply.json()["detail"]


def test_url_parameters(client: TestClient) -> None:
    body = {"code": "print(1)", "language": "python"}
    assert client.post(f"{RUN_CODE}?queue_timeout_s=5&key=x", json=body).status_code == 200
    assert client.post(f"{RUN_CODE}?queue_timeot_s=5", json=body).status_code == 422


SUMS = [{"input": {"stdin": f"{n} {n}\n"}, "output": {"stdout": f"{2 * n}\n"}} for n in range(12)]


def submit(client: TestClient, code: str, data: Any, kind: str | None = None, **config: Any) -> dict[str, Any]:
    body = {
        "dataset": "any",
        "id": 7,
        "completion": f"So:\n\n```python\n{code}\n```\n",
        "config": {"language": "python", "dataset_type": kind, "provided_data": data, **config},
    }
    reply = client.post(SUBMIT, json=body)
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    assert found["id"] == 7
    return found


@pytest.mark.parametrize("packed", [False, True])
def test_submit_of_input_and_output(client: TestClient, packed: bool) -> None:
    row = {"id": 7, "content": "Add.", "labels": {}, "test": json.dumps(SUMS) if packed else SUMS}
    found = submit(client, SUM, row, "CommonOJDataset")
    assert found["accepted"]
    assert (found["extracted_code"], found["extracted_type"]) == (SUM, "fenced")
    assert [test["passed"] for test in found["tests"]] == [True] * len(SUMS)
    assert found["tests"][3]["exec_info"]["run_result"]["stdout"] == "6\n"
    assert found["tests"][3]["test_info"] == SUMS[3]


def test_submit_of_wrong_answers(client: TestClient) -> None:
    row = {"test": SUMS}
    wrong = "a, b = map(int, input().split())\nprint(a + b if a < 4 else 0)"
    found = submit(client, wrong, row)
    assert not found["accepted"]
    assert [test["passed"] for test in found["tests"]] == [True] * 4 + [False], "it stops at the first"
    every = submit(client, wrong, row, extra={"run_all_cases": True})
    assert not every["accepted"]
    assert [test["passed"] for test in every["tests"]] == [n < 4 for n in range(12)]
    crash = submit(client, "a, b = map(int, input().split())\nprint(2 * a if a != 9 else 1 / 0)", row)
    assert [test["passed"] for test in crash["tests"]] == [True] * 9 + [False]
    broken = submit(client, "print(", row, extra={"run_all_cases": True})
    assert [test["passed"] for test in broken["tests"]] == [False] * 12
    early = submit(client, "import os\nos._exit(0)", row)
    assert not early["accepted"]


def test_a_program_that_never_ends_costs_three_tests(client: TestClient) -> None:
    found = submit(client, "while True: pass", {"test": SUMS}, run_timeout=0.2, extra={"run_all_cases": True})
    statuses = [(test["exec_info"]["run_result"] or {}).get("status") for test in found["tests"]]
    assert statuses == ["TimeLimitExceeded"] * 3 + [None] * 9
    assert "not run" in found["tests"][-1]["exec_info"]["message"]


def test_submit_compares_as_sandboxfusion_does(client: TestClient) -> None:
    row = {"test": [{"input": {"stdin": ""}, "output": {"stdout": "YES\n1.0000001"}}]}
    assert submit(client, "print('yes')\nprint(1.0)", row)["accepted"]
    body = {
        "dataset": "", "id": 1, "completion": "```python\nprint('yes')\nprint(1.0)\n```",
        "config": {"language": "python", "provided_data": row},
    }  # fmt: skip
    assert not client.post(f"{SUBMIT}?comparison=exact", json=body).json()["accepted"]


@pytest.mark.parametrize(
    ("completion", "code", "kind"),
    [
        ("```python\nprint(1)\n```\n```python\nprint(2)\n```", "print(1)", "fenced"),
        ("```bash\nls\n```\n```python\nprint(2)\n```", "print(2)", "fenced"),
        ("```\nprint(3)\n```", "print(3)", "fenced"),
        ("```python\nprint(4)", "print(4)", "incomplete_fenced"),
        ("import sys\nprint(5)", "import sys\nprint(5)", "heuristic"),
        ("I cannot.", "", "empty"),
        ("<think>```python\nprint(6)\n```", "", "empty"),
    ],
)
def test_which_program_is_found(client: TestClient, completion: str, code: str, kind: str) -> None:
    row = {"test": [{"input": {"stdin": ""}, "output": {"stdout": "0"}}]}
    body = {"dataset": "", "id": "a", "completion": completion, "config": {"language": "python", "provided_data": row}}
    found = client.post(SUBMIT, json=body).json()
    assert (found["extracted_code"], found["extracted_type"], found["accepted"]) == (code, kind, False)
    assert len(found["tests"]) == 1


AUTO_EVAL = {
    "labels": {"programming_language": "python", "execution_language": "python"},
    "test": {"code": "assert double(2) == 4\nassert double(3) == 6"},
}
HACKS = [
    "import os\ndef double(x):\n    os._exit(0)",
    "import sys\nsys.exit(0)",
    "class Yes(int):\n    def __eq__(self, other):\n        return True\ndef double(x):\n    return Yes(0)",
    "import atexit, os\natexit.register(lambda: os._exit(0))\ndef double(x):\n    return 0",
    "import os, sys\nsys.excepthook = lambda *_: os._exit(0)\ndef double(x):\n    return 0",
]


@pytest.mark.parametrize("kind", ["AutoEvalDataset", "AutoEvalV4Dataset"])
def test_auto_eval(client: TestClient, kind: str) -> None:
    right = submit(client, "def double(x):\n    return 2 * x", AUTO_EVAL, kind)
    assert right["accepted"]
    assert right["tests"][0]["exec_info"]["status"] == "Success"
    assert right["tests"][0]["exec_info"]["run_result"]["return_code"] == 0
    packed = {key: json.dumps(value) for key, value in AUTO_EVAL.items()}
    wrong = submit(client, "def double(x):\n    return x", packed, kind)
    assert not wrong["accepted"]
    assert wrong["tests"][0]["exec_info"]["run_result"]["return_code"] == 1


@pytest.mark.parametrize("code", HACKS)
def test_auto_eval_is_not_fooled_by_an_exit_status(client: TestClient, code: str) -> None:
    assert not submit(client, code, AUTO_EVAL, "AutoEvalDataset")["accepted"]


def test_auto_eval_with_a_place_to_insert(client: TestClient) -> None:
    test = {"code": "import math\n#<INSERT>\nanswer = area(1)\nassert math.isclose(answer, 3.14159, rel_tol=1e-3)"}
    row = {**AUTO_EVAL, "test": test}
    right = "def area(r):\n    return math.pi * r * r\n\nif __name__ == '__main__':\n    print(area(int(input())))"
    assert submit(client, right, row, "AutoEvalDataset")["accepted"]
    assert not submit(client, "def area(r):\n    return r", row, "AutoEvalDataset")["accepted"]


def test_auto_eval_with_assets(client: TestClient) -> None:
    asset = {"data.csv": base64.b64encode(b"1,2\n3,4\n").decode(), "none.csv": None}
    test = {"asset": json.dumps(asset), "code": "import csv\n#<INSERT>\n\nassert total() == 10\n    "}
    row = {**AUTO_EVAL, "test": json.dumps(test)}
    right = "def total():\n    rows = csv.reader(open('data.csv'))\n    return sum(int(x) for row in rows for x in row)"
    assert submit(client, right, row, "AutoEvalDataset")["accepted"]
    assert not submit(client, right.replace("sum(", "1 + sum("), row, "AutoEvalDataset")["accepted"]


def test_humaneval_and_mbpp(client: TestClient) -> None:
    row = {
        "task_id": "HumanEval/0",
        "prompt": 'def double(x):\n    """Twice x."""\n',
        "entry_point": "double",
        "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    }
    whole = "def double(x):\n    return x * 2"
    assert submit(client, whole, row, "HumanEvalDataset", extra={"is_freeform": True})["accepted"]
    body = {"dataset": "humaneval_python", "id": 0, "config": {"provided_data": row}}
    for completion, right in (
        ("    return 2 * x\n\nprint(double(2))\n", True),
        ("    return x\n", False),
    ):
        found = client.post(SUBMIT, json={**body, "completion": completion}).json()
        assert found["accepted"] is right, found
    mbpp = {"test_list": ["assert double(2) == 4", "assert double(0) == 0"], "test_setup_code": ""}
    assert submit(client, whole, mbpp, "MBPPDataset")["accepted"]
    assert not submit(client, "def double(x):\n    return 4", mbpp, "MBPPDataset")["accepted"]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"custom_extract_logic": "import os; os.system('id')"}, "custom_extract_logic"),
        ({"provided_data": None}, "provided_data"),
        ({"provided_data": {"test": [{"input": {"stdin": ""}}]}}, "Test 1"),
        ({"provided_data": {"test": []}, "dataset_type": "CommonOJDataset"}, "no tests"),
        ({"provided_data": {**AUTO_EVAL, "test": {"code": "x"}}, "dataset_type": "AutoEvalDataset",
          "extra": {"repr_code": True}}, "repr_code"),
        ({"provided_data": {**AUTO_EVAL, "labels": {"programming_language": "java"}},
          "dataset_type": "AutoEvalDataset"}, "java"),
        ({"provided_data": {"rows": 1}}, "test"),
        ({"language": None}, "language"),
    ],
)  # fmt: skip
def test_submit_refuses(client: TestClient, config: dict[str, Any], said: str) -> None:
    base = {"language": "python", "provided_data": {"test": SUMS}}
    body = {"dataset": "", "id": 1, "completion": "```python\nprint(1)\n```", "config": {**base, **config}}
    reply = client.post(SUBMIT, json=body)
    assert reply.status_code == 422, reply.text
    assert said in reply.json()["detail"]


# --- files, and languages that are compiled ---------------------------------------------------------------------------


def test_files_in_and_out(client: TestClient) -> None:
    code = (
        "import helper, os\nos.makedirs('out')\nos.symlink('/etc/passwd', 'link')\n"
        "open('out/copy.bin', 'wb').write(open('data/in.bin', 'rb').read() + helper.TAIL)"
    )
    files = {"data/in.bin": b"\xff\x00", "./helper.py": b"TAIL = b'!'"}
    found = run_code(
        client,
        code,
        files={**{name: base64.b64encode(data).decode() for name, data in files.items()}, "nothing": None},
        fetch_files=["out/copy.bin", "link", "missing"],
    )
    assert found["status"] == "Success", found
    assert {name: base64.b64decode(text) for name, text in found["files"].items()} == {"out/copy.bin": b"\xff\x00!"}


def test_submit_of_files(client: TestClient) -> None:
    case = {"input": {"stdin": "2", "in.txt": "40"}, "output": {"stdout": "done", "out.txt": "42\n"}}
    right = "total = int(input()) + int(open('in.txt').read())\nopen('out.txt', 'w').write(f'{total}')\nprint('done')"
    assert submit(client, right, {"test": [case]})["accepted"]
    assert not submit(client, right.replace("+", "-"), {"test": [case]})["accepted"]
    assert not submit(client, "print('done')", {"test": [case]})["accepted"], "the file is not there"


def needs(client: TestClient, language: str) -> None:
    if language not in client.app.state.engine.sandbox.languages():  # type: ignore[attr-defined]
        pytest.skip(f"no toolchain for {language} here")


def test_compiled_languages(client: TestClient) -> None:
    needs(client, "c")
    code = (
        '#include <stdio.h>\n#include "two.h"\nint main(){int a; scanf("%d", &a); printf("%d\\n", a * TWO); return 0;}'
    )
    files = {"two.h": base64.b64encode(b"#define TWO 2\n").decode()}
    found = run_code(client, code, language="c", stdin="21", files=files)
    assert (found["status"], found["run_result"]["stdout"]) == ("Success", "42\n")
    assert (found["compile_result"]["status"], found["compile_result"]["return_code"]) == ("Finished", 0)
    broken = run_code(client, "int main(){ return x; }", language="c")
    assert (broken["status"], broken["run_result"]) == ("Failed", None)
    assert broken["compile_result"]["return_code"] == 1
    assert "x" in broken["compile_result"]["stderr"]
    crash = run_code(client, "int main(){ return 3; }", language="c")
    assert (crash["status"], crash["run_result"]["return_code"]) == ("Failed", 3)


@pytest.mark.parametrize(
    ("language", "ours", "code"),
    [
        ("bash", "bash", "read a\necho $((a * 2))"),
        ("nodejs", "javascript", "console.log(2 * Number(require('fs').readFileSync(0)))"),
        ("cpp", "cpp", "#include <iostream>\nint main(){int a; std::cin >> a; std::cout << 2 * a << '\\n';}"),
    ],
)
def test_submit_in_other_languages(client: TestClient, language: str, ours: str, code: str) -> None:
    needs(client, ours)
    row = {"test": [{"input": {"stdin": "4"}, "output": {"stdout": "8"}}]}
    body = {
        "dataset": "",
        "id": 1,
        "completion": f"```{ours}\n{code}\n```",
        "config": {"language": language, "provided_data": row},
    }
    right = client.post(SUBMIT, json=body).json()
    assert right["accepted"], right
    row["test"][0]["output"]["stdout"] = "9"
    assert not client.post(SUBMIT, json=body).json()["accepted"]


def test_test_code_in_another_language(client: TestClient) -> None:
    needs(client, "javascript")
    labels = {"programming_language": "javascript", "execution_language": "nodejs"}
    test = {"code": "const assert = require('assert');\n#<INSERT>\nassert.deepEqual(twice(2), 4);"}
    row = {"labels": labels, "test": test}
    for body, right in (("return 2 * x;", True), ("return x;", False), ("process.exit(0);", False)):
        completion = f"```javascript\nfunction twice(x) {{ {body} }}\n```"
        config = {"dataset_type": "AutoEvalDataset", "provided_data": row}
        found = client.post(SUBMIT, json={"dataset": "", "id": 1, "completion": completion, "config": config}).json()
        assert found["accepted"] is right, found


def test_multipl_e(client: TestClient) -> None:
    needs(client, "lua")
    row = {
        "name": "HumanEval_x",
        "language": "lua",
        "prompt": "-- Twice x.\nlocal function twice(x)\n",
        "tests": "lu = require('luaunit')\n\nfunction test_humaneval()\nlocal candidate = twice\n"
        "    lu.assertEquals(candidate(2), 4)\nend\n\nos.exit(lu.LuaUnit.run())",
        "stop_tokens": ["\nlocal", "\nfunction"],
    }
    for body, right in (("    return 2 * x\nend\n", True), ("    return x\nend\n", False)):
        config = {"dataset_type": "HumanEvalDataset", "provided_data": row}
        found = client.post(SUBMIT, json={"dataset": "", "id": 1, "completion": body, "config": config}).json()
        assert found["accepted"] is right, found
